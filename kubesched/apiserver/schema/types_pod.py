"""Field names and types of pods and everything inside them, in the notation of schema/language.py."""

TYPES = """
AWSElasticBlockStoreVolumeSource: fsType str, partition int, readOnly bool, volumeID! str
Affinity: nodeAffinity NodeAffinity, podAffinity PodAffinity, podAntiAffinity PodAntiAffinity
AppArmorProfile: localhostProfile str, type! str
AzureDiskVolumeSource: cachingMode str, diskName! str, diskURI! str, fsType str, kind str, readOnly bool
AzureFileVolumeSource: readOnly bool, secretName! str, shareName! str
CSIVolumeSource: driver! str, fsType str, nodePublishSecretRef LocalObjectReference, readOnly bool, volumeAttributes
  {str}
Capabilities: add [str], drop [str]
CephFSVolumeSource: monitors! [str], path str, readOnly bool, secretFile str, secretRef LocalObjectReference, user str
CinderVolumeSource: fsType str, readOnly bool, secretRef LocalObjectReference, volumeID! str
ClusterTrustBundleProjection: labelSelector LabelSelector, name str, optional bool, path! str, signerName str
ConfigMapEnvSource: name str, optional bool
ConfigMapKeySelector: key! str, name str, optional bool
ConfigMapProjection: items [KeyToPath], name str, optional bool
ConfigMapVolumeSource: defaultMode int, items [KeyToPath], name str, optional bool
Container: args [str], command [str], env [EnvVar|name], envFrom [EnvFromSource], image str, imagePullPolicy str,
  lifecycle Lifecycle, livenessProbe Probe, name! str, ports [ContainerPort|containerPort,protocol], readinessProbe
  Probe, resizePolicy [ContainerResizePolicy], resources ResourceRequirements, restartPolicy str, restartPolicyRules
  [ContainerRestartRule], securityContext SecurityContext, startupProbe Probe, stdin bool, stdinOnce bool,
  terminationMessagePath str, terminationMessagePolicy str, tty bool, volumeDevices [VolumeDevice|devicePath],
  volumeMounts [VolumeMount|mountPath], workingDir str
ContainerExtendedResourceRequest: containerName! str, requestName! str, resourceName! str
ContainerPort: containerPort! int, hostIP str, hostPort int, name str, protocol str
ContainerResizePolicy: resourceName! str, restartPolicy! str
ContainerResourceClaim: name! str, request str
ContainerRestartRule: action! str, exitCodes ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: operator! str, values [int]
ContainerState: running ContainerStateRunning, terminated ContainerStateTerminated, waiting ContainerStateWaiting
ContainerStateRunning: startedAt time
ContainerStateTerminated: containerID str, exitCode! int, finishedAt time, message str, reason str, signal int,
  startedAt time
ContainerStateWaiting: message str, reason str
ContainerStatus: allocatedResources {quantity}, allocatedResourcesStatus [ResourceStatus], containerID str, image!
  str, imageID! str, lastState ContainerState, name! str, ready! bool, resources ResourceRequirements, restartCount!
  int, started bool, state ContainerState, stopSignal str, user ContainerUser, volumeMounts
  [VolumeMountStatus|mountPath]
ContainerUser: linux LinuxContainerUser
DownwardAPIProjection: items [DownwardAPIVolumeFile]
DownwardAPIVolumeFile: fieldRef ObjectFieldSelector, mode int, path! str, resourceFieldRef ResourceFieldSelector
DownwardAPIVolumeSource: defaultMode int, items [DownwardAPIVolumeFile]
EmptyDirVolumeSource: medium str, sizeLimit quantity
EnvFromSource: configMapRef ConfigMapEnvSource, prefix str, secretRef SecretEnvSource
EnvVar: name! str, value str, valueFrom EnvVarSource
EnvVarSource: configMapKeyRef ConfigMapKeySelector, fieldRef ObjectFieldSelector, fileKeyRef FileKeySelector,
  resourceFieldRef ResourceFieldSelector, secretKeyRef SecretKeySelector
EphemeralContainer: args [str], command [str], env [EnvVar|name], envFrom [EnvFromSource], image str, imagePullPolicy
  str, lifecycle Lifecycle, livenessProbe Probe, name! str, ports [ContainerPort|containerPort,protocol],
  readinessProbe Probe, resizePolicy [ContainerResizePolicy], resources ResourceRequirements, restartPolicy str,
  restartPolicyRules [ContainerRestartRule], securityContext SecurityContext, startupProbe Probe, stdin bool,
  stdinOnce bool, targetContainerName str, terminationMessagePath str, terminationMessagePolicy str, tty bool,
  volumeDevices [VolumeDevice|devicePath], volumeMounts [VolumeMount|mountPath], workingDir str
EphemeralVolumeSource: volumeClaimTemplate PersistentVolumeClaimTemplate
ExecAction: command [str]
FCVolumeSource: fsType str, lun int, readOnly bool, targetWWNs [str], wwids [str]
FileKeySelector: key! str, optional bool, path! str, volumeName! str
FlexVolumeSource: driver! str, fsType str, options {str}, readOnly bool, secretRef LocalObjectReference
FlockerVolumeSource: datasetName str, datasetUUID str
GCEPersistentDiskVolumeSource: fsType str, partition int, pdName! str, readOnly bool
GRPCAction: port! int, service str
GitRepoVolumeSource: directory str, repository! str, revision str
GlusterfsVolumeSource: endpoints! str, path! str, readOnly bool
HTTPGetAction: host str, httpHeaders [HTTPHeader], path str, port! intstr, scheme str
HTTPHeader: name! str, value! str
HostAlias: hostnames [str], ip! str
HostIP: ip! str
HostPathVolumeSource: path! str, type str
ISCSIVolumeSource: chapAuthDiscovery bool, chapAuthSession bool, fsType str, initiatorName str, iqn! str,
  iscsiInterface str, lun! int, portals [str], readOnly bool, secretRef LocalObjectReference, targetPortal! str
ImageVolumeSource: pullPolicy str, reference str
ImageVolumeStatus: imageRef! str
KeyToPath: key! str, mode int, path! str
LabelSelector: matchExpressions [LabelSelectorRequirement], matchLabels {str}
LabelSelectorRequirement: key! str, operator! str, values [str]
Lifecycle: postStart LifecycleHandler, preStop LifecycleHandler, stopSignal str
LifecycleHandler: exec ExecAction, httpGet HTTPGetAction, sleep SleepAction, tcpSocket TCPSocketAction
LinuxContainerUser: gid! int, supplementalGroups [int], uid! int
LocalObjectReference: name str
ManagedFieldsEntry: apiVersion str, fieldsType str, fieldsV1 any, manager str, operation str, subresource str, time
  time
NFSVolumeSource: path! str, readOnly bool, server! str
NodeAffinity: preferredDuringSchedulingIgnoredDuringExecution [PreferredSchedulingTerm],
  requiredDuringSchedulingIgnoredDuringExecution NodeSelector
NodeAllocatableResourceClaimStatus: containers [str], resourceClaimName! str, resources! {quantity}
NodeSelector: nodeSelectorTerms! [NodeSelectorTerm]
NodeSelectorRequirement: key! str, operator! str, values [str]
NodeSelectorTerm: matchExpressions [NodeSelectorRequirement], matchFields [NodeSelectorRequirement]
ObjectFieldSelector: apiVersion str, fieldPath! str
ObjectMeta: annotations {str}, creationTimestamp time, deletionGracePeriodSeconds int, deletionTimestamp time,
  finalizers [str|set], generateName str, generation int, labels {str}, managedFields [ManagedFieldsEntry], name str,
  namespace str, ownerReferences [OwnerReference|uid], resourceVersion str, selfLink str, uid str
OwnerReference: apiVersion! str, blockOwnerDeletion bool, controller bool, kind! str, name! str, uid! str
PersistentVolumeClaimSpec: accessModes [str], dataSource TypedLocalObjectReference, dataSourceRef
  TypedObjectReference, resources VolumeResourceRequirements, selector LabelSelector, storageClassName str,
  volumeAttributesClassName str, volumeMode str, volumeName str
PersistentVolumeClaimTemplate: metadata ObjectMeta, spec! PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource: claimName! str, readOnly bool
PhotonPersistentDiskVolumeSource: fsType str, pdID! str
Pod: apiVersion str, kind str, metadata ObjectMeta, spec PodSpec, status PodStatus
PodAffinity: preferredDuringSchedulingIgnoredDuringExecution [WeightedPodAffinityTerm],
  requiredDuringSchedulingIgnoredDuringExecution [PodAffinityTerm]
PodAffinityTerm: labelSelector LabelSelector, matchLabelKeys [str], mismatchLabelKeys [str], namespaceSelector
  LabelSelector, namespaces [str], topologyKey! str
PodAntiAffinity: preferredDuringSchedulingIgnoredDuringExecution [WeightedPodAffinityTerm],
  requiredDuringSchedulingIgnoredDuringExecution [PodAffinityTerm]
PodCertificateProjection: certificateChainPath str, credentialBundlePath str, keyPath str, keyType! str,
  maxExpirationSeconds int, signerName! str, userAnnotations {str}
PodCondition: lastProbeTime time, lastTransitionTime time, message str, observedGeneration int, reason str, status!
  str, type! str
PodDNSConfig: nameservers [str], options [PodDNSConfigOption], searches [str]
PodDNSConfigOption: name str, value str
PodExtendedResourceClaimStatus: requestMappings! [ContainerExtendedResourceRequest], resourceClaimName! str
PodIP: ip! str
PodOS: name! str
PodReadinessGate: conditionType! str
PodResourceClaim: name! str, resourceClaimName str, resourceClaimTemplateName str
PodResourceClaimStatus: name! str, resourceClaimName str
PodSchedulingGate: name! str
PodSchedulingGroup: podGroupName str
PodSecurityContext: appArmorProfile AppArmorProfile, fsGroup int, fsGroupChangePolicy str, runAsGroup int,
  runAsNonRoot bool, runAsUser int, seLinuxChangePolicy str, seLinuxOptions SELinuxOptions, seccompProfile
  SeccompProfile, supplementalGroups [int], supplementalGroupsPolicy str, sysctls [Sysctl], windowsOptions
  WindowsSecurityContextOptions
PodSpec: activeDeadlineSeconds int, affinity Affinity, automountServiceAccountToken bool, containers!
  [Container|name], dnsConfig PodDNSConfig, dnsPolicy str, enableServiceLinks bool, ephemeralContainers
  [EphemeralContainer|name], hostAliases [HostAlias|ip], hostIPC bool, hostNetwork bool, hostPID bool, hostUsers bool,
  hostname str, hostnameOverride str, imagePullSecrets [LocalObjectReference|name], initContainers [Container|name],
  nodeName str, nodeSelector {str}, os PodOS, overhead {quantity}, preemptionPolicy str, priority int,
  priorityClassName str, readinessGates [PodReadinessGate], resourceClaims [PodResourceClaim|name], resources
  ResourceRequirements, restartPolicy str, runtimeClassName str, schedulerName str, schedulingGates
  [PodSchedulingGate|name], schedulingGroup PodSchedulingGroup, securityContext PodSecurityContext, serviceAccount
  str, serviceAccountName str, setHostnameAsFQDN bool, shareProcessNamespace bool, subdomain str,
  terminationGracePeriodSeconds int, tolerations [Toleration], topologySpreadConstraints
  [TopologySpreadConstraint|topologyKey,whenUnsatisfiable], volumes [Volume|name]
PodStatus: allocatedResources {quantity}, conditions [PodCondition|type], containerStatuses [ContainerStatus],
  ephemeralContainerStatuses [ContainerStatus], extendedResourceClaimStatus PodExtendedResourceClaimStatus, hostIP
  str, hostIPs [HostIP], initContainerStatuses [ContainerStatus], message str, nodeAllocatableResourceClaimStatuses
  [NodeAllocatableResourceClaimStatus], nominatedNodeName str, observedGeneration int, phase str, podIP str, podIPs
  [PodIP|ip], qosClass str, reason str, resize str, resourceClaimStatuses [PodResourceClaimStatus|name], resources
  ResourceRequirements, startTime time
PortworxVolumeSource: fsType str, readOnly bool, volumeID! str
PreferredSchedulingTerm: preference! NodeSelectorTerm, weight! int
Probe: exec ExecAction, failureThreshold int, grpc GRPCAction, httpGet HTTPGetAction, initialDelaySeconds int,
  periodSeconds int, successThreshold int, tcpSocket TCPSocketAction, terminationGracePeriodSeconds int,
  timeoutSeconds int
ProjectedVolumeSource: defaultMode int, sources [VolumeProjection]
QuobyteVolumeSource: group str, readOnly bool, registry! str, tenant str, user str, volume! str
RBDVolumeSource: fsType str, image! str, keyring str, monitors! [str], pool str, readOnly bool, secretRef
  LocalObjectReference, user str
ResourceFieldSelector: containerName str, divisor quantity, resource! str
ResourceHealth: health str, message str, resourceID! str
ResourceRequirements: claims [ContainerResourceClaim|name], limits {quantity}, requests {quantity}
ResourceStatus: name! str, resources [ResourceHealth]
SELinuxOptions: level str, role str, type str, user str
ScaleIOVolumeSource: fsType str, gateway! str, protectionDomain str, readOnly bool, secretRef! LocalObjectReference,
  sslEnabled bool, storageMode str, storagePool str, system! str, volumeName str
SeccompProfile: localhostProfile str, type! str
SecretEnvSource: name str, optional bool
SecretKeySelector: key! str, name str, optional bool
SecretProjection: items [KeyToPath], name str, optional bool
SecretVolumeSource: defaultMode int, items [KeyToPath], optional bool, secretName str
SecurityContext: allowPrivilegeEscalation bool, appArmorProfile AppArmorProfile, capabilities Capabilities, privileged
  bool, procMount str, readOnlyRootFilesystem bool, runAsGroup int, runAsNonRoot bool, runAsUser int, seLinuxOptions
  SELinuxOptions, seccompProfile SeccompProfile, windowsOptions WindowsSecurityContextOptions
ServiceAccountTokenProjection: audience str, expirationSeconds int, path! str
SleepAction: seconds! int
StorageOSVolumeSource: fsType str, readOnly bool, secretRef LocalObjectReference, volumeName str, volumeNamespace str
Sysctl: name! str, value! str
TCPSocketAction: host str, port! intstr
Toleration: effect str, key str, operator str, tolerationSeconds int, value str
TopologySpreadConstraint: labelSelector LabelSelector, matchLabelKeys [str], maxSkew! int, minDomains int,
  nodeAffinityPolicy str, nodeTaintsPolicy str, topologyKey! str, whenUnsatisfiable! str
TypedLocalObjectReference: apiGroup str, kind! str, name! str
TypedObjectReference: apiGroup str, kind! str, name! str, namespace str
Volume: awsElasticBlockStore AWSElasticBlockStoreVolumeSource, azureDisk AzureDiskVolumeSource, azureFile
  AzureFileVolumeSource, cephfs CephFSVolumeSource, cinder CinderVolumeSource, configMap ConfigMapVolumeSource, csi
  CSIVolumeSource, downwardAPI DownwardAPIVolumeSource, emptyDir EmptyDirVolumeSource, ephemeral
  EphemeralVolumeSource, fc FCVolumeSource, flexVolume FlexVolumeSource, flocker FlockerVolumeSource,
  gcePersistentDisk GCEPersistentDiskVolumeSource, gitRepo GitRepoVolumeSource, glusterfs GlusterfsVolumeSource,
  hostPath HostPathVolumeSource, image ImageVolumeSource, iscsi ISCSIVolumeSource, name! str, nfs NFSVolumeSource,
  persistentVolumeClaim PersistentVolumeClaimVolumeSource, photonPersistentDisk PhotonPersistentDiskVolumeSource,
  portworxVolume PortworxVolumeSource, projected ProjectedVolumeSource, quobyte QuobyteVolumeSource, rbd
  RBDVolumeSource, scaleIO ScaleIOVolumeSource, secret SecretVolumeSource, storageos StorageOSVolumeSource,
  vsphereVolume VsphereVirtualDiskVolumeSource
VolumeDevice: devicePath! str, name! str
VolumeMount: mountPath! str, mountPropagation str, name! str, readOnly bool, recursiveReadOnly str, subPath str,
  subPathExpr str
VolumeMountStatus: mountPath! str, name! str, readOnly bool, recursiveReadOnly str, volumeStatus VolumeStatus
VolumeProjection: clusterTrustBundle ClusterTrustBundleProjection, configMap ConfigMapProjection, downwardAPI
  DownwardAPIProjection, podCertificate PodCertificateProjection, secret SecretProjection, serviceAccountToken
  ServiceAccountTokenProjection
VolumeResourceRequirements: limits {quantity}, requests {quantity}
VolumeStatus: image ImageVolumeStatus
VsphereVirtualDiskVolumeSource: fsType str, storagePolicyID str, storagePolicyName str, volumePath! str
WeightedPodAffinityTerm: podAffinityTerm! PodAffinityTerm, weight! int
WindowsSecurityContextOptions: gmsaCredentialSpec str, gmsaCredentialSpecName str, hostProcess bool, runAsUserName str
"""
