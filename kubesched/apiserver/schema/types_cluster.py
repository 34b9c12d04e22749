"""Field names and types of nodes, storage, devices, services and access, in the notation of schema/language.py."""

TYPES = """
AggregationRule: clusterRoleSelectors [LabelSelector]
AllocatedDeviceStatus: conditions [Condition|type], data any, device! str, driver! str, networkData NetworkDeviceData,
  pool! str, shareID str
AllocationResult: allocationTimestamp time, devices DeviceAllocationResult, nodeSelector NodeSelector
AttachedVolume: devicePath! str, name! str
AzureFilePersistentVolumeSource: readOnly bool, secretName! str, secretNamespace str, shareName! str
CELDeviceSelector: expression! str
CSIDriver: apiVersion str, kind str, metadata ObjectMeta, spec! CSIDriverSpec
CSIDriverSpec: attachRequired bool, fsGroupPolicy str, nodeAllocatableUpdatePeriodSeconds int, podInfoOnMount bool,
  preventPodSchedulingIfMissing bool, requiresRepublish bool, seLinuxMount bool, serviceAccountTokenInSecrets bool,
  storageCapacity bool, tokenRequests [TokenRequest], volumeLifecycleModes [str]
CSINode: apiVersion str, kind str, metadata ObjectMeta, spec! CSINodeSpec
CSINodeDriver: allocatable VolumeNodeResources, name! str, nodeID! str, topologyKeys [str]
CSINodeSpec: drivers! [CSINodeDriver|name]
CSIPersistentVolumeSource: controllerExpandSecretRef SecretReference, controllerPublishSecretRef SecretReference,
  driver! str, fsType str, nodeExpandSecretRef SecretReference, nodePublishSecretRef SecretReference,
  nodeStageSecretRef SecretReference, readOnly bool, volumeAttributes {str}, volumeHandle! str
CSIStorageCapacity: apiVersion str, capacity quantity, kind str, maximumVolumeSize quantity, metadata ObjectMeta,
  nodeTopology LabelSelector, storageClassName! str
CapacityRequestPolicy: default quantity, validRange CapacityRequestPolicyRange, validValues [quantity]
CapacityRequestPolicyRange: max quantity, min! quantity, step quantity
CapacityRequirements: requests {quantity}
CephFSPersistentVolumeSource: monitors! [str], path str, readOnly bool, secretFile str, secretRef SecretReference,
  user str
CinderPersistentVolumeSource: fsType str, readOnly bool, secretRef SecretReference, volumeID! str
ClientIPConfig: timeoutSeconds int
ClusterRole: aggregationRule AggregationRule, apiVersion str, kind str, metadata ObjectMeta, rules [PolicyRule]
ClusterRoleBinding: apiVersion str, kind str, metadata ObjectMeta, roleRef! RoleRef, subjects [Subject]
ConfigMap: apiVersion str, binaryData {bytes}, data {str}, immutable bool, kind str, metadata ObjectMeta
ConfigMapNodeConfigSource: kubeletConfigKey! str, name! str, namespace! str, resourceVersion str, uid str
ContainerImage: names [str], sizeBytes int
Counter: value! quantity
CounterSet: counters! {Counter}, name! str
CustomResourceColumnDefinition: description str, format str, jsonPath! str, name! str, priority int, type! str
CustomResourceConversion: strategy! str, webhook WebhookConversion
CustomResourceDefinition: apiVersion str, kind str, metadata ObjectMeta, spec! CustomResourceDefinitionSpec, status
  CustomResourceDefinitionStatus
CustomResourceDefinitionCondition: lastTransitionTime time, message str, observedGeneration int, reason str, status!
  str, type! str
CustomResourceDefinitionNames: categories [str], kind! str, listKind str, plural! str, shortNames [str], singular str
CustomResourceDefinitionSpec: conversion CustomResourceConversion, group! str, names! CustomResourceDefinitionNames,
  preserveUnknownFields bool, scope! str, versions! [CustomResourceDefinitionVersion]
CustomResourceDefinitionStatus: acceptedNames CustomResourceDefinitionNames, conditions
  [CustomResourceDefinitionCondition|type], observedGeneration int, storedVersions [str]
CustomResourceDefinitionVersion: additionalPrinterColumns [CustomResourceColumnDefinition], deprecated bool,
  deprecationWarning str, name! str, schema CustomResourceValidation, selectableFields [SelectableField], served!
  bool, storage! bool, subresources CustomResourceSubresources
CustomResourceSubresourceScale: labelSelectorPath str, specReplicasPath! str, statusReplicasPath! str
CustomResourceSubresources: scale CustomResourceSubresourceScale, status any
CustomResourceValidation: openAPIV3Schema JSONSchemaProps
DaemonEndpoint: Port! int
Device: allNodes bool, allowMultipleAllocations bool, attributes {DeviceAttribute}, bindingConditions [str],
  bindingFailureConditions [str], bindsToNode bool, capacity {DeviceCapacity}, consumesCounters
  [DeviceCounterConsumption], name! str, nodeAllocatableResourceMappings {NodeAllocatableResourceMapping}, nodeName
  str, nodeSelector NodeSelector, taints [DeviceTaint]
DeviceAllocationConfiguration: opaque OpaqueDeviceConfiguration, requests [str], source! str
DeviceAllocationResult: config [DeviceAllocationConfiguration], results [DeviceRequestAllocationResult]
DeviceAttribute: bool bool, bools [bool], int int, ints [int], string str, strings [str], version str, versions [str]
DeviceCapacity: requestPolicy CapacityRequestPolicy, value! quantity
DeviceClaim: config [DeviceClaimConfiguration], constraints [DeviceConstraint], requests [DeviceRequest]
DeviceClaimConfiguration: opaque OpaqueDeviceConfiguration, requests [str]
DeviceClass: apiVersion str, kind str, metadata ObjectMeta, spec! DeviceClassSpec
DeviceClassConfiguration: opaque OpaqueDeviceConfiguration
DeviceClassSpec: config [DeviceClassConfiguration], extendedResourceName str, selectors [DeviceSelector]
DeviceConstraint: distinctAttribute str, matchAttribute str, requests [str]
DeviceCounterConsumption: counterSet! str, counters! {Counter}
DeviceRequest: exactly ExactDeviceRequest, firstAvailable [DeviceSubRequest], name! str
DeviceRequestAllocationResult: adminAccess bool, bindingConditions [str], bindingFailureConditions [str],
  consumedCapacity {quantity}, device! str, driver! str, pool! str, request! str, shareID str, tolerations
  [DeviceToleration]
DeviceSelector: cel CELDeviceSelector
DeviceSubRequest: allocationMode str, capacity CapacityRequirements, count int, deviceClassName! str, name! str,
  selectors [DeviceSelector], tolerations [DeviceToleration]
DeviceTaint: effect! str, key! str, timeAdded time, value str
DeviceTaintRule: apiVersion str, kind str, metadata ObjectMeta, spec! DeviceTaintRuleSpec, status
  DeviceTaintRuleStatus
DeviceTaintRuleSpec: deviceSelector DeviceTaintSelector, taint! RuleDeviceTaint
DeviceTaintRuleStatus: conditions [Condition|type]
DeviceTaintSelector: device str, driver str, pool str
DeviceToleration: effect str, key str, operator str, tolerationSeconds int, value str
Endpoint: addresses! [str], conditions EndpointConditions, deprecatedTopology {str}, hints EndpointHints, hostname
  str, nodeName str, targetRef ObjectReference, zone str
EndpointAddress: hostname str, ip! str, nodeName str, targetRef ObjectReference
EndpointConditions: ready bool, serving bool, terminating bool
EndpointHints: forNodes [ForNode], forZones [ForZone]
EndpointPort: appProtocol str, name str, port! int, protocol str
EndpointSlice: addressType! str, apiVersion str, endpoints [Endpoint], kind str, metadata ObjectMeta, ports
  [EndpointSlicePort]
EndpointSlicePort: appProtocol str, name str, port int, protocol str
EndpointSubset: addresses [EndpointAddress], notReadyAddresses [EndpointAddress], ports [EndpointPort]
Endpoints: apiVersion str, kind str, metadata ObjectMeta, subsets [EndpointSubset]
ExactDeviceRequest: adminAccess bool, allocationMode str, capacity CapacityRequirements, count int, deviceClassName!
  str, selectors [DeviceSelector], tolerations [DeviceToleration]
ExternalDocumentation: description str, url str
FieldSelectorAttributes: rawSelector str, requirements [FieldSelectorRequirement]
FieldSelectorRequirement: key! str, operator! str, values [str]
FlexPersistentVolumeSource: driver! str, fsType str, options {str}, readOnly bool, secretRef SecretReference
ForNode: name! str
ForZone: name! str
GlusterfsPersistentVolumeSource: endpoints! str, endpointsNamespace str, path! str, readOnly bool
ISCSIPersistentVolumeSource: chapAuthDiscovery bool, chapAuthSession bool, fsType str, initiatorName str, iqn! str,
  iscsiInterface str, lun! int, portals [str], readOnly bool, secretRef SecretReference, targetPortal! str
JSONSchemaProps: $ref str, $schema str, additionalItems any, additionalProperties any, allOf [JSONSchemaProps], anyOf
  [JSONSchemaProps], default any, definitions {JSONSchemaProps}, dependencies {any}, description str, enum [any],
  example any, exclusiveMaximum bool, exclusiveMinimum bool, externalDocs ExternalDocumentation, format str, id str,
  items any, maxItems int, maxLength int, maxProperties int, maximum num, minItems int, minLength int, minProperties
  int, minimum num, multipleOf num, not JSONSchemaProps, nullable bool, oneOf [JSONSchemaProps], pattern str,
  patternProperties {JSONSchemaProps}, properties {JSONSchemaProps}, required [str], title str, type str, uniqueItems
  bool, x-kubernetes-embedded-resource bool, x-kubernetes-int-or-string bool, x-kubernetes-list-map-keys [str],
  x-kubernetes-list-type str, x-kubernetes-map-type str, x-kubernetes-preserve-unknown-fields bool,
  x-kubernetes-validations [ValidationRule]
LabelSelectorAttributes: rawSelector str, requirements [LabelSelectorRequirement]
LoadBalancerIngress: hostname str, ip str, ipMode str, ports [PortStatus]
LoadBalancerStatus: ingress [LoadBalancerIngress]
LocalSubjectAccessReview: apiVersion str, kind str, metadata ObjectMeta, spec! SubjectAccessReviewSpec, status
  SubjectAccessReviewStatus
LocalVolumeSource: fsType str, path! str
Namespace: apiVersion str, kind str, metadata ObjectMeta, spec NamespaceSpec, status NamespaceStatus
NamespaceCondition: lastTransitionTime time, message str, reason str, status! str, type! str
NamespaceSpec: finalizers [str]
NamespaceStatus: conditions [NamespaceCondition|type], phase str
NetworkDeviceData: hardwareAddress str, interfaceName str, ips [str]
Node: apiVersion str, kind str, metadata ObjectMeta, spec NodeSpec, status NodeStatus
NodeAddress: address! str, type! str
NodeAllocatableResourceMapping: allocationMultiplier quantity, capacityKey str
NodeCondition: lastHeartbeatTime time, lastTransitionTime time, message str, reason str, status! str, type! str
NodeConfigSource: configMap ConfigMapNodeConfigSource
NodeConfigStatus: active NodeConfigSource, assigned NodeConfigSource, error str, lastKnownGood NodeConfigSource
NodeDaemonEndpoints: kubeletEndpoint DaemonEndpoint
NodeFeatures: supplementalGroupsPolicy bool
NodeRuntimeHandler: features NodeRuntimeHandlerFeatures, name str
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts bool, userNamespaces bool
NodeSpec: configSource NodeConfigSource, externalID str, podCIDR str, podCIDRs [str|set], providerID str, taints
  [Taint], unschedulable bool
NodeStatus: addresses [NodeAddress|type], allocatable {quantity}, capacity {quantity}, conditions
  [NodeCondition|type], config NodeConfigStatus, daemonEndpoints NodeDaemonEndpoints, declaredFeatures [str], features
  NodeFeatures, images [ContainerImage], nodeInfo NodeSystemInfo, phase str, runtimeHandlers [NodeRuntimeHandler],
  volumesAttached [AttachedVolume], volumesInUse [str]
NodeSwapStatus: capacity int
NodeSystemInfo: architecture! str, bootID! str, containerRuntimeVersion! str, kernelVersion! str, kubeProxyVersion!
  str, kubeletVersion! str, machineID! str, operatingSystem! str, osImage! str, swap NodeSwapStatus, systemUUID! str
NonResourceAttributes: path str, verb str
OpaqueDeviceConfiguration: driver! str, parameters! any
PersistentVolume: apiVersion str, kind str, metadata ObjectMeta, spec PersistentVolumeSpec, status
  PersistentVolumeStatus
PersistentVolumeSpec: accessModes [str], awsElasticBlockStore AWSElasticBlockStoreVolumeSource, azureDisk
  AzureDiskVolumeSource, azureFile AzureFilePersistentVolumeSource, capacity {quantity}, cephfs
  CephFSPersistentVolumeSource, cinder CinderPersistentVolumeSource, claimRef ObjectReference, csi
  CSIPersistentVolumeSource, fc FCVolumeSource, flexVolume FlexPersistentVolumeSource, flocker FlockerVolumeSource,
  gcePersistentDisk GCEPersistentDiskVolumeSource, glusterfs GlusterfsPersistentVolumeSource, hostPath
  HostPathVolumeSource, iscsi ISCSIPersistentVolumeSource, local LocalVolumeSource, mountOptions [str], nfs
  NFSVolumeSource, nodeAffinity VolumeNodeAffinity, persistentVolumeReclaimPolicy str, photonPersistentDisk
  PhotonPersistentDiskVolumeSource, portworxVolume PortworxVolumeSource, quobyte QuobyteVolumeSource, rbd
  RBDPersistentVolumeSource, scaleIO ScaleIOPersistentVolumeSource, storageClassName str, storageos
  StorageOSPersistentVolumeSource, volumeAttributesClassName str, volumeMode str, vsphereVolume
  VsphereVirtualDiskVolumeSource
PersistentVolumeStatus: lastPhaseTransitionTime time, message str, phase str, reason str
PolicyRule: apiGroups [str], nonResourceURLs [str], resourceNames [str], resources [str], verbs! [str]
PortStatus: error str, port! int, protocol! str
RBDPersistentVolumeSource: fsType str, image! str, keyring str, monitors! [str], pool str, readOnly bool, secretRef
  SecretReference, user str
ResourceAttributes: fieldSelector FieldSelectorAttributes, group str, labelSelector LabelSelectorAttributes, name str,
  namespace str, resource str, subresource str, verb str, version str
ResourceClaim: apiVersion str, kind str, metadata ObjectMeta, spec! ResourceClaimSpec, status ResourceClaimStatus
ResourceClaimConsumerReference: apiGroup str, name! str, resource! str, uid! str
ResourceClaimSpec: devices DeviceClaim
ResourceClaimStatus: allocation AllocationResult, devices [AllocatedDeviceStatus|driver,device,pool,shareID],
  reservedFor [ResourceClaimConsumerReference|uid]
ResourceClaimTemplate: apiVersion str, kind str, metadata ObjectMeta, spec! ResourceClaimTemplateSpec
ResourceClaimTemplateSpec: metadata ObjectMeta, spec! ResourceClaimSpec
ResourcePool: generation! int, name! str, resourceSliceCount! int
ResourceSlice: apiVersion str, kind str, metadata ObjectMeta, spec! ResourceSliceSpec
ResourceSliceSpec: allNodes bool, devices [Device], driver! str, nodeName str, nodeSelector NodeSelector,
  perDeviceNodeSelection bool, pool! ResourcePool, sharedCounters [CounterSet]
Role: apiVersion str, kind str, metadata ObjectMeta, rules [PolicyRule]
RoleBinding: apiVersion str, kind str, metadata ObjectMeta, roleRef! RoleRef, subjects [Subject]
RoleRef: apiGroup str, kind! str, name! str
RuleDeviceTaint: effect! str, key! str, timeAdded time, value str
ScaleIOPersistentVolumeSource: fsType str, gateway! str, protectionDomain str, readOnly bool, secretRef!
  SecretReference, sslEnabled bool, storageMode str, storagePool str, system! str, volumeName str
Secret: apiVersion str, data {bytes}, immutable bool, kind str, metadata ObjectMeta, stringData {str}, type str
SecretReference: name str, namespace str
SelectableField: jsonPath! str
SelfSubjectAccessReview: apiVersion str, kind str, metadata ObjectMeta, spec! SelfSubjectAccessReviewSpec, status
  SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec: nonResourceAttributes NonResourceAttributes, resourceAttributes ResourceAttributes
SelfSubjectReview: apiVersion str, kind str, metadata ObjectMeta, status SelfSubjectReviewStatus
SelfSubjectReviewStatus: userInfo UserInfo
Service: apiVersion str, kind str, metadata ObjectMeta, spec ServiceSpec, status ServiceStatus
ServiceAccount: apiVersion str, automountServiceAccountToken bool, imagePullSecrets [LocalObjectReference], kind str,
  metadata ObjectMeta, secrets [ObjectReference|name]
ServicePort: appProtocol str, name str, nodePort int, port! int, protocol str, targetPort intstr
ServiceReference: name! str, namespace! str, path str, port int
ServiceSpec: allocateLoadBalancerNodePorts bool, clusterIP str, clusterIPs [str], externalIPs [str], externalName str,
  externalTrafficPolicy str, healthCheckNodePort int, internalTrafficPolicy str, ipFamilies [str], ipFamilyPolicy str,
  loadBalancerClass str, loadBalancerIP str, loadBalancerSourceRanges [str], ports [ServicePort|port,protocol],
  publishNotReadyAddresses bool, selector {str}, sessionAffinity str, sessionAffinityConfig SessionAffinityConfig,
  trafficDistribution str, type str
ServiceStatus: conditions [Condition|type], loadBalancer LoadBalancerStatus
SessionAffinityConfig: clientIP ClientIPConfig
StorageClass: allowVolumeExpansion bool, allowedTopologies [TopologySelectorTerm], apiVersion str, kind str, metadata
  ObjectMeta, mountOptions [str], parameters {str}, provisioner! str, reclaimPolicy str, volumeBindingMode str
StorageOSPersistentVolumeSource: fsType str, readOnly bool, secretRef ObjectReference, volumeName str, volumeNamespace
  str
Subject: apiGroup str, kind! str, name! str, namespace str
SubjectAccessReview: apiVersion str, kind str, metadata ObjectMeta, spec! SubjectAccessReviewSpec, status
  SubjectAccessReviewStatus
SubjectAccessReviewSpec: extra {[str]}, groups [str], nonResourceAttributes NonResourceAttributes, resourceAttributes
  ResourceAttributes, uid str, user str
SubjectAccessReviewStatus: allowed! bool, denied bool, evaluationError str, reason str
Taint: effect! str, key! str, timeAdded time, value str
TokenRequest: audience! str, expirationSeconds int
TokenReview: apiVersion str, kind str, metadata ObjectMeta, spec! TokenReviewSpec, status TokenReviewStatus
TokenReviewSpec: audiences [str], token! str
TokenReviewStatus: audiences [str], authenticated bool, error str, user UserInfo
TopologySelectorLabelRequirement: key! str, values! [str]
TopologySelectorTerm: matchLabelExpressions [TopologySelectorLabelRequirement]
UserInfo: extra {[str]}, groups [str], uid str, username str
ValidationRule: fieldPath str, message str, messageExpression str, optionalOldSelf bool, reason str, rule! str
VolumeAttachment: apiVersion str, kind str, metadata ObjectMeta, spec! VolumeAttachmentSpec, status
  VolumeAttachmentStatus
VolumeAttachmentSource: inlineVolumeSpec PersistentVolumeSpec, persistentVolumeName str
VolumeAttachmentSpec: attacher! str, nodeName! str, source! VolumeAttachmentSource
VolumeAttachmentStatus: attachError VolumeError, attached! bool, attachmentMetadata {str}, detachError VolumeError
VolumeError: errorCode int, message str, time time
VolumeNodeAffinity: required NodeSelector
VolumeNodeResources: count int
WebhookClientConfig: caBundle str, service ServiceReference, url str
WebhookConversion: clientConfig WebhookClientConfig, conversionReviewVersions! [str]
"""
