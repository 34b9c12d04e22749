"""The benchmark's cluster and pods, as kube-scheduler's own scheduler_perf makes them.

In: sizes and a kind. Out: API objects. Everything follows from the arguments, nothing from chance or time.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.api.meta import LabelSelector, ObjectMeta, Quantity, TopLevel
from kubesched.api.node import Node, NodeCondition, NodeSpec, NodeStatus
from kubesched.api.pod import (
    Affinity,
    Container,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)

KINDS = ("basic", "spread", "softspread", "affinity", "antiaffinity", "prefaffinity", "mixed", "churn")
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
NAMESPACE = "sched-0"
_MIXED = ("basic", "spread", "prefaffinity", "softspread")
_BLUE = LabelSelector(match_labels={"color": "blue"})
_GREEN = LabelSelector(match_labels={"color": "green"})
_ASKED = ResourceRequirements(requests={"cpu": "100m", "memory": "500Mi"}, limits={"cpu": "100m", "memory": "500Mi"})


def node(i: int, *, turn: int = 0) -> Node:
    """Return node number i: 4 cores, 32Gi, 110 pods, one of ten zones; `turn` makes a version with another label."""
    name = f"node-{i:05d}"
    offer: dict[str, Quantity] = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    labels = {HOSTNAME: name, ZONE: f"zone-{i % 10}"}
    if turn:
        labels["turn"] = str(turn % 7)
    return Node(
        metadata=ObjectMeta(name=name, uid=f"node-uid-{i}", labels=labels),
        spec=NodeSpec(),
        status=NodeStatus(capacity=offer, allocatable=offer, conditions=(NodeCondition(type="Ready", status="True"),)),
    )


def init_pod(i: int, n_nodes: int) -> Pod:
    """Return a plain pod that runs already, on node i mod n."""
    return Pod(
        metadata=ObjectMeta(name=f"init-{i}", namespace=NAMESPACE, uid=f"init-uid-{i}", labels={"color": "blue"}),
        spec=PodSpec(containers=(Container(name="pause", image="registry.k8s.io/pause:3.10"),),
                     node_name=f"node-{i % n_nodes:05d}"),
    )


def pod(i: int, kind: str, *, extra_label: str = "") -> Pod:
    """Return pod number i of a kind; all are 100m and 500Mi."""
    if kind == "mixed":
        kind = _MIXED[i % len(_MIXED)]
    labels = {"color": "green" if kind == "antiaffinity" else "blue"}
    if extra_label:
        labels["class"] = extra_label
    return Pod(
        metadata=ObjectMeta(name=f"pod-{i}", namespace=NAMESPACE, uid=f"pod-uid-{i}", labels=labels),
        spec=PodSpec(
            containers=(Container(name="pause", image="registry.k8s.io/pause:3.10", resources=_ASKED),),
            affinity=_affinity(kind),
            topology_spread_constraints=_spread(kind),
            scheduler_name="default-scheduler",
        ),
    )


def cluster(kind: str, n_nodes: int, n_init: int, n_pods: int) -> Iterator[TopLevel]:
    """Yield what is there before the first pod is scheduled."""
    for i in range(n_nodes):
        yield node(i)
    for i in range(n_init):
        yield init_pod(i, n_nodes)


def pods(n: int, kind: str) -> Iterator[Pod]:
    """Yield the measured pods of a kind; with churn, every tenth begins a class of its own."""
    for i in range(n):
        yield pod(i, kind, extra_label=f"c{i // 10}" if kind == "churn" and i % 10 == 9 else "")


def _spread(kind: str) -> tuple[TopologySpreadConstraint, ...]:
    if kind not in ("spread", "softspread"):
        return ()
    action = "DoNotSchedule" if kind == "spread" else "ScheduleAnyway"
    return (TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=action, label_selector=_BLUE),)


def _affinity(kind: str) -> Affinity | None:
    if kind == "affinity":
        return Affinity(pod_affinity=PodAffinity(required=(PodAffinityTerm(label_selector=_BLUE, topology_key=ZONE),)))
    if kind == "antiaffinity":
        term = PodAffinityTerm(label_selector=_GREEN, topology_key=HOSTNAME)
        return Affinity(pod_anti_affinity=PodAffinity(required=(term,)))
    if kind == "prefaffinity":
        term = PodAffinityTerm(label_selector=_BLUE, topology_key=HOSTNAME)
        wish = WeightedPodAffinityTerm(weight=1, pod_affinity_term=term)
        return Affinity(pod_affinity=PodAffinity(preferred=(wish,)))
    return None
