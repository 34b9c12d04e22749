"""Pods as controllers make them, and pods that are not alike: what `bench engine` measures beside scheduler_perf's own kinds.

In: a kind, numbers. Out: API objects. Everything follows from the arguments. A ReplicaSet has fifty pods behind a Service, an
app with spread constraints of its own ten; a StatefulSet's and an indexed Job's pods each carry their number as a label (apart:
and none of the StatefulSet may share its node with another), a DaemonSet's are each pinned to a node by name, a gang's come
eight at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kubesched.kube.api.apps import ReplicaSet, ReplicaSetSpec, StatefulSet, StatefulSetSpec
from kubesched.kube.api.core import Service, ServiceSpec
from kubesched.kube.api.meta import LabelSelector, ObjectMeta, OwnerReference, TopLevel
from kubesched.kube.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.kube.api.pod import (
    Affinity,
    Container,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSchedulingGroup,
    PodSpec,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
)
from kubesched.kube.api.workload import GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec
from kubesched.kube.values.well_known import HOSTNAME, ZONE

KINDS = ("owned", "statefulset", "apart", "indexed-job", "daemonset", "gang", "unlike", "appspread")
NAMESPACE = "sched-0"
PER_OWNER, PER_APP, PER_GANG = 50, 10, 8
_ASKED = ("100m", "500Mi")


def objects(kind: str, n_pods: int) -> Iterator[TopLevel]:
    """Yield what the pods of a kind need beside nodes: their owners, services and groups."""
    if kind == "owned":
        for app in _numbers(n_pods, PER_OWNER):
            labels = {"app": f"app-{app}"}
            yield ReplicaSet(metadata=_meta(f"app-{app}"), spec=ReplicaSetSpec(selector=LabelSelector(match_labels=labels)))
            yield Service(metadata=_meta(f"app-{app}"), spec=ServiceSpec(selector=labels))
    elif kind in ("statefulset", "apart"):
        for app in _numbers(n_pods, PER_OWNER):
            labels = {"app": f"app-{app}"}
            yield StatefulSet(metadata=_meta(f"app-{app}"), spec=StatefulSetSpec(selector=LabelSelector(match_labels=labels)))
            yield Service(metadata=_meta(f"app-{app}"), spec=ServiceSpec(selector=labels))
    elif kind == "gang":
        for app in _numbers(n_pods, PER_GANG):
            policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=min(PER_GANG, n_pods - app * PER_GANG)))
            yield PodGroup(metadata=_meta(f"gang-{app}"), spec=PodGroupSpec(scheduling_policy=policy))


def _numbers(n_pods: int, each: int) -> range:
    return range((n_pods + each - 1) // each)


def _meta(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=NAMESPACE, uid=f"{name}-uid")


def pod(i: int, kind: str, n_nodes: int) -> Pod:
    """Return pod number i of a kind."""
    return _MAKERS[kind](i, n_nodes)


def _owned(i: int, n_nodes: int) -> Pod:
    return _pod(i, {"app": f"app-{i // PER_OWNER}"}, owner=("apps/v1", "ReplicaSet", f"app-{i // PER_OWNER}"))


def _stateful(i: int, n_nodes: int, affinity: Affinity | None = None) -> Pod:
    app, number = divmod(i, PER_OWNER)
    labels = {
        "app": f"app-{app}",
        "statefulset.kubernetes.io/pod-name": f"app-{app}-{number}",
        "apps.kubernetes.io/pod-index": str(number),
    }
    return _pod(i, labels, affinity=affinity, owner=("apps/v1", "StatefulSet", f"app-{app}"))


def _apart(i: int, n_nodes: int) -> Pod:
    own = LabelSelector(match_labels={"app": f"app-{i // PER_OWNER}"})
    term = PodAffinityTerm(label_selector=own, topology_key=HOSTNAME)
    return _stateful(i, n_nodes, Affinity(pod_anti_affinity=PodAffinity(required=(term,))))


def _indexed(i: int, n_nodes: int) -> Pod:
    job, number = divmod(i, PER_OWNER)
    labels = {"batch.kubernetes.io/job-name": f"job-{job}", "batch.kubernetes.io/job-completion-index": str(number)}
    return _pod(i, labels, owner=("batch/v1", "Job", f"job-{job}"))


def _pinned(i: int, n_nodes: int) -> Pod:
    wanted = NodeSelectorRequirement(key="metadata.name", operator="In", values=(f"node-{i % n_nodes:05d}",))
    term = NodeSelectorTerm(match_fields=(wanted,))
    affinity = Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=(term,))))
    name = f"agent-{i // n_nodes}"
    return _pod(i, {"app": name}, affinity=affinity, owner=("apps/v1", "DaemonSet", name), tolerations=_DAEMON_TOLERATIONS)


def _ganged(i: int, n_nodes: int) -> Pod:
    return _pod(i, {"app": "gang"}, group=PodSchedulingGroup(pod_group_name=f"gang-{i // PER_GANG}"))


def unlike(i: int) -> Pod:
    """Return a pod of class i: app-i, 50m to 249m, 200Mi to 799Mi; no two of 120,000 numbers ask for the same."""
    cpu, memory = 50 + i % 200, 200 + (i // 200 * 7 + i) % 600
    return _pod(i, {"app": f"app-{i}"}, asked=(f"{cpu}m", f"{memory}Mi"))


def _app(i: int, n_nodes: int) -> Pod:
    labels = {"app": f"app-{i // PER_APP}"}
    selector = LabelSelector(match_labels=labels)
    hard = TopologySpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule", label_selector=selector)
    soft = TopologySpreadConstraint(
        max_skew=1, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway", label_selector=selector
    )
    return _pod(i, labels, spread=(hard, soft))


_MAKERS: dict[str, Callable[[int, int], Pod]] = {
    "owned": _owned,
    "statefulset": _stateful,
    "apart": _apart,
    "indexed-job": _indexed,
    "daemonset": _pinned,
    "gang": _ganged,
    "unlike": lambda i, n_nodes: unlike(i),
    "appspread": _app,
}
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


def _pod(
    i: int,
    labels: dict[str, str],
    *,
    asked: tuple[str, str] = _ASKED,
    owner: tuple[str, str, str] | None = None,
    affinity: Affinity | None = None,
    tolerations: tuple[Toleration, ...] = (),
    spread: tuple[TopologySpreadConstraint, ...] = (),
    group: PodSchedulingGroup | None = None,
) -> Pod:
    owners: tuple[OwnerReference, ...] = ()
    if owner is not None:
        version, kind, name = owner
        owners = (OwnerReference(api_version=version, kind=kind, name=name, uid=f"{name}-uid", controller=True),)
    return Pod(
        metadata=ObjectMeta(name=f"pod-{i}", namespace=NAMESPACE, uid=f"pod-uid-{i}", labels=labels, owner_references=owners),
        spec=PodSpec(
            containers=(
                Container(
                    name="pause",
                    image="registry.k8s.io/pause:3.10",
                    resources=ResourceRequirements(requests={"cpu": asked[0], "memory": asked[1]}),
                ),
            ),
            affinity=affinity,
            tolerations=tolerations,
            topology_spread_constraints=spread,
            scheduling_group=group,
            scheduler_name="default-scheduler",
        ),
    )
