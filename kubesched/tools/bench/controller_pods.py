"""Pods as controllers make them, and pods that are not alike: what `bench engine` measures beside scheduler_perf's own kinds.

In: a kind, numbers. Out: API objects. Everything follows from the arguments. A ReplicaSet has fifty pods behind a Service, an
app with spread constraints of its own ten; a StatefulSet's and an indexed Job's pods each carry their number as a label (apart:
and none of the StatefulSet may share its node with another), a DaemonSet's are each pinned to a node by name, a gang's come
eight at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.kube.api import (
    Affinity,
    GangSchedulingPolicy,
    LabelSelector,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    PodSchedulingGroup,
    ReplicaSet,
    ReplicaSetSpec,
    ResourceRequirements,
    Service,
    ServiceSpec,
    StatefulSet,
    StatefulSetSpec,
    Toleration,
    TopLevel,
    TopologySpreadConstraint,
)
from kubesched.kube.values import HOSTNAME, ZONE
from kubesched.tools.bench.builders import NAMESPACE, make_pod

KINDS = ("owned", "statefulset", "apart", "indexed-job", "daemonset", "gang", "unlike", "appspread")
PER_OWNER, PER_APP, PER_GANG = 50, 10, 8
_DAEMON_TOLERATIONS = tuple(
    Toleration(key=f"node.kubernetes.io/{key}", operator="Exists", effect=effect)
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)


def objects(kind: str, n_pods: int) -> Iterator[TopLevel]:
    """Yield what the pods of a kind need beside nodes: their owners, services and groups."""
    if kind in ("owned", "statefulset", "apart"):
        for app in range(-(-n_pods // PER_OWNER)):
            labels, meta = {"app": f"app-{app}"}, _meta(f"app-{app}")
            selector = LabelSelector(match_labels=labels)
            if kind == "owned":
                yield ReplicaSet(metadata=meta, spec=ReplicaSetSpec(selector=selector))
            else:
                yield StatefulSet(metadata=meta, spec=StatefulSetSpec(selector=selector))
            yield Service(metadata=meta, spec=ServiceSpec(selector=labels))
    elif kind == "gang":
        for gang in range(-(-n_pods // PER_GANG)):
            policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=min(PER_GANG, n_pods - gang * PER_GANG)))
            yield PodGroup(metadata=_meta(f"gang-{gang}"), spec=PodGroupSpec(scheduling_policy=policy))


def _meta(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=NAMESPACE, uid=f"{name}-uid")


def pod(i: int, kind: str, n_nodes: int) -> Pod:
    """Return pod number i of a kind."""
    app, number = divmod(i, PER_OWNER)
    labels = {"app": f"app-{app}"}
    match kind:
        case "owned":
            return make_pod(i, labels, owner=("apps/v1", "ReplicaSet", f"app-{app}"))
        case "statefulset" | "apart":
            affinity = None
            if kind == "apart":
                term = PodAffinityTerm(label_selector=LabelSelector(match_labels=labels), topology_key=HOSTNAME)
                affinity = Affinity(pod_anti_affinity=PodAffinity(required=(term,)))
            of_set = {
                "statefulset.kubernetes.io/pod-name": f"app-{app}-{number}",
                "apps.kubernetes.io/pod-index": str(number),
            }
            return make_pod(i, labels | of_set, affinity=affinity, owner=("apps/v1", "StatefulSet", f"app-{app}"))
        case "indexed-job":
            of_job = {"batch.kubernetes.io/job-name": f"job-{app}", "batch.kubernetes.io/job-completion-index": str(number)}
            return make_pod(i, of_job, owner=("batch/v1", "Job", f"job-{app}"))
        case "daemonset":
            own_node = NodeSelectorRequirement(key="metadata.name", operator="In", values=(f"node-{i % n_nodes:05d}",))
            terms = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(own_node,)),))
            affinity = Affinity(node_affinity=NodeAffinity(required=terms))
            agent = f"agent-{i // n_nodes}"
            owner = ("apps/v1", "DaemonSet", agent)
            return make_pod(i, {"app": agent}, affinity=affinity, owner=owner, tolerations=_DAEMON_TOLERATIONS)
        case "gang":
            return make_pod(i, {"app": "gang"}, scheduling_group=PodSchedulingGroup(pod_group_name=f"gang-{i // PER_GANG}"))
        case "appspread":
            labels = {"app": f"app-{i // PER_APP}"}
            spread = tuple(
                TopologySpreadConstraint(
                    max_skew=1, topology_key=key, when_unsatisfiable=action, label_selector=LabelSelector(match_labels=labels)
                )
                for key, action in ((ZONE, "DoNotSchedule"), (HOSTNAME, "ScheduleAnyway"))
            )
            return make_pod(i, labels, topology_spread_constraints=spread)
    return unlike(i)


def unlike(i: int) -> Pod:
    """Return a pod of class i: app-i, 50m to 249m, 200Mi to 799Mi; no two of 120,000 numbers ask for the same."""
    cpu, memory = 50 + i % 200, 200 + (i // 200 * 7 + i) % 600
    return make_pod(i, {"app": f"app-{i}"}, ResourceRequirements(requests={"cpu": f"{cpu}m", "memory": f"{memory}Mi"}))
