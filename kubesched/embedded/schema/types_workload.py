"""Field names and types of workloads, budgets, leases, events and pod groups, in the notation of schema/language.py."""

TYPES = """
Binding*: target#2! ObjectReference
CompositeGangSchedulingPolicy: minGroupCount! int
CompositePodGroup: apiVersion str, kind str, metadata ObjectMeta, spec! CompositePodGroupSpec, status
  CompositePodGroupStatus
CompositePodGroupSchedulingPolicy: basic any, gang CompositeGangSchedulingPolicy
CompositePodGroupSpec: disruptionMode DisruptionMode, parentCompositePodGroupName str, preemptionPolicy str, priority
  int, priorityClassName str, schedulingConstraints PodGroupSchedulingConstraints, schedulingPolicy!
  CompositePodGroupSchedulingPolicy, workloadRef WorkloadReference
CompositePodGroupStatus: conditions [Condition|type]
CompositePodGroupTemplate: compositePodGroupTemplates [CompositePodGroupTemplate|name], disruptionMode DisruptionMode,
  name! str, podGroupTemplates [PodGroupTemplate|name], preemptionPolicy str, priority int, priorityClassName str,
  schedulingConstraints PodGroupSchedulingConstraints, schedulingPolicy! CompositePodGroupSchedulingPolicy
Condition: lastTransitionTime#4! time, message#6! str, observedGeneration#3 int, reason#5! str, status#2! str, type#1!
  str
ControllerRevision*: data#2 any, revision#3! int
CronJob*: spec#2 CronJobSpec ={}, status#3 CronJobStatus
CronJobSpec: concurrencyPolicy#3 str =Allow in:Allow|Forbid|Replace, failedJobsHistoryLimit#7 int =1 >=0,
  jobTemplate#5! JobTemplateSpec ={}, schedule#1! str needed, startingDeadlineSeconds#2 int >=0,
  successfulJobsHistoryLimit#6 int =3 >=0, suspend#4 bool =false, timeZone#8 str
CronJobStatus: active#1 [ObjectReference], lastScheduleTime#4 time, lastSuccessfulTime#5 time
DaemonSet*: spec#2 DaemonSetSpec ={}, status#3 DaemonSetStatus
DaemonSetCondition: lastTransitionTime#3 time, message#5 str, reason#4 str, status#2! str, type#1! str
DaemonSetSpec: minReadySeconds#4 int, revisionHistoryLimit#6 int =10, selector#1! LabelSelector, template#2!
  PodTemplateSpec ={}, updateStrategy#3 DaemonSetUpdateStrategy ={}
DaemonSetStatus: collisionCount#9 int, conditions#10 [DaemonSetCondition|type], currentNumberScheduled#1! int,
  desiredNumberScheduled#3! int, numberAvailable#7 int, numberMisscheduled#2! int, numberReady#4! int,
  numberUnavailable#8 int, observedGeneration#5 int, updatedNumberScheduled#6 int
DaemonSetUpdateStrategy: rollingUpdate#2 RollingUpdateDaemonSet ={} if:type=RollingUpdate, type#1 str =RollingUpdate
DeleteOptions: apiVersion str, dryRun#5 [str], gracePeriodSeconds#1 int,
  ignoreStoreReadErrorWithClusterBreakingPotential#6 bool, kind str, orphanDependents#3 bool, preconditions#2
  Preconditions, propagationPolicy#4 str
Deployment*: spec#2 DeploymentSpec ={}, status#3 DeploymentStatus
DeploymentCondition: lastTransitionTime#7 time, lastUpdateTime#6 time, message#5 str, reason#4 str, status#2! str,
  type#1! str
DeploymentSpec: minReadySeconds#5 int, paused#7 bool, progressDeadlineSeconds#9 int =600, replicas#1 int =1 >=0,
  revisionHistoryLimit#6 int =10, selector#2! LabelSelector, strategy#4 DeploymentStrategy ={}, template#3!
  PodTemplateSpec ={}
DeploymentStatus: availableReplicas#4 int, collisionCount#8 int, conditions#6 [DeploymentCondition|type],
  observedGeneration#1 int, readyReplicas#7 int, replicas#2 int, terminatingReplicas#9 int, unavailableReplicas#5 int,
  updatedReplicas#3 int
DeploymentStrategy: rollingUpdate#2 RollingUpdateDeployment ={} if:type=RollingUpdate, type#1 str =RollingUpdate
DisruptionMode: all any, single any
Event: action#12 str, apiVersion str, count#8 int, eventTime#10 microtime, firstTimestamp#6 time, involvedObject#2!
  ObjectReference, kind str, lastTimestamp#7 time, message#4 str, metadata#1! ObjectMeta, reason#3 str, related#13
  ObjectReference, reportingComponent#14 str, reportingInstance#15 str, series#11 EventSeries, source#5 EventSource
  ={}, type#9 str =Normal
EventSeries: count#1 int, lastObservedTime#2 microtime
EventSource: component#1 str, host#2 str
EventsEvent*: action#6 str, deprecatedCount#15 int, deprecatedFirstTimestamp#13 time, deprecatedLastTimestamp#14 time,
  deprecatedSource#12 EventSource, eventTime#2! microtime, note#10 str, reason#7 str, regarding#8 ObjectReference,
  related#9 ObjectReference, reportingController#4 str, reportingInstance#5 str, series#3 EventsEventSeries, type#11
  str
EventsEventSeries: count#1! int, lastObservedTime#2! microtime
Eviction*: deleteOptions#2 DeleteOptions
GangSchedulingPolicy: minCount! int
Job*: spec#2 JobSpec ={}, status#3 JobStatus
JobCondition: lastProbeTime#3 time, lastTransitionTime#4 time, message#6 str, reason#5 str, status#2! str, type#1! str
JobSpec: activeDeadlineSeconds#3 int >=0, backoffLimit#7 int >=0, backoffLimitPerIndex#12 int, completionMode#9 str,
  completions#2 int >=0, managedBy#15 str, manualSelector#5 bool, maxFailedIndexes#13 int, parallelism#1 int >=0,
  podFailurePolicy#11 PodFailurePolicy, podReplacementPolicy#14 str, selector#4 LabelSelector, successPolicy#16
  SuccessPolicy, suspend#10 bool, template#6! PodTemplateSpec ={}, ttlSecondsAfterFinished#8 int >=0
JobStatus: active#4 int, completedIndexes#7 str, completionTime#3 time, conditions#1 [JobCondition|type], failed#6
  int, failedIndexes#10 str, ready#9 int, startTime#2 time, succeeded#5 int, terminating#11 int,
  uncountedTerminatedPods#8 UncountedTerminatedPods
JobTemplateSpec: metadata#1 ObjectMeta, spec#2 JobSpec ={}
Lease*: spec#2 LeaseSpec
LeaseSpec: acquireTime#3 microtime, holderIdentity#1 str, leaseDurationSeconds#2 int >0, leaseTransitions#5 int >=0,
  preferredHolder#7 str, renewTime#4 microtime, strategy#6 str
ModifyVolumeStatus: status#2! str, targetVolumeAttributesClassName#1 str
ObjectReference: apiVersion#5 str, fieldPath#7 str, kind#1 str, name#3 str, namespace#2 str, resourceVersion#6 str,
  uid#4 str
PersistentVolumeClaim*: spec#2 PersistentVolumeClaimSpec ={}, status#3 PersistentVolumeClaimStatus
PersistentVolumeClaimCondition: lastProbeTime#3 time, lastTransitionTime#4 time, message#6 str, reason#5 str,
  status#2! str, type#1! str
PersistentVolumeClaimStatus: accessModes#2 [str], allocatedResourceStatuses#7 {str}, allocatedResources#5 {quantity},
  capacity#3 {quantity}, conditions#4 [PersistentVolumeClaimCondition|type], currentVolumeAttributesClassName#8 str,
  modifyVolumeStatus#9 ModifyVolumeStatus, phase#1 str
PodDisruptionBudget*: spec#2 PodDisruptionBudgetSpec, status#3 PodDisruptionBudgetStatus
PodDisruptionBudgetSpec: maxUnavailable#3 intstr percent, minAvailable#1 intstr percent, selector#2 LabelSelector,
  unhealthyPodEvictionPolicy#4 str in:AlwaysAllow|IfHealthyBudget
PodDisruptionBudgetStatus: conditions#7 [Condition|type], currentHealthy#4 int, desiredHealthy#5 int, disruptedPods#2
  {time}, disruptionsAllowed#3 int, expectedPods#6 int, observedGeneration#1 int
PodFailurePolicy: rules#1! [PodFailurePolicyRule]
PodFailurePolicyOnExitCodesRequirement: containerName#1 str, operator#2! str, values#3! [int]
PodFailurePolicyOnPodConditionsPattern: status#2 str, type#1! str
PodFailurePolicyRule: action#1! str, onExitCodes#2 PodFailurePolicyOnExitCodesRequirement, onPodConditions#3
  [PodFailurePolicyOnPodConditionsPattern]
PodGroup: apiVersion str, kind str, metadata ObjectMeta, spec! PodGroupSpec, status PodGroupStatus
PodGroupResourceClaim: name! str, resourceClaimName str, resourceClaimTemplateName str
PodGroupResourceClaimStatus: name! str, resourceClaimName str
PodGroupSchedulingConstraints: topology [TopologyConstraint]
PodGroupSchedulingPolicy: basic any, gang GangSchedulingPolicy
PodGroupSpec: disruptionMode DisruptionMode, parentCompositePodGroupName str, preemptionPolicy str, priority int,
  priorityClassName str, resourceClaims [PodGroupResourceClaim|name], schedulingConstraints
  PodGroupSchedulingConstraints, schedulingPolicy! PodGroupSchedulingPolicy, workloadRef WorkloadReference
PodGroupSpecV1alpha2: disruptionMode str, podGroupTemplateRef PodGroupTemplateReference, priority int,
  priorityClassName str, resourceClaims [PodGroupResourceClaim|name], schedulingConstraints
  PodGroupSchedulingConstraints, schedulingPolicy! PodGroupSchedulingPolicy
PodGroupStatus: conditions [Condition|type], resourceClaimStatuses [PodGroupResourceClaimStatus|name]
PodGroupTemplate: disruptionMode DisruptionMode, name! str, preemptionPolicy str, priority int, priorityClassName str,
  resourceClaims [PodGroupResourceClaim|name], schedulingConstraints PodGroupSchedulingConstraints, schedulingPolicy!
  PodGroupSchedulingPolicy
PodGroupTemplateReference: workload WorkloadPodGroupTemplateReference
PodGroupTemplateV1alpha2: disruptionMode str, name! str, priority int, priorityClassName str, resourceClaims
  [PodGroupResourceClaim|name], schedulingConstraints PodGroupSchedulingConstraints, schedulingPolicy!
  PodGroupSchedulingPolicy
PodGroupV1alpha2: apiVersion str, kind str, metadata ObjectMeta, spec! PodGroupSpecV1alpha2, status PodGroupStatus
PodTemplate*: template#2 PodTemplateSpec ={}
PodTemplateSpec: metadata#1 ObjectMeta ={}, spec#2 PodSpec ={}
Preconditions: resourceVersion str, uid#1 str
PriorityClass*: description#4 str, globalDefault#3 bool, preemptionPolicy#5 str =PreemptLowerPriority
  in:PreemptLowerPriority|Never, value#2 int
ReplicaSet*: spec#2 ReplicaSetSpec ={}, status#3 ReplicaSetStatus
ReplicaSetCondition: lastTransitionTime#3 time, message#5 str, reason#4 str, status#2! str, type#1! str
ReplicaSetSpec: minReadySeconds#4 int, replicas#1 int =1 >=0, selector#2! LabelSelector, template#3 PodTemplateSpec
  ={}
ReplicaSetStatus: availableReplicas#5 int, conditions#6 [ReplicaSetCondition|type], fullyLabeledReplicas#2 int,
  observedGeneration#3 int, readyReplicas#4 int, replicas#1! int, terminatingReplicas#7 int
ReplicationController*: spec#2 ReplicationControllerSpec ={}, status#3 ReplicationControllerStatus
ReplicationControllerCondition: lastTransitionTime#3 time, message#5 str, reason#4 str, status#2! str, type#1! str
ReplicationControllerSpec: minReadySeconds#4 int, replicas#1 int =1 >=0, selector#2 {str}, template#3 PodTemplateSpec
ReplicationControllerStatus: availableReplicas#5 int, conditions#6 [ReplicationControllerCondition|type],
  fullyLabeledReplicas#2 int, observedGeneration#3 int, readyReplicas#4 int, replicas#1! int
RollingUpdateDaemonSet: maxSurge#2 intstr =0, maxUnavailable#1 intstr =1
RollingUpdateDeployment: maxSurge#2 intstr ="25%", maxUnavailable#1 intstr ="25%"
RollingUpdateStatefulSetStrategy: maxUnavailable#2 intstr, partition#1 int =0
Scale*: spec#2 ScaleSpec, status#3 ScaleStatus
ScaleSpec: replicas#1 int
ScaleStatus: replicas#1! int, selector#2 str
StatefulSet*: spec#2 StatefulSetSpec ={}, status#3 StatefulSetStatus
StatefulSetCondition: lastTransitionTime#3 time, message#5 str, reason#4 str, status#2! str, type#1! str
StatefulSetOrdinals: start#1 int
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted#1 str =Retain, whenScaled#2 str =Retain
StatefulSetSpec: minReadySeconds#9 int, ordinals#11 StatefulSetOrdinals, persistentVolumeClaimRetentionPolicy#10
  StatefulSetPersistentVolumeClaimRetentionPolicy ={}, podManagementPolicy#6 str =OrderedReady, replicas#1 int =1 >=0,
  revisionHistoryLimit#8 int =10, selector#2! LabelSelector, serviceName#5 str, template#3! PodTemplateSpec ={},
  updateStrategy#7 StatefulSetUpdateStrategy ={}, volumeClaimTemplates#4 [PersistentVolumeClaim]
StatefulSetStatus: availableReplicas#11 int, collisionCount#9 int, conditions#10 [StatefulSetCondition|type],
  currentReplicas#4 int, currentRevision#6 str, observedGeneration#1 int, readyReplicas#3 int, replicas#2! int,
  updateRevision#7 str, updatedReplicas#5 int
StatefulSetUpdateStrategy: rollingUpdate#2 RollingUpdateStatefulSetStrategy ={} if:type=RollingUpdate, type#1 str
  =RollingUpdate
SuccessPolicy: rules#1! [SuccessPolicyRule]
SuccessPolicyRule: succeededCount#2 int, succeededIndexes#1 str
TopologyConstraint: key! str
UncountedTerminatedPods: failed#2 [str], succeeded#1 [str]
Workload: apiVersion str, kind str, metadata ObjectMeta, spec! WorkloadSpec
WorkloadControllerReference: apiGroup str, kind! str, name! str
WorkloadPodGroupTemplateReference: podGroupTemplateName! str, workloadName! str
WorkloadReference: templateName! str, workloadName! str
WorkloadSpec: compositePodGroupTemplates [CompositePodGroupTemplate|name], controllerRef WorkloadControllerReference,
  podGroupTemplates! [PodGroupTemplate|name]
WorkloadSpecV1alpha2: controllerRef WorkloadControllerReference, podGroupTemplates! [PodGroupTemplateV1alpha2|name]
WorkloadV1alpha2: apiVersion str, kind str, metadata ObjectMeta, spec! WorkloadSpecV1alpha2
"""
