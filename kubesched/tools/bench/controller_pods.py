"""Pods as controllers make them, and pods of which no two are alike, for `bench engine`.

In: a kind and numbers. Out: API objects; the same arguments give the same objects.

    owned         ReplicaSets of 50 pods, each behind a Service
    statefulset   StatefulSets of 50 pods; each pod has its number as a label
    apart         the same, and no two pods of a StatefulSet may share a node
    indexed-job   Jobs of 50 pods; each pod has its number as a label
    daemonset     each pod is pinned to a node by its name
    gang          groups of 8 pods that start together
    unlike        no two pods have the same labels or requests
    appspread     apps of 10 pods, each with spread constraints over zones and nodes
"""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.kube import api
from kubesched.kube.values import HOSTNAME, ZONE
from kubesched.tools.bench.builders import NAMESPACE, make_pod

KINDS = ("owned", "statefulset", "apart", "indexed-job", "daemonset", "gang", "unlike", "appspread")
PER_OWNER, PER_APP, PER_GANG = 50, 10, 8
_DAEMON_TOLERATIONS = tuple(
    api.Toleration(key=f"node.kubernetes.io/{key}", operator="Exists", effect=effect)
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)


def objects(kind: str, n_pods: int) -> Iterator[api.TopLevel]:
    """Yield the objects that pods of a kind need besides nodes: owners, services and groups."""
    if kind in ("owned", "statefulset", "apart"):
        for app in range(-(-n_pods // PER_OWNER)):
            labels, meta = {"app": f"app-{app}"}, _meta(f"app-{app}")
            selector = api.LabelSelector(match_labels=labels)
            if kind == "owned":
                yield api.ReplicaSet(metadata=meta, spec=api.ReplicaSetSpec(selector=selector))
            else:
                yield api.StatefulSet(metadata=meta, spec=api.StatefulSetSpec(selector=selector))
            yield api.Service(metadata=meta, spec=api.ServiceSpec(selector=labels))
    elif kind == "gang":
        for gang in range(-(-n_pods // PER_GANG)):
            policy = api.PodGroupSchedulingPolicy(
                gang=api.GangSchedulingPolicy(min_count=min(PER_GANG, n_pods - gang * PER_GANG))
            )
            yield api.PodGroup(metadata=_meta(f"gang-{gang}"), spec=api.PodGroupSpec(scheduling_policy=policy))


def _meta(name: str) -> api.ObjectMeta:
    return api.ObjectMeta(name=name, namespace=NAMESPACE, uid=f"{name}-uid")


def pod(i: int, kind: str, n_nodes: int) -> api.Pod:
    """Return pod number i of a kind."""
    app, number = divmod(i, PER_OWNER)
    labels = {"app": f"app-{app}"}
    match kind:
        case "owned":
            return make_pod(i, labels, owner=("apps/v1", "ReplicaSet", f"app-{app}"))
        case "statefulset" | "apart":
            affinity = None
            if kind == "apart":
                term = api.PodAffinityTerm(label_selector=api.LabelSelector(match_labels=labels), topology_key=HOSTNAME)
                affinity = api.Affinity(pod_anti_affinity=api.PodAffinity(required=(term,)))
            of_set = {
                "statefulset.kubernetes.io/pod-name": f"app-{app}-{number}",
                "apps.kubernetes.io/pod-index": str(number),
            }
            return make_pod(i, labels | of_set, affinity=affinity, owner=("apps/v1", "StatefulSet", f"app-{app}"))
        case "indexed-job":
            of_job = {"batch.kubernetes.io/job-name": f"job-{app}", "batch.kubernetes.io/job-completion-index": str(number)}
            return make_pod(i, of_job, owner=("batch/v1", "Job", f"job-{app}"))
        case "daemonset":
            own_node = api.NodeSelectorRequirement(key="metadata.name", operator="In", values=(f"node-{i % n_nodes:05d}",))
            terms = api.NodeSelector(node_selector_terms=(api.NodeSelectorTerm(match_fields=(own_node,)),))
            affinity = api.Affinity(node_affinity=api.NodeAffinity(required=terms))
            agent = f"agent-{i // n_nodes}"
            owner = ("apps/v1", "DaemonSet", agent)
            return make_pod(i, {"app": agent}, affinity=affinity, owner=owner, tolerations=_DAEMON_TOLERATIONS)
        case "gang":
            return make_pod(i, {"app": "gang"}, scheduling_group=api.PodSchedulingGroup(pod_group_name=f"gang-{i // PER_GANG}"))
        case "appspread":
            labels = {"app": f"app-{i // PER_APP}"}
            spread = tuple(
                api.TopologySpreadConstraint(
                    max_skew=1,
                    topology_key=key,
                    when_unsatisfiable=action,
                    label_selector=api.LabelSelector(match_labels=labels),
                )
                for key, action in ((ZONE, "DoNotSchedule"), (HOSTNAME, "ScheduleAnyway"))
            )
            return make_pod(i, labels, topology_spread_constraints=spread)
    return unlike(i)


def unlike(i: int) -> api.Pod:
    """Return a pod of equivalence class i: app-i, 50m to 249m, 200Mi to 799Mi. Among 120,000 no two have the same requests."""
    cpu, memory = 50 + i % 200, 200 + (i // 200 * 7 + i) % 600
    return make_pod(i, {"app": f"app-{i}"}, api.ResourceRequirements(requests={"cpu": f"{cpu}m", "memory": f"{memory}Mi"}))
