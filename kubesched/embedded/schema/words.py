"""What the fields mean, a sentence each, for `kubectl explain`: those that decide where a pod goes, and the usual ones.

A sentence is found under `Type.field`, then under `.field` for fields that mean the same everywhere, then `Type` alone
describes the type. Fields without a sentence are shown with their type only.
"""

from __future__ import annotations

_WORDS = """
Pod: One or more containers that are placed on a node together and share its network and volumes.
PodSpec: What a pod should be: its containers, and the rules for where it may be placed.
PodStatus: What is known about a pod: its phase, its conditions, its containers.
PodSpec.containers: The containers of the pod; at least one. Cannot be added or removed later.
PodSpec.initContainers: Containers that run to completion, in order, before the others start; one that restarts always
  keeps running beside them.
PodSpec.nodeName: The node the pod is assigned to. Set by the scheduler through the binding subresource; a pod created
  with it bypasses scheduling.
PodSpec.nodeSelector: Labels that a node must have for the pod to be placed there.
PodSpec.affinity: Rules that attract the pod to nodes and to other pods, or keep it away from them.
PodSpec.tolerations: Taints that the pod puts up with.
PodSpec.schedulerName: The scheduler that places this pod; default-scheduler when not given.
PodSpec.schedulingGates: While this list is not empty the pod is not considered for scheduling. Entries can be removed,
  not added.
PodSpec.topologySpreadConstraints: How evenly pods like this one must be spread over zones, nodes or other domains.
PodSpec.priorityClassName: The PriorityClass from which the pod's priority is taken.
PodSpec.priority: The pod's importance; filled in from its PriorityClass. Higher goes first and may preempt lower.
PodSpec.preemptionPolicy: Whether the pod may preempt others: PreemptLowerPriority or Never.
PodSpec.overhead: What running the pod costs on top of its containers.
PodSpec.resourceClaims: Claims on devices that the containers of the pod use.
PodSpec.hostNetwork: Use the network of the node; ports of the containers become ports of the node.
PodSpec.terminationGracePeriodSeconds: Time between the request to end and the kill, in seconds.
PodSpec.restartPolicy: When the containers are started again: Always, OnFailure or Never.
PodSpec.volumes: Volumes that the containers can mount.
PodSpec.schedulingGroup: The pod group with which this pod is scheduled.
PodStatus.phase: Pending, Running, Succeeded, Failed or Unknown.
PodStatus.nominatedNodeName: The node on which room is being made for the pod; it may still be placed elsewhere.
Container: One container of a pod.
Container.resources: What the container asks for and the most it may use.
Container.image: The image to run.
Container.ports: Ports that the container listens on; a hostPort is taken on the node.
ResourceRequirements: Amounts of cpu, memory and other resources.
ResourceRequirements.requests: What is set aside on the node; a pod is placed only where the sum fits.
ResourceRequirements.limits: The most that may be used; also the request where none is given.
ResourceRequirements.claims: Names of the pod's resource claims that this container uses.
Toleration: A taint with this key, value and effect does not keep the pod away.
Toleration.key: The key of the taint; empty with operator Exists tolerates every key.
Toleration.operator: Equal (the default), Exists, Lt or Gt.
Toleration.value: The value the taint must have; empty when the operator is Exists.
Toleration.effect: NoSchedule, PreferNoSchedule or NoExecute; empty means all of them.
Toleration.tolerationSeconds: How long a NoExecute taint is tolerated; forever when not given.
Taint: A mark on a node that keeps away pods which do not tolerate it.
Affinity: Rules that attract a pod to nodes or to other pods, or keep it away from them.
Affinity.nodeAffinity: Rules about the labels of nodes.
Affinity.podAffinity: Pods that this pod should be near.
Affinity.podAntiAffinity: Pods that this pod should be away from.
NodeAffinity.requiredDuringSchedulingIgnoredDuringExecution: A node must meet at least one of these terms.
NodeAffinity.preferredDuringSchedulingIgnoredDuringExecution: Nodes that meet these terms are preferred, by weight.
PodAffinityTerm.labelSelector: The pods that are meant; none selects no pods.
PodAffinityTerm.topologyKey: The node label whose value says which nodes are near each other.
PodAffinityTerm.namespaces: Namespaces in which pods are looked for; with no selector either, the pod's own.
PodAffinityTerm.namespaceSelector: Selects further namespaces by their labels; an empty selector selects all.
TopologySpreadConstraint: A rule for spreading pods over domains.
TopologySpreadConstraint.maxSkew: The most by which the fullest domain may exceed the emptiest.
TopologySpreadConstraint.topologyKey: The node label whose values are the domains.
TopologySpreadConstraint.whenUnsatisfiable: DoNotSchedule refuses such nodes, ScheduleAnyway only ranks them lower.
TopologySpreadConstraint.labelSelector: The pods that are counted.
TopologySpreadConstraint.minDomains: With fewer eligible domains than this, the emptiest counts as zero.
TopologySpreadConstraint.nodeAffinityPolicy: Honor counts only nodes that the pod's node rules allow; Ignore counts all.
TopologySpreadConstraint.nodeTaintsPolicy: Honor counts only nodes whose taints are tolerated; Ignore counts all.
Node: A machine that runs pods.
NodeSpec.unschedulable: A cordoned node takes no new pods.
NodeSpec.taints: Taints of the node.
NodeStatus.capacity: What the machine has.
NodeStatus.allocatable: What is there for pods.
Deployment: Keeps a number of equal pods running and replaces them step by step when the template changes.
DeploymentSpec.replicas: How many pods are wanted; 1 when not given.
StatefulSet: Pods with stable names and volumes, created in order.
DaemonSet: One pod on every node that its rules allow.
Job: Pods that run until a number of them has succeeded.
PodDisruptionBudget: How many pods of a selection may be down at a time by someone's will.
PriorityClass: A name for a priority.
PriorityClass.value: The priority; higher is more important.
PriorityClass.globalDefault: The class of pods that name none.
PersistentVolumeClaim: A request for a volume.
PersistentVolume: A volume.
StorageClass: A kind of volume and how it is made.
StorageClass.volumeBindingMode: Immediate binds a claim at once, WaitForFirstConsumer when a pod that uses it is placed.
ResourceClaim: A request for devices.
Lease: A claim to be in charge, renewed while its holder lives.
.apiVersion: The group and version of this object's form.
.kind: What this object is.
.metadata: Name, namespace, labels and the other things every object has.
.spec: What is wanted.
.status: What is known.
.name: The name.
ObjectMeta: What every object has.
ObjectMeta.labels: Keys and values by which objects are selected.
ObjectMeta.annotations: Keys and values that nothing is selected by.
ObjectMeta.namespace: The namespace of the object; names are unique within it.
ObjectMeta.ownerReferences: Objects this one depends on; when all are gone, so is this one.
ObjectMeta.finalizers: Who must agree before a deleted object disappears.
"""


def _read() -> dict[str, str]:
    found: dict[str, str] = {}
    key = ""
    for line in _WORDS.strip().splitlines():
        if line.startswith("  "):
            found[key] += " " + line.strip()
        else:
            key, _, text = line.partition(": ")
            found[key] = text
    return found


_BY_KEY = _read()


def words_for(type_name: str, field_name: str = "") -> str:
    """Return the sentence for a type or one of its fields, or ""."""
    if not field_name:
        return _BY_KEY.get(type_name, "")
    return _BY_KEY.get(f"{type_name}.{field_name}") or _BY_KEY.get(f".{field_name}", "")
