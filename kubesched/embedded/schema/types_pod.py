"""Field names and types of pods and everything inside them, in the notation of schema/language.py."""

TYPES = """
AWSElasticBlockStoreVolumeSource: fsType#2 str, partition#3 int, readOnly#4 bool, volumeID#1! str
Affinity: nodeAffinity#1 NodeAffinity, podAffinity#2 PodAffinity, podAntiAffinity#3 PodAntiAffinity
AppArmorProfile: localhostProfile#2 str, type#1! str
AzureDiskVolumeSource: cachingMode#3 str, diskName#1! str, diskURI#2! str, fsType#4 str, kind#6 str, readOnly#5 bool
AzureFileVolumeSource: readOnly#3 bool, secretName#1! str, shareName#2! str
CSIVolumeSource: driver#1! str needed, fsType#3 str, nodePublishSecretRef#5 LocalObjectReference, readOnly#2 bool,
  volumeAttributes#4 {str}
Capabilities: add#1 [str], drop#2 [str]
CephFSVolumeSource: monitors#1! [str], path#2 str, readOnly#6 bool, secretFile#4 str, secretRef#5
  LocalObjectReference, user#3 str
CinderVolumeSource: fsType#2 str, readOnly#3 bool, secretRef#4 LocalObjectReference, volumeID#1! str
ClusterTrustBundleProjection: labelSelector#3 LabelSelector, name#1 str, optional#5 bool, path#4! str, signerName#2
  str
ConfigMapEnvSource: name#1.1 str, optional#2 bool
ConfigMapKeySelector: key#2! str, name#1.1 str, optional#3 bool
ConfigMapProjection: items#2 [KeyToPath], name#1.1 str, optional#4 bool
ConfigMapVolumeSource: defaultMode#3 int =420, items#2 [KeyToPath], name#1.1 str needed, optional#4 bool
Container: args#4 [str], command#3 [str], env#7 [EnvVar|name], envFrom#19 [EnvFromSource], image#2 str needed,
  imagePullPolicy#14 str in:Always|IfNotPresent|Never, lifecycle#12 Lifecycle, livenessProbe#10 Probe, name#1! str
  needed is:dns-label, ports#6 [ContainerPort|containerPort,protocol], readinessProbe#11 Probe, resizePolicy#23
  [ContainerResizePolicy], resources#8 ResourceRequirements ={}, restartPolicy#24 str, restartPolicyRules#25
  [ContainerRestartRule], securityContext#15 SecurityContext, startupProbe#22 Probe, stdin#16 bool, stdinOnce#17 bool,
  terminationMessagePath#13 str =/dev/termination-log, terminationMessagePolicy#20 str =File
  in:File|FallbackToLogsOnError, tty#18 bool, volumeDevices#21 [VolumeDevice|devicePath], volumeMounts#9
  [VolumeMount|mountPath], workingDir#5 str
ContainerExtendedResourceRequest: containerName#1! str, requestName#3! str, resourceName#2! str
ContainerPort: containerPort#3! int needed 1..65535, hostIP#5 str, hostPort#2 int 1..65535?, name#1 str, protocol#4
  str =TCP in:SCTP|TCP|UDP
ContainerResizePolicy: resourceName#1! str, restartPolicy#2! str
ContainerResourceClaim: name#1! str, request#2 str
ContainerRestartRule: action#1! str, exitCodes#2 ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: operator#1! str, values#2 [int]
ContainerState: running#2 ContainerStateRunning, terminated#3 ContainerStateTerminated, waiting#1
  ContainerStateWaiting
ContainerStateRunning: startedAt#1 time
ContainerStateTerminated: containerID#7 str, exitCode#1! int, finishedAt#6 time, message#4 str, reason#3 str, signal#2
  int, startedAt#5 time
ContainerStateWaiting: message#2 str, reason#1 str
ContainerStatus: allocatedResources#10 {quantity}, allocatedResourcesStatus#14 [ResourceStatus|name], containerID#8
  str, image#6! str, imageID#7! str, lastState#3 ContainerState, name#1! str, ready#4! bool, resources#11
  ResourceRequirements, restartCount#5! int, started#9 bool, state#2 ContainerState, stopSignal#15 str, user#13
  ContainerUser, volumeMounts#12 [VolumeMountStatus|mountPath]
ContainerUser: linux#1 LinuxContainerUser
DownwardAPIProjection: items#1 [DownwardAPIVolumeFile]
DownwardAPIVolumeFile: fieldRef#2 ObjectFieldSelector, mode#4 int, path#1! str, resourceFieldRef#3
  ResourceFieldSelector
DownwardAPIVolumeSource: defaultMode#2 int =420, items#1 [DownwardAPIVolumeFile]
EmptyDirVolumeSource: medium#1 str, sizeLimit#2 quantity
EnvFromSource: configMapRef#2 ConfigMapEnvSource, prefix#1 str, secretRef#3 SecretEnvSource
EnvVar: name#1! str needed is:variable, value#2 str, valueFrom#3 EnvVarSource
EnvVarSource: configMapKeyRef#3 ConfigMapKeySelector, fieldRef#1 ObjectFieldSelector, fileKeyRef#5 FileKeySelector,
  resourceFieldRef#2 ResourceFieldSelector, secretKeyRef#4 SecretKeySelector
EphemeralContainer: ...Container#1, targetContainerName#2 str
EphemeralVolumeSource: volumeClaimTemplate#1 PersistentVolumeClaimTemplate
ExecAction: command#1 [str]
FCVolumeSource: fsType#3 str, lun#2 int, readOnly#4 bool, targetWWNs#1 [str], wwids#5 [str]
FileKeySelector: key#3! str, optional#4 bool, path#2! str, volumeName#1! str
FlexVolumeSource: driver#1! str, fsType#2 str, options#5 {str}, readOnly#4 bool, secretRef#3 LocalObjectReference
FlockerVolumeSource: datasetName#1 str, datasetUUID#2 str
GCEPersistentDiskVolumeSource: fsType#2 str, partition#3 int, pdName#1! str, readOnly#4 bool
GRPCAction: port#1! int, service#2 str
GitRepoVolumeSource: directory#3 str, repository#1! str, revision#2 str
GlusterfsVolumeSource: endpoints#1! str, path#2! str, readOnly#3 bool
HTTPGetAction: host#3 str, httpHeaders#5 [HTTPHeader], path#1 str =/, port#2! intstr, scheme#4 str =HTTP
HTTPHeader: name#1! str, value#2! str
HostAlias: hostnames#2 [str], ip#1! str
HostIP: ip#1! str
HostPathVolumeSource: path#1! str needed, type#2 str =""
ISCSIVolumeSource: chapAuthDiscovery#8 bool, chapAuthSession#11 bool, fsType#5 str, initiatorName#12 str, iqn#2! str,
  iscsiInterface#4 str, lun#3! int, portals#7 [str], readOnly#6 bool, secretRef#10 LocalObjectReference,
  targetPortal#1! str
ImageVolumeSource: pullPolicy#2 str, reference#1 str
ImageVolumeStatus: imageRef#1! str
KeyToPath: key#1! str, mode#3 int, path#2! str
LabelSelector: matchExpressions#2 [LabelSelectorRequirement], matchLabels#1 {str}
LabelSelectorRequirement: key#1! str, operator#2! str, values#3 [str]
Lifecycle: postStart#1 LifecycleHandler, preStop#2 LifecycleHandler, stopSignal#3 str
LifecycleHandler: exec#1 ExecAction, httpGet#2 HTTPGetAction, sleep#4 SleepAction, tcpSocket#3 TCPSocketAction
LinuxContainerUser: gid#2! int, supplementalGroups#3 [int], uid#1! int
LocalObjectReference: name#1 str
ManagedFieldsEntry: apiVersion#3 str, fieldsType#6 str, fieldsV1#7 any, manager#1 str, operation#2 str, subresource#8
  str, time#4 time
NFSVolumeSource: path#2! str, readOnly#3 bool, server#1! str
NodeAffinity: preferredDuringSchedulingIgnoredDuringExecution#2 [PreferredSchedulingTerm],
  requiredDuringSchedulingIgnoredDuringExecution#1 NodeSelector
NodeAllocatableMappedResources: name#1! str, quantity#2 quantity
NodeAllocatableOverheadResources: name#1! str, perContainer#3 quantity, perPod#2 quantity
NodeAllocatableResourceClaimStatus: containers#2 [str], mapping#4 [NodeAllocatableMappedResources|name], overhead#5
  [NodeAllocatableOverheadResources|name], resourceClaimName#1! str, resources {quantity}
NodeSelector: nodeSelectorTerms#1! [NodeSelectorTerm]
NodeSelectorRequirement: key#1! str, operator#2! str, values#3 [str]
NodeSelectorTerm: matchExpressions#1 [NodeSelectorRequirement], matchFields#2 [NodeSelectorRequirement]
ObjectFieldSelector: apiVersion#1 str =v1, fieldPath#2! str
ObjectMeta: annotations#12 {str}, creationTimestamp#8 time, deletionGracePeriodSeconds#10 int, deletionTimestamp#9
  time, finalizers#14 [str|set], generateName#2 str, generation#7 int, labels#11 {str}, managedFields#17
  [ManagedFieldsEntry], name#1 str, namespace#3 str, ownerReferences#13 [OwnerReference|uid], resourceVersion#6 str,
  selfLink#4 str, uid#5 str
OwnerReference: apiVersion#5! str, blockOwnerDeletion#7 bool, controller#6 bool, kind#1! str, name#3! str, uid#4! str
PersistentVolumeClaimSpec: accessModes#1 [str], dataSource#7 TypedLocalObjectReference, dataSourceRef#8
  TypedObjectReference, resources#2 VolumeResourceRequirements, selector#4 LabelSelector, storageClassName#5 str,
  volumeAttributesClassName#9 str, volumeMode#6 str =Filesystem, volumeName#3 str
PersistentVolumeClaimTemplate: metadata#1 ObjectMeta, spec#2! PersistentVolumeClaimSpec ={}
PersistentVolumeClaimVolumeSource: claimName#1! str needed, readOnly#2 bool
PhotonPersistentDiskVolumeSource: fsType#2 str, pdID#1! str
Pod*: spec#2 PodSpec ={}, status#3 PodStatus
PodAffinity: preferredDuringSchedulingIgnoredDuringExecution#2 [WeightedPodAffinityTerm],
  requiredDuringSchedulingIgnoredDuringExecution#1 [PodAffinityTerm]
PodAffinityTerm: labelSelector#1 LabelSelector, matchLabelKeys#5 [str], mismatchLabelKeys#6 [str], namespaceSelector#4
  LabelSelector, namespaces#2 [str], topologyKey#3! str
PodAntiAffinity: ...PodAffinity
PodCertificateProjection: certificateChainPath#6 str, credentialBundlePath#4 str, keyPath#5 str, keyType#2! str,
  maxExpirationSeconds#3 int, signerName#1! str, userAnnotations#7 {str}
PodCondition: lastProbeTime#3 time, lastTransitionTime#4 time, message#6 str, observedGeneration#7 int, reason#5 str,
  status#2! str, type#1! str
PodDNSConfig: nameservers#1 [str], options#3 [PodDNSConfigOption], searches#2 [str]
PodDNSConfigOption: name#1 str, value#2 str
PodExtendedResourceClaimStatus: requestMappings#1! [ContainerExtendedResourceRequest], resourceClaimName#2! str
PodIP: ip#1! str
PodOS: name#1! str
PodReadinessGate: conditionType#1! str
PodResourceClaim: name#1! str, resourceClaimName#3 str is:dns-name, resourceClaimTemplateName#4 str is:dns-name
PodResourceClaimStatus: name#1! str, resourceClaimName#2 str
PodSchedulingGate: name#1! str
PodSchedulingGroup: podGroupName#1 str
PodSecurityContext: appArmorProfile#11 AppArmorProfile, fsGroup#5 int, fsGroupChangePolicy#9 str, runAsGroup#6 int,
  runAsNonRoot#3 bool, runAsUser#2 int, seLinuxChangePolicy#13 str, seLinuxOptions#1 SELinuxOptions, seccompProfile#10
  SeccompProfile, supplementalGroups#4 [int], supplementalGroupsPolicy#12 str, sysctls#7 [Sysctl], windowsOptions#8
  WindowsSecurityContextOptions
PodSpec: activeDeadlineSeconds#5 int 1..2147483647, affinity#18 Affinity, automountServiceAccountToken#21 bool,
  containers#2! [Container|name] needed, dnsConfig#26 PodDNSConfig, dnsPolicy#6 str =ClusterFirst
  in:ClusterFirstWithHostNet|ClusterFirst|Default|None, enableServiceLinks#30 bool, ephemeralContainers#34
  [EphemeralContainer|name], hostAliases#23 [HostAlias|ip], hostIPC#13 bool, hostNetwork#11 bool, hostPID#12 bool,
  hostUsers#37 bool, hostname#16 str is:dns-label, hostnameOverride#41 str, imagePullSecrets#15
  [LocalObjectReference|name], initContainers#20 [Container|name], nodeName#10 str is:dns-name, nodeSelector#7 {str},
  os#36 PodOS, overhead#32 {quantity}, preemptionPolicy#31 str in:PreemptLowerPriority|Never, priority#25 int,
  priorityClassName#24 str, readinessGates#28 [PodReadinessGate], resourceClaims#39 [PodResourceClaim|name],
  resources#40 ResourceRequirements, restartPolicy#3 str =Always in:Always|OnFailure|Never, runtimeClassName#29 str,
  schedulerName#19 str =default-scheduler, schedulingGates#38 [PodSchedulingGate|name], schedulingGroup#43
  PodSchedulingGroup, securityContext#14 PodSecurityContext ={}, serviceAccount#9 str, serviceAccountName#8 str
  is:dns-name, setHostnameAsFQDN#35 bool, shareProcessNamespace#27 bool, subdomain#17 str is:dns-label,
  terminationGracePeriodSeconds#4 int =30, tolerations#22 [Toleration], topologySpreadConstraints#33
  [TopologySpreadConstraint|topologyKey,whenUnsatisfiable], volumes#1 [Volume|name]
PodStatus: allocatedResources#19 {quantity}, conditions#2 [PodCondition|type], containerStatuses#8 [ContainerStatus],
  ephemeralContainerStatuses#13 [ContainerStatus], extendedResourceClaimStatus#18 PodExtendedResourceClaimStatus,
  hostIP#5 str, hostIPs#16 [HostIP], initContainerStatuses#10 [ContainerStatus], message#3 str,
  nodeAllocatableResourceClaimStatuses#21 [NodeAllocatableResourceClaimStatus|resourceClaimName], nominatedNodeName#11
  str, observedGeneration#17 int, phase#1 str, podIP#6 str, podIPs#12 [PodIP|ip], qosClass#9 str, reason#4 str,
  resize#14 str, resourceClaimStatuses#15 [PodResourceClaimStatus|name], resources#20 ResourceRequirements,
  startTime#7 time
PortworxVolumeSource: fsType#2 str, readOnly#3 bool, volumeID#1! str
PreferredSchedulingTerm: preference#2! NodeSelectorTerm, weight#1! int weight
Probe: exec#1.1 ExecAction, failureThreshold#6 int =3 >=0, grpc#1.4 GRPCAction, httpGet#1.2 HTTPGetAction,
  initialDelaySeconds#2 int >=0, periodSeconds#4 int =10 >=0, successThreshold#5 int =1 >=0, tcpSocket#1.3
  TCPSocketAction, terminationGracePeriodSeconds#7 int, timeoutSeconds#3 int =1 >=0
ProjectedVolumeSource: defaultMode#2 int =420, sources#1 [VolumeProjection]
QuobyteVolumeSource: group#5 str, readOnly#3 bool, registry#1! str, tenant#6 str, user#4 str, volume#2! str
RBDVolumeSource: fsType#3 str, image#2! str, keyring#6 str, monitors#1! [str], pool#4 str, readOnly#8 bool,
  secretRef#7 LocalObjectReference, user#5 str
ResourceFieldSelector: containerName#1 str, divisor#3 quantity, resource#2! str
ResourceHealth: health#2 str, message#6 str, resourceID#1! str
ResourceRequirements: claims#3 [ContainerResourceClaim|name], limits#1 {quantity}, requests#2 {quantity}
ResourceStatus: name#1! str, resources#2 [ResourceHealth]
SELinuxOptions: level#4 str, role#2 str, type#3 str, user#1 str
ScaleIOVolumeSource: fsType#9 str, gateway#1! str, protectionDomain#5 str, readOnly#10 bool, secretRef#3!
  LocalObjectReference, sslEnabled#4 bool, storageMode#7 str, storagePool#6 str, system#2! str, volumeName#8 str
SeccompProfile: localhostProfile#2 str, type#1! str
SecretEnvSource: name#1.1 str, optional#2 bool
SecretKeySelector: key#2! str, name#1.1 str, optional#3 bool
SecretProjection: items#2 [KeyToPath], name#1.1 str, optional#4 bool
SecretVolumeSource: defaultMode#3 int =420, items#2 [KeyToPath], optional#4 bool, secretName#1 str needed
SecurityContext: allowPrivilegeEscalation#7 bool, appArmorProfile#12 AppArmorProfile, capabilities#1 Capabilities,
  privileged#2 bool, procMount#9 str, readOnlyRootFilesystem#6 bool, runAsGroup#8 int, runAsNonRoot#5 bool,
  runAsUser#4 int, seLinuxOptions#3 SELinuxOptions, seccompProfile#11 SeccompProfile, windowsOptions#10
  WindowsSecurityContextOptions
ServiceAccountTokenProjection: audience#1 str, expirationSeconds#2 int, path#3! str
SleepAction: seconds#1! int
StorageOSVolumeSource: fsType#3 str, readOnly#4 bool, secretRef#5 LocalObjectReference, volumeName#1 str,
  volumeNamespace#2 str
Sysctl: name#1! str, value#2! str
TCPSocketAction: host#2 str, port#1! intstr
Toleration: effect#4 str in:NoSchedule|PreferNoSchedule|NoExecute, key#1 str is:label-key, operator#2 str,
  tolerationSeconds#5 int, value#3 str
TopologySpreadConstraint: labelSelector#4 LabelSelector, matchLabelKeys#8 [str], maxSkew#1! int >zero, minDomains#5
  int >zero, nodeAffinityPolicy#6 str in:Honor|Ignore, nodeTaintsPolicy#7 str in:Honor|Ignore, topologyKey#2! str,
  whenUnsatisfiable#3! str
TypedLocalObjectReference: apiGroup#1 str, kind#2! str, name#3! str
TypedObjectReference: apiGroup#1 str, kind#2! str, name#3! str, namespace#4 str
Volume: awsElasticBlockStore#2.4 AWSElasticBlockStoreVolumeSource, azureDisk#2.22 AzureDiskVolumeSource,
  azureFile#2.18 AzureFileVolumeSource, cephfs#2.14 CephFSVolumeSource, cinder#2.13 CinderVolumeSource, configMap#2.19
  ConfigMapVolumeSource, csi#2.28 CSIVolumeSource, downwardAPI#2.16 DownwardAPIVolumeSource, emptyDir#2.2
  EmptyDirVolumeSource, ephemeral#2.29 EphemeralVolumeSource, fc#2.17 FCVolumeSource, flexVolume#2.12
  FlexVolumeSource, flocker#2.15 FlockerVolumeSource, gcePersistentDisk#2.3 GCEPersistentDiskVolumeSource, gitRepo#2.5
  GitRepoVolumeSource, glusterfs#2.9 GlusterfsVolumeSource, hostPath#2.1 HostPathVolumeSource, image#2.30
  ImageVolumeSource, iscsi#2.8 ISCSIVolumeSource, name#1! str, nfs#2.7 NFSVolumeSource, persistentVolumeClaim#2.10
  PersistentVolumeClaimVolumeSource, photonPersistentDisk#2.23 PhotonPersistentDiskVolumeSource, portworxVolume#2.24
  PortworxVolumeSource, projected#2.26 ProjectedVolumeSource, quobyte#2.21 QuobyteVolumeSource, rbd#2.11
  RBDVolumeSource, scaleIO#2.25 ScaleIOVolumeSource, secret#2.6 SecretVolumeSource, storageos#2.27
  StorageOSVolumeSource, vsphereVolume#2.20 VsphereVirtualDiskVolumeSource
VolumeDevice: devicePath#2! str, name#1! str
VolumeMount: mountPath#3! str needed, mountPropagation#5 str, name#1! str, readOnly#2 bool, recursiveReadOnly#7 str,
  subPath#4 str, subPathExpr#6 str
VolumeMountStatus: mountPath#2! str, name#1! str, readOnly#3 bool, recursiveReadOnly#4 str, volumeStatus#5
  VolumeStatus
VolumeProjection: clusterTrustBundle#5 ClusterTrustBundleProjection, configMap#3 ConfigMapProjection, downwardAPI#2
  DownwardAPIProjection, podCertificate#6 PodCertificateProjection, secret#1 SecretProjection, serviceAccountToken#4
  ServiceAccountTokenProjection
VolumeResourceRequirements: limits#1 {quantity}, requests#2 {quantity}
VolumeStatus: image#1 ImageVolumeStatus
VsphereVirtualDiskVolumeSource: fsType#2 str, storagePolicyID#4 str, storagePolicyName#3 str, volumePath#1! str
WeightedPodAffinityTerm: podAffinityTerm#2! PodAffinityTerm, weight#1! int weight
WindowsSecurityContextOptions: gmsaCredentialSpec#2 str, gmsaCredentialSpecName#1 str, hostProcess#4 bool,
  runAsUserName#3 str
"""
