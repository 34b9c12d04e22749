"""Field names and types of workloads, budgets, leases, events and pod groups, in the notation of schema/language.py."""

TYPES = """
Binding: apiVersion str, kind str, metadata ObjectMeta, target! ObjectReference
Condition: lastTransitionTime! time, message! str, observedGeneration int, reason! str, status! str, type! str
ControllerRevision: apiVersion str, data any, kind str, metadata ObjectMeta, revision! int
DaemonSet: apiVersion str, kind str, metadata ObjectMeta, spec DaemonSetSpec, status DaemonSetStatus
DaemonSetCondition: lastTransitionTime time, message str, reason str, status! str, type! str
DaemonSetSpec: minReadySeconds int, revisionHistoryLimit int, selector! LabelSelector, template! PodTemplateSpec,
  updateStrategy DaemonSetUpdateStrategy
DaemonSetStatus: collisionCount int, conditions [DaemonSetCondition|type], currentNumberScheduled! int,
  desiredNumberScheduled! int, numberAvailable int, numberMisscheduled! int, numberReady! int, numberUnavailable int,
  observedGeneration int, updatedNumberScheduled int
DaemonSetUpdateStrategy: rollingUpdate RollingUpdateDaemonSet, type str
DeleteOptions: apiVersion str, dryRun [str], gracePeriodSeconds int, ignoreStoreReadErrorWithClusterBreakingPotential
  bool, kind str, orphanDependents bool, preconditions Preconditions, propagationPolicy str
Deployment: apiVersion str, kind str, metadata ObjectMeta, spec DeploymentSpec, status DeploymentStatus
DeploymentCondition: lastTransitionTime time, lastUpdateTime time, message str, reason str, status! str, type! str
DeploymentSpec: minReadySeconds int, paused bool, progressDeadlineSeconds int, replicas int, revisionHistoryLimit int,
  selector! LabelSelector, strategy DeploymentStrategy, template! PodTemplateSpec
DeploymentStatus: availableReplicas int, collisionCount int, conditions [DeploymentCondition|type], observedGeneration
  int, readyReplicas int, replicas int, terminatingReplicas int, unavailableReplicas int, updatedReplicas int
DeploymentStrategy: rollingUpdate RollingUpdateDeployment, type str
Event: action str, apiVersion str, count int, eventTime microtime, firstTimestamp time, involvedObject!
  ObjectReference, kind str, lastTimestamp time, message str, metadata! ObjectMeta, reason str, related
  ObjectReference, reportingComponent str, reportingInstance str, series EventSeries, source EventSource, type str
EventSeries: count int, lastObservedTime microtime
EventSource: component str, host str
EventsEvent: action str, apiVersion str, deprecatedCount int, deprecatedFirstTimestamp time, deprecatedLastTimestamp
  time, deprecatedSource EventSource, eventTime! microtime, kind str, metadata ObjectMeta, note str, reason str,
  regarding ObjectReference, related ObjectReference, reportingController str, reportingInstance str, series
  EventsEventSeries, type str
EventsEventSeries: count! int, lastObservedTime! microtime
Eviction: apiVersion str, deleteOptions DeleteOptions, kind str, metadata ObjectMeta
GangSchedulingPolicy: minCount! int
Job: apiVersion str, kind str, metadata ObjectMeta, spec JobSpec, status JobStatus
JobCondition: lastProbeTime time, lastTransitionTime time, message str, reason str, status! str, type! str
JobSpec: activeDeadlineSeconds int, backoffLimit int, backoffLimitPerIndex int, completionMode str, completions int,
  managedBy str, manualSelector bool, maxFailedIndexes int, parallelism int, podFailurePolicy PodFailurePolicy,
  podReplacementPolicy str, selector LabelSelector, successPolicy SuccessPolicy, suspend bool, template!
  PodTemplateSpec, ttlSecondsAfterFinished int
JobStatus: active int, completedIndexes str, completionTime time, conditions [JobCondition|type], failed int,
  failedIndexes str, ready int, startTime time, succeeded int, terminating int, uncountedTerminatedPods
  UncountedTerminatedPods
Lease: apiVersion str, kind str, metadata ObjectMeta, spec LeaseSpec
LeaseSpec: acquireTime microtime, holderIdentity str, leaseDurationSeconds int, leaseTransitions int, preferredHolder
  str, renewTime microtime, strategy str
ModifyVolumeStatus: status! str, targetVolumeAttributesClassName str
ObjectReference: apiVersion str, fieldPath str, kind str, name str, namespace str, resourceVersion str, uid str
PersistentVolumeClaim: apiVersion str, kind str, metadata ObjectMeta, spec PersistentVolumeClaimSpec, status
  PersistentVolumeClaimStatus
PersistentVolumeClaimCondition: lastProbeTime time, lastTransitionTime time, message str, reason str, status! str,
  type! str
PersistentVolumeClaimStatus: accessModes [str], allocatedResourceStatuses {str}, allocatedResources {quantity},
  capacity {quantity}, conditions [PersistentVolumeClaimCondition|type], currentVolumeAttributesClassName str,
  modifyVolumeStatus ModifyVolumeStatus, phase str
PodDisruptionBudget: apiVersion str, kind str, metadata ObjectMeta, spec PodDisruptionBudgetSpec, status
  PodDisruptionBudgetStatus
PodDisruptionBudgetSpec: maxUnavailable intstr, minAvailable intstr, selector LabelSelector,
  unhealthyPodEvictionPolicy str
PodDisruptionBudgetStatus: conditions [Condition|type], currentHealthy int, desiredHealthy int, disruptedPods {time},
  disruptionsAllowed int, expectedPods int, observedGeneration int
PodFailurePolicy: rules! [PodFailurePolicyRule]
PodFailurePolicyOnExitCodesRequirement: containerName str, operator! str, values! [int]
PodFailurePolicyOnPodConditionsPattern: status str, type! str
PodFailurePolicyRule: action! str, onExitCodes PodFailurePolicyOnExitCodesRequirement, onPodConditions
  [PodFailurePolicyOnPodConditionsPattern]
PodGroup: apiVersion str, kind str, metadata ObjectMeta, spec! PodGroupSpec, status PodGroupStatus
PodGroupResourceClaim: name! str, resourceClaimName str, resourceClaimTemplateName str
PodGroupResourceClaimStatus: name! str, resourceClaimName str
PodGroupSchedulingConstraints: topology [TopologyConstraint]
PodGroupSchedulingPolicy: basic any, gang GangSchedulingPolicy
PodGroupSpec: disruptionMode str, podGroupTemplateRef PodGroupTemplateReference, priority int, priorityClassName str,
  resourceClaims [PodGroupResourceClaim|name], schedulingConstraints PodGroupSchedulingConstraints, schedulingPolicy!
  PodGroupSchedulingPolicy
PodGroupStatus: conditions [Condition|type], resourceClaimStatuses [PodGroupResourceClaimStatus|name]
PodGroupTemplate: disruptionMode str, name! str, priority int, priorityClassName str, resourceClaims
  [PodGroupResourceClaim|name], schedulingConstraints PodGroupSchedulingConstraints, schedulingPolicy!
  PodGroupSchedulingPolicy
PodGroupTemplateReference: workload WorkloadPodGroupTemplateReference
PodTemplate: apiVersion str, kind str, metadata ObjectMeta, template PodTemplateSpec
PodTemplateSpec: metadata ObjectMeta, spec PodSpec
Preconditions: resourceVersion str, uid str
PriorityClass: apiVersion str, description str, globalDefault bool, kind str, metadata ObjectMeta, preemptionPolicy
  str, value int
ReplicaSet: apiVersion str, kind str, metadata ObjectMeta, spec ReplicaSetSpec, status ReplicaSetStatus
ReplicaSetCondition: lastTransitionTime time, message str, reason str, status! str, type! str
ReplicaSetSpec: minReadySeconds int, replicas int, selector! LabelSelector, template PodTemplateSpec
ReplicaSetStatus: availableReplicas int, conditions [ReplicaSetCondition|type], fullyLabeledReplicas int,
  observedGeneration int, readyReplicas int, replicas! int, terminatingReplicas int
ReplicationController: apiVersion str, kind str, metadata ObjectMeta, spec ReplicationControllerSpec, status
  ReplicationControllerStatus
ReplicationControllerCondition: lastTransitionTime time, message str, reason str, status! str, type! str
ReplicationControllerSpec: minReadySeconds int, replicas int, selector {str}, template PodTemplateSpec
ReplicationControllerStatus: availableReplicas int, conditions [ReplicationControllerCondition|type],
  fullyLabeledReplicas int, observedGeneration int, readyReplicas int, replicas! int
RollingUpdateDaemonSet: maxSurge intstr, maxUnavailable intstr
RollingUpdateDeployment: maxSurge intstr, maxUnavailable intstr
RollingUpdateStatefulSetStrategy: maxUnavailable intstr, partition int
Scale: apiVersion str, kind str, metadata ObjectMeta, spec ScaleSpec, status ScaleStatus
ScaleSpec: replicas int
ScaleStatus: replicas! int, selector str
StatefulSet: apiVersion str, kind str, metadata ObjectMeta, spec StatefulSetSpec, status StatefulSetStatus
StatefulSetCondition: lastTransitionTime time, message str, reason str, status! str, type! str
StatefulSetOrdinals: start int
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted str, whenScaled str
StatefulSetSpec: minReadySeconds int, ordinals StatefulSetOrdinals, persistentVolumeClaimRetentionPolicy
  StatefulSetPersistentVolumeClaimRetentionPolicy, podManagementPolicy str, replicas int, revisionHistoryLimit int,
  selector! LabelSelector, serviceName str, template! PodTemplateSpec, updateStrategy StatefulSetUpdateStrategy,
  volumeClaimTemplates [PersistentVolumeClaim]
StatefulSetStatus: availableReplicas int, collisionCount int, conditions [StatefulSetCondition|type], currentReplicas
  int, currentRevision str, observedGeneration int, readyReplicas int, replicas! int, updateRevision str,
  updatedReplicas int
StatefulSetUpdateStrategy: rollingUpdate RollingUpdateStatefulSetStrategy, type str
SuccessPolicy: rules! [SuccessPolicyRule]
SuccessPolicyRule: succeededCount int, succeededIndexes str
TopologyConstraint: key! str
UncountedTerminatedPods: failed [str|set], succeeded [str|set]
Workload: apiVersion str, kind str, metadata ObjectMeta, spec! WorkloadSpec
WorkloadControllerReference: apiGroup str, kind! str, name! str
WorkloadPodGroupTemplateReference: podGroupTemplateName! str, workloadName! str
WorkloadSpec: controllerRef WorkloadControllerReference, podGroupTemplates! [PodGroupTemplate|name]
"""
