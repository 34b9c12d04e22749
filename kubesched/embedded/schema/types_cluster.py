"""Field names and types of nodes, storage, devices, services and access, in the notation of schema/language.py."""

TYPES = """
AggregationRule: clusterRoleSelectors#1 [LabelSelector]
AllocatedDeviceStatus: conditions#4 [Condition|type], data#5 any, device#3! str, driver#1! str, networkData#6
  NetworkDeviceData, pool#2! str, shareID#7 str
AllocationResult: allocationTimestamp#5 time, devices#1 DeviceAllocationResult, nodeSelector#3 NodeSelector
AttachedVolume: devicePath#2! str, name#1! str
AzureFilePersistentVolumeSource: readOnly#3 bool, secretName#1! str, secretNamespace#4 str, shareName#2! str
CELDeviceSelector: expression#1! str
CSIDriver*: spec#2! CSIDriverSpec ={}
CSIDriverSpec: attachRequired#1 bool =true, fsGroupPolicy#5 str =ReadWriteOnceWithFSType,
  nodeAllocatableUpdatePeriodSeconds#9 int, podInfoOnMount#2 bool =false, preventPodSchedulingIfMissing#11 bool,
  requiresRepublish#7 bool =false, seLinuxMount#8 bool =false, serviceAccountTokenInSecrets#10 bool, storageCapacity#4
  bool =false, tokenRequests#6 [TokenRequest], volumeLifecycleModes#3 [str] =["Persistent"]
CSINode*: spec#2! CSINodeSpec
CSINodeDriver: allocatable#4 VolumeNodeResources, name#1! str, nodeID#2! str, topologyKeys#3 [str]
CSINodeSpec: drivers#1! [CSINodeDriver|name]
CSIPersistentVolumeSource: controllerExpandSecretRef#9 SecretReference, controllerPublishSecretRef#6 SecretReference,
  driver#1! str, fsType#4 str, nodeExpandSecretRef#10 SecretReference, nodePublishSecretRef#8 SecretReference,
  nodeStageSecretRef#7 SecretReference, readOnly#3 bool, volumeAttributes#5 {str}, volumeHandle#2! str
CSIStorageCapacity*: capacity#4 quantity, maximumVolumeSize#5 quantity, nodeTopology#2 LabelSelector,
  storageClassName#3! str
CapacityRequestPolicy: default#1 quantity, validRange#4 CapacityRequestPolicyRange, validValues#3 [quantity]
CapacityRequestPolicyRange: max#2 quantity, min#1! quantity, step#3 quantity
CapacityRequirements: requests#1 {quantity}
CephFSPersistentVolumeSource: monitors#1! [str], path#2 str, readOnly#6 bool, secretFile#4 str, secretRef#5
  SecretReference, user#3 str
CinderPersistentVolumeSource: fsType#2 str, readOnly#3 bool, secretRef#4 SecretReference, volumeID#1! str
ClientIPConfig: timeoutSeconds#1 int
ClusterRole*: aggregationRule#3 AggregationRule, rules#2 [PolicyRule]
ClusterRoleBinding*: roleRef#3! RoleRef ={}, subjects#2 [Subject]
ConfigMap*: binaryData#3 {bytes}, data#2 {str}, immutable#4 bool
ConfigMapNodeConfigSource: kubeletConfigKey#5! str, name#2! str, namespace#1! str, resourceVersion#4 str, uid#3 str
ContainerImage: names#1 [str], sizeBytes#2 int
Counter: value#1! quantity
CounterSet: counters#2! {Counter}, name#1! str
CustomResourceColumnDefinition: description#4 str, format#3 str, jsonPath#6! str, name#1! str, priority#5 int, type#2!
  str
CustomResourceConversion: strategy#1! str =None, webhook#2 WebhookConversion
CustomResourceDefinition*: spec#2! CustomResourceDefinitionSpec ={}, status#3 CustomResourceDefinitionStatus
CustomResourceDefinitionCondition: lastTransitionTime#3 time, message#5 str, observedGeneration#6 int, reason#4 str,
  status#2! str, type#1! str
CustomResourceDefinitionNames: categories#6 [str], kind#4! str, listKind#5 str, plural#1! str, shortNames#3 [str],
  singular#2 str
CustomResourceDefinitionSpec: conversion#9 CustomResourceConversion ={}, group#1! str, names#3!
  CustomResourceDefinitionNames ={}, preserveUnknownFields#10 bool, scope#4! str, versions#7!
  [CustomResourceDefinitionVersion]
CustomResourceDefinitionStatus: acceptedNames#2 CustomResourceDefinitionNames, conditions#1
  [CustomResourceDefinitionCondition|type], observedGeneration#4 int, storedVersions#3 [str]
CustomResourceDefinitionVersion: additionalPrinterColumns#6 [CustomResourceColumnDefinition], deprecated#7 bool,
  deprecationWarning#8 str, name#1! str, schema#4 CustomResourceValidation, selectableFields#9 [SelectableField],
  served#2! bool, storage#3! bool, subresources#5 CustomResourceSubresources
CustomResourceSubresourceScale: labelSelectorPath#3 str, specReplicasPath#1! str, statusReplicasPath#2! str
CustomResourceSubresources: scale#2 CustomResourceSubresourceScale, status#1 any
CustomResourceValidation: openAPIV3Schema#1 JSONSchemaProps
DaemonEndpoint: Port#1! int
Device: allNodes#7 bool, allowMultipleAllocations#12 bool, attributes#2 {DeviceAttribute}, bindingConditions#10 [str],
  bindingFailureConditions#11 [str], bindsToNode#9 bool, capacity#3 {DeviceCapacity}, consumesCounters#4
  [DeviceCounterConsumption], name#1! str, nodeAllocatableResourceMappings {NodeAllocatableResourceMapping},
  nodeAllocatableResources#14 {NodeAllocatableResource}, nodeName#5 str, nodeSelector#6 NodeSelector, taints#8
  [DeviceTaint]
DeviceAllocationConfiguration: opaque#3.1 OpaqueDeviceConfiguration, requests#2 [str], source#1! str
DeviceAllocationResult: config#2 [DeviceAllocationConfiguration], results#1 [DeviceRequestAllocationResult]
DeviceAttribute: bool#3 bool, bools#7 [bool], int#2 int, ints#6 [int], string#4 str, strings#8 [str], version#5 str,
  versions#9 [str]
DeviceCapacity: requestPolicy#2 CapacityRequestPolicy, value#1! quantity
DeviceClaim: config#3 [DeviceClaimConfiguration], constraints#2 [DeviceConstraint], requests#1 [DeviceRequest]
DeviceClaimConfiguration: opaque#2.1 OpaqueDeviceConfiguration, requests#1 [str]
DeviceClass*: spec#2! DeviceClassSpec
DeviceClassConfiguration: opaque#1.1 OpaqueDeviceConfiguration
DeviceClassSpec: config#2 [DeviceClassConfiguration], extendedResourceName#4 str, selectors#1 [DeviceSelector]
DeviceConstraint: distinctAttribute#3 str, matchAttribute#2 str, requests#1 [str]
DeviceCounterConsumption: compatibilityGroups#3 [str], counterSet#1! str, counters#2! {Counter}
DeviceDerivedAttribute: expression#2! str, name#1! str
DeviceRequest: exactly#2 ExactDeviceRequest, firstAvailable#3 [DeviceSubRequest], name#1! str
DeviceRequestAllocationResult: adminAccess#5 bool, bindingConditions#7 [str], bindingFailureConditions#8 [str],
  consumedCapacity#10 {quantity}, device#4! str, driver#2! str, pool#3! str, request#1! str, shareID#9 str,
  skipNodeOperations#11 [str], tolerations#6 [DeviceToleration]
DeviceSelector: cel#1 CELDeviceSelector
DeviceSubRequest: allocationMode#4 str =ExactCount, capacity#7 CapacityRequirements, count#5 int =1
  if:allocationMode=ExactCount, derivedAttributes#8 [DeviceDerivedAttribute], deviceClassName#2! str, name#1! str,
  selectors#3 [DeviceSelector], tolerations#6 [DeviceToleration]
DeviceTaint: effect#3! str, key#1! str, timeAdded#4 time, value#2 str
DeviceTaintRule*: spec#2! DeviceTaintRuleSpec, status#3 DeviceTaintRuleStatus
DeviceTaintRuleSpec: deviceSelector#1 DeviceTaintSelector, taint#2! RuleDeviceTaint
DeviceTaintRuleStatus: conditions#1 [Condition|type]
DeviceTaintSelector: device#4 str, driver#2 str, pool#3 str
DeviceToleration: effect#4 str, key#1 str, operator#2 str =Equal, tolerationSeconds#5 int, value#3 str
Endpoint: addresses#1! [str], conditions#2 EndpointConditions, deprecatedTopology#5 {str}, hints#8 EndpointHints,
  hostname#3 str, nodeName#6 str, targetRef#4 ObjectReference, zone#7 str
EndpointAddress: hostname#3 str, ip#1! str, nodeName#4 str, targetRef#2 ObjectReference
EndpointConditions: ready#1 bool, serving#2 bool, terminating#3 bool
EndpointHints: forNodes#2 [ForNode], forZones#1 [ForZone]
EndpointPort: appProtocol#4 str, name#1 str, port#2! int, protocol#3 str =TCP
EndpointSlice*: addressType#4! str, endpoints#2 [Endpoint], ports#3 [EndpointSlicePort]
EndpointSlicePort: appProtocol#4 str, name#1 str, port#3 int, protocol#2 str
EndpointSubset: addresses#1 [EndpointAddress], notReadyAddresses#2 [EndpointAddress], ports#3 [EndpointPort]
Endpoints*: subsets#2 [EndpointSubset]
ExactDeviceRequest: adminAccess#5 bool, allocationMode#3 str =ExactCount, capacity#7 CapacityRequirements, count#4 int
  =1 if:allocationMode=ExactCount, derivedAttributes#8 [DeviceDerivedAttribute], deviceClassName#1! str, selectors#2
  [DeviceSelector], tolerations#6 [DeviceToleration]
ExternalDocumentation: description#1 str, url#2 str
FieldSelectorAttributes: rawSelector#1 str, requirements#2 [FieldSelectorRequirement]
FieldSelectorRequirement: key#1! str, operator#2! str, values#3 [str]
FlexPersistentVolumeSource: driver#1! str, fsType#2 str, options#5 {str}, readOnly#4 bool, secretRef#3 SecretReference
ForNode: name#1! str
ForZone: name#1! str
GlusterfsPersistentVolumeSource: endpoints#1! str, endpointsNamespace#4 str, path#2! str, readOnly#3 bool
ISCSIPersistentVolumeSource: chapAuthDiscovery#8 bool, chapAuthSession#11 bool, fsType#5 str, initiatorName#12 str,
  iqn#2! str, iscsiInterface#4 str, lun#3! int, portals#7 [str], readOnly#6 bool, secretRef#10 SecretReference,
  targetPortal#1! str
JSONSchemaProps: $ref#3 str, $schema#2 str, additionalItems#33 any, additionalProperties#30 any, allOf#25
  [JSONSchemaProps], anyOf#27 [JSONSchemaProps], default#8 any, definitions#34 {JSONSchemaProps}, dependencies#32
  {any}, description#4 str, enum#20 [any], example#36 any, exclusiveMaximum#10 bool, exclusiveMinimum#12 bool,
  externalDocs#35 ExternalDocumentation, format#6 str, id#1 str, items#24 any, maxItems#16 int, maxLength#13 int,
  maxProperties#21 int, maximum#9 num, minItems#17 int, minLength#14 int, minProperties#22 int, minimum#11 num,
  multipleOf#19 num, not#28 JSONSchemaProps, nullable#37 bool, oneOf#26 [JSONSchemaProps], pattern#15 str,
  patternProperties#31 {JSONSchemaProps}, properties#29 {JSONSchemaProps}, required#23 [str], title#7 str, type#5 str,
  uniqueItems#18 bool, x-kubernetes-embedded-resource#39 bool, x-kubernetes-int-or-string#40 bool,
  x-kubernetes-list-map-keys#41 [str], x-kubernetes-list-type#42 str, x-kubernetes-map-type#43 str,
  x-kubernetes-preserve-unknown-fields#38 bool, x-kubernetes-validations#44 [ValidationRule]
LabelSelectorAttributes: rawSelector#1 str, requirements#2 [LabelSelectorRequirement]
LoadBalancerIngress: hostname#2 str, ip#1 str, ipMode#3 str, ports#4 [PortStatus]
LoadBalancerStatus: ingress#1 [LoadBalancerIngress]
LocalSubjectAccessReview*: spec#2! SubjectAccessReviewSpec, status#3 SubjectAccessReviewStatus
LocalVolumeSource: fsType#2 str, path#1! str
Namespace*: spec#2 NamespaceSpec, status#3 NamespaceStatus
NamespaceCondition: lastTransitionTime#4 time, message#6 str, reason#5 str, status#2! str, type#1! str
NamespaceSpec: finalizers#1 [str]
NamespaceStatus: conditions#2 [NamespaceCondition|type], phase#1 str
NetworkDeviceData: hardwareAddress#3 str, interfaceName#1 str, ips#2 [str]
Node*: spec#2 NodeSpec ={}, status#3 NodeStatus
NodeAddress: address#2! str, type#1! str
NodeAllocatableMapping: capacityKey#1 str, capacityMultiplier#2 quantity, deviceMultiplier#3 quantity
NodeAllocatableOverhead: perContainer#2 quantity, perPod#1 quantity
NodeAllocatableResource: mapping#3 NodeAllocatableMapping, overhead#4 NodeAllocatableOverhead
NodeAllocatableResourceMapping: allocationMultiplier quantity, capacityKey str
NodeCondition: lastHeartbeatTime#3 time, lastTransitionTime#4 time, message#6 str, reason#5 str, status#2! str,
  type#1! str
NodeConfigSource: configMap#2 ConfigMapNodeConfigSource
NodeConfigStatus: active#2 NodeConfigSource, assigned#1 NodeConfigSource, error#4 str, lastKnownGood#3
  NodeConfigSource
NodeDaemonEndpoints: kubeletEndpoint#1 DaemonEndpoint
NodeFeatures: supplementalGroupsPolicy#1 bool
NodeRuntimeHandler: features#2 NodeRuntimeHandlerFeatures, name#1 str
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts#1 bool, userNamespaces#2 bool
NodePodPreemptionPolicy: disableResizePreemption#1 [str]
NodeSpec: configSource#6 NodeConfigSource, externalID#2 str, podCIDR#1 str, podCIDRs#7 [str|set],
  podPreemptionPolicy#8 NodePodPreemptionPolicy, providerID#3 str, taints#5 [Taint], unschedulable#4 bool
NodeStatus: addresses#5 [NodeAddress|type], allocatable#2 {quantity}, capacity#1 {quantity}, conditions#4
  [NodeCondition|type], config#11 NodeConfigStatus, daemonEndpoints#6 NodeDaemonEndpoints, declaredFeatures#14 [str],
  features#13 NodeFeatures, images#8 [ContainerImage], nodeInfo#7 NodeSystemInfo, phase#3 str, runtimeHandlers#12
  [NodeRuntimeHandler], volumesAttached#10 [AttachedVolume], volumesInUse#9 [str]
NodeSwapStatus: capacity#1 int
NodeSystemInfo: architecture#10! str, bootID#3! str, containerRuntimeVersion#6! str, kernelVersion#4! str,
  kubeProxyVersion#8! str, kubeletVersion#7! str, machineID#1! str, operatingSystem#9! str, osImage#5! str, swap#11
  NodeSwapStatus, systemUUID#2! str
NonResourceAttributes: path#1 str, verb#2 str
NonResourceRule: nonResourceURLs#2 [str], verbs#1! [str]
OpaqueDeviceConfiguration: driver#1! str, parameters#2! any
PersistentVolume*: spec#2 PersistentVolumeSpec ={}, status#3 PersistentVolumeStatus
PersistentVolumeSpec: accessModes#3 [str] needed, awsElasticBlockStore#2.2 AWSElasticBlockStoreVolumeSource,
  azureDisk#2.16 AzureDiskVolumeSource, azureFile#2.13 AzureFilePersistentVolumeSource, capacity#1 {quantity},
  cephfs#2.9 CephFSPersistentVolumeSource, cinder#2.8 CinderPersistentVolumeSource, claimRef#4 ObjectReference,
  csi#2.22 CSIPersistentVolumeSource, fc#2.10 FCVolumeSource, flexVolume#2.12 FlexPersistentVolumeSource, flocker#2.11
  FlockerVolumeSource, gcePersistentDisk#2.1 GCEPersistentDiskVolumeSource, glusterfs#2.4
  GlusterfsPersistentVolumeSource, hostPath#2.3 HostPathVolumeSource, iscsi#2.7 ISCSIPersistentVolumeSource,
  local#2.20 LocalVolumeSource, mountOptions#7 [str], nfs#2.5 NFSVolumeSource, nodeAffinity#9 VolumeNodeAffinity,
  persistentVolumeReclaimPolicy#5 str =Retain, photonPersistentDisk#2.17 PhotonPersistentDiskVolumeSource,
  portworxVolume#2.18 PortworxVolumeSource, quobyte#2.15 QuobyteVolumeSource, rbd#2.6 RBDPersistentVolumeSource,
  scaleIO#2.19 ScaleIOPersistentVolumeSource, storageClassName#6 str, storageos#2.21 StorageOSPersistentVolumeSource,
  volumeAttributesClassName#10 str, volumeMode#8 str =Filesystem, vsphereVolume#2.14 VsphereVirtualDiskVolumeSource
PersistentVolumeStatus: lastPhaseTransitionTime#4 time, message#2 str, phase#1 str, reason#3 str
PolicyRule: apiGroups#2 [str], nonResourceURLs#5 [str], resourceNames#4 [str], resources#3 [str], verbs#1! [str]
PortStatus: error#3 str, port#1! int, protocol#2! str
RBDPersistentVolumeSource: fsType#3 str, image#2! str, keyring#6 str, monitors#1! [str], pool#4 str, readOnly#8 bool,
  secretRef#7 SecretReference, user#5 str
ResourceAttributes: fieldSelector#8 FieldSelectorAttributes, group#3 str, labelSelector#9 LabelSelectorAttributes,
  name#7 str, namespace#1 str, resource#5 str, subresource#6 str, verb#2 str, version#4 str
ResourceClaim*: spec#2! ResourceClaimSpec ={}, status#3 ResourceClaimStatus
ResourceClaimConsumerReference: apiGroup#1 str, name#4! str, resource#3! str, uid#5! str
ResourceClaimSpec: devices#1 DeviceClaim
ResourceClaimStatus: allocation#1 AllocationResult, devices#4 [AllocatedDeviceStatus|driver,device,pool,shareID],
  reservedFor#2 [ResourceClaimConsumerReference|uid]
ResourceClaimTemplate*: spec#2! ResourceClaimTemplateSpec ={}
ResourceClaimTemplateSpec: metadata#1 ObjectMeta, spec#2! ResourceClaimSpec ={}
ResourcePool: generation#2! int, name#1! str, resourceSliceCount#3! int
ResourceRule: apiGroups#2 [str], resourceNames#4 [str], resources#3 [str], verbs#1! [str]
ResourceSlice*: spec#2! ResourceSliceSpec
ResourceSliceSpec: allNodes#5 bool, devices#6 [Device], driver#1! str, nodeName#3 str, nodeSelector#4 NodeSelector,
  perDeviceNodeSelection#7 bool, pool#2! ResourcePool, sharedCounters#8 [CounterSet], skipNodeOperations#10 [str]
Role*: rules#2 [PolicyRule]
RoleBinding*: roleRef#3! RoleRef ={}, subjects#2 [Subject]
RoleRef: apiGroup#1 str =rbac.authorization.k8s.io, kind#2! str, name#3! str
RuleDeviceTaint: effect#3! str, key#1! str, timeAdded#4 time, value#2 str
ScaleIOPersistentVolumeSource: fsType#9 str, gateway#1! str, protectionDomain#5 str, readOnly#10 bool, secretRef#3!
  SecretReference, sslEnabled#4 bool, storageMode#7 str, storagePool#6 str, system#2! str, volumeName#8 str
Secret*: data#2 {bytes}, immutable#5 bool, stringData#4 {str}, type#3 str =Opaque
SecretReference: name#1 str, namespace#2 str
SelectableField: jsonPath#1! str
SelfSubjectAccessReview*: spec#2! SelfSubjectAccessReviewSpec, status#3 SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec: nonResourceAttributes#2 NonResourceAttributes, resourceAttributes#1 ResourceAttributes
SelfSubjectReview*: status#2 SelfSubjectReviewStatus
SelfSubjectReviewStatus: userInfo#1 UserInfo
SelfSubjectRulesReview*: spec#2! SelfSubjectRulesReviewSpec, status#3 SubjectRulesReviewStatus
SelfSubjectRulesReviewSpec: namespace#1 str
Service*: spec#2 ServiceSpec ={}, status#3 ServiceStatus
ServiceAccount*: automountServiceAccountToken#4 bool, imagePullSecrets#3 [LocalObjectReference], secrets#2
  [ObjectReference|name]
ServicePort: appProtocol#6 str, name#1 str, nodePort#5 int, port#3! int 1..65535, protocol#2 str =TCP, targetPort#4
  intstr 1..65535
ServiceReference: name#2! str, namespace#1! str, path#3 str, port#4 int
ServiceSpec: allocateLoadBalancerNodePorts#20 bool =true if:type=LoadBalancer, clusterIP#3 str, clusterIPs#18 [str],
  externalIPs#5 [str], externalName#10 str, externalTrafficPolicy#11 str =Cluster if:type=NodePort|LoadBalancer,
  healthCheckNodePort#12 int, internalTrafficPolicy#22 str =Cluster if:type=ClusterIP|NodePort|LoadBalancer,
  ipFamilies#19 [str], ipFamilyPolicy#17 str, loadBalancerClass#21 str, loadBalancerIP#8 str,
  loadBalancerSourceRanges#9 [str], ports#1 [ServicePort|port,protocol], publishNotReadyAddresses#13 bool, selector#2
  {str}, sessionAffinity#7 str =None, sessionAffinityConfig#14 SessionAffinityConfig, trafficDistribution#23 str,
  type#4 str =ClusterIP in:ClusterIP|ExternalName|LoadBalancer|NodePort
ServiceStatus: conditions#2 [Condition|type], loadBalancer#1 LoadBalancerStatus
SessionAffinityConfig: clientIP#1 ClientIPConfig
StorageClass*: allowVolumeExpansion#6 bool, allowedTopologies#8 [TopologySelectorTerm], mountOptions#5 [str],
  parameters#3 {str}, provisioner#2! str needed, reclaimPolicy#4 str =Delete in:Delete|Retain, volumeBindingMode#7 str
  =Immediate in:Immediate|WaitForFirstConsumer
StorageOSPersistentVolumeSource: fsType#3 str, readOnly#4 bool, secretRef#5 ObjectReference, volumeName#1 str,
  volumeNamespace#2 str
Subject: apiGroup#2 str =rbac.authorization.k8s.io if:kind=User|Group, kind#1! str, name#3! str, namespace#4 str
SubjectAccessReview*: spec#2! SubjectAccessReviewSpec, status#3 SubjectAccessReviewStatus
SubjectAccessReviewSpec: extra#5 {[str]}, groups#4 [str], nonResourceAttributes#2 NonResourceAttributes,
  resourceAttributes#1 ResourceAttributes, uid#6 str, user#3 str
SubjectAccessReviewStatus: allowed#1! bool, denied#4 bool, evaluationError#3 str, reason#2 str
SubjectRulesReviewStatus: evaluationError#4 str, incomplete#3! bool, nonResourceRules#2! [NonResourceRule],
  resourceRules#1! [ResourceRule]
Taint: effect#3! str, key#1! str, timeAdded#4 time, value#2 str
TokenRequest: audience#1! str, expirationSeconds#2 int
TokenReview*: spec#2! TokenReviewSpec, status#3 TokenReviewStatus
TokenReviewSpec: audiences#2 [str], token#1! str
TokenReviewStatus: audiences#4 [str], authenticated#1 bool, error#3 str, user#2 UserInfo
TopologySelectorLabelRequirement: key#1! str, values#2! [str]
TopologySelectorTerm: matchLabelExpressions#1 [TopologySelectorLabelRequirement]
UserInfo: extra#4 {[str]}, groups#3 [str], uid#2 str, username#1 str
ValidationRule: fieldPath#5 str, message#2 str, messageExpression#3 str, optionalOldSelf#6 bool, reason#4 str, rule#1!
  str
VolumeAttachment*: spec#2! VolumeAttachmentSpec, status#3 VolumeAttachmentStatus
VolumeAttachmentSource: inlineVolumeSpec#2 PersistentVolumeSpec, persistentVolumeName#1 str
VolumeAttachmentSpec: attacher#1! str, nodeName#3! str, source#2! VolumeAttachmentSource
VolumeAttachmentStatus: attachError#3 VolumeError, attached#1! bool, attachmentMetadata#2 {str}, detachError#4
  VolumeError
VolumeError: errorCode#3 int, message#2 str, time#1 time
VolumeNodeAffinity: required#1 NodeSelector
VolumeNodeResources: count#1 int
WebhookClientConfig: caBundle#2 str, service#1 ServiceReference, url#3 str
WebhookConversion: clientConfig#2 WebhookClientConfig, conversionReviewVersions#3! [str]
"""
