"""A plan overbooks no node and loses no pod, whatever is asked for and whoever has to go for it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.kube.values.quantity import parse
from kubesched.scheduler import config
from kubesched.scheduler.engine.assembly import Ports, default_configuration
from kubesched.scheduler.engine.loop import Engine
from kubesched.testing import node, pod
from kubesched.tools.plan.capacity import measure
from kubesched.tools.plan.manifests import Manifest
from kubesched.tools.plan.planning import make_plan
from kubesched.tools.snapshots.captured import Captured

_GATES = config.Gates.defaults()
_CONFIGURATION = default_configuration(_GATES)
_NODES = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 6)), min_size=1, max_size=5)
_CLASSES = {"low": 1, "high": 100}


def engine(cluster: Captured, ports: Ports) -> Engine:
    return cluster.engine(_CONFIGURATION, _GATES, ports=ports)


@st.composite
def clusters(draw: st.DrawFn) -> Captured:
    """Nodes, pods that fit on them, and a few that wait."""
    objects: list[Any] = []
    for number, (cpu, room) in enumerate(draw(_NODES)):
        objects.append(node(f"n{number}", cpu=str(cpu), pods=room, zone=f"z{number % 2}"))
        left = cpu
        for at in range(draw(st.integers(0, room))):
            asked = draw(st.integers(0, left))
            left -= asked
            objects.append(
                pod(
                    f"old-{number}-{at}",
                    on=f"n{number}",
                    requests={"cpu": str(asked)},
                    priority=draw(st.sampled_from([0, 1, 50])),
                )
            )
    for number in range(draw(st.integers(0, 2))):
        objects.append(pod(f"waits-{number}", requests={"cpu": str(draw(st.integers(1, 8)))}, priority=50))
    return Captured(5.0, objects)


@st.composite
def workloads(draw: st.DrawFn) -> list[Manifest]:
    """Deployments, Jobs and DaemonSets of several sizes and priorities."""
    found = [
        Manifest(
            "classes",
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value},
        )
        for name, value in _CLASSES.items()
    ]
    for number in range(draw(st.integers(1, 3))):
        kind, labels = draw(st.sampled_from(["Deployment", "Job", "DaemonSet"])), {"app": f"w{number}"}
        spec: dict[str, Any] = {
            "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": str(draw(st.integers(0, 4)))}}}]
        }
        if draw(st.booleans()):
            spec["priorityClassName"] = draw(st.sampled_from(sorted(_CLASSES)))
        template = {"metadata": {"labels": labels}, "spec": spec}
        if kind == "Job":
            spec["restartPolicy"] = "Never"
            outer: dict[str, Any] = {"parallelism": draw(st.integers(0, 6)), "completions": 6, "template": template}
        else:
            outer = {"selector": {"matchLabels": labels}, "template": template}
            if kind == "Deployment":
                outer["replicas"] = draw(st.integers(0, 8))
        version = "batch/v1" if kind == "Job" else "apps/v1"
        found.append(Manifest("x", {"apiVersion": version, "kind": kind, "metadata": {"name": f"w{number}"}, "spec": outer}))
    return found


def asked(each: Pod) -> int:
    return sum(parse(c.resources.requests.get("cpu", "0")) for c in each.spec.containers)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(clusters(), workloads())
def test_a_plan_overbooks_no_node_and_loses_no_pod(cluster: Captured, manifests: list[Manifest]) -> None:
    plan = make_plan(cluster, manifests, engine)
    gone = {victim.pod.uid for victim in plan.victims}
    nodes = {each.name: each for each in cluster.of(Node)}
    on: dict[str, list[Pod]] = {name: [] for name in nodes}
    for each in cluster.of(Pod):
        if each.spec.node_name and each.uid not in gone:
            on[each.spec.node_name].append(each)
    for planned in [*plan.placed, *(other for other in plan.others if other.node)]:
        on[planned.node].append(planned.pod)
    for name, pods in on.items():
        assert sum(map(asked, pods)) <= parse(nodes[name].status.allocatable["cpu"])
        assert len(pods) <= int(nodes[name].status.allocatable["pods"])
    wanted = Counter[str]()
    for manifest in manifests:
        spec, name = manifest.content.get("spec", {}), manifest.content["metadata"]["name"]
        if manifest.kind != "PriorityClass":
            wanted[name] = {"Deployment": spec.get("replicas"), "Job": spec.get("parallelism"), "DaemonSet": len(nodes)}[
                manifest.kind
            ]
    assert {each.name: len(each.placed) + len(each.pending) for each in plan.workloads} == dict(wanted)
    assert all(each.why for each in plan.pending)
    assert {each.key for each in plan.others} == {each.key for each in cluster.of(Pod) if not each.spec.node_name}
    assert len(gone) == len(plan.victims), "nobody goes twice"


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(clusters(), st.integers(1, 4))
def test_a_capacity_is_what_the_nodes_have_left(cluster: Captured, cpu: int) -> None:
    spec = {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": str(cpu)}}}]}
    asks = Manifest("x", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    found = measure(cluster, [asks], engine)
    fits = {}
    for each in cluster.of(Node):
        there = [one for one in cluster.of(Pod) if one.spec.node_name == each.name]
        free = (parse(each.status.allocatable["cpu"]) - sum(map(asked, there))) // parse(str(cpu))
        fits[each.name] = min(free, int(each.status.allocatable["pods"]) - len(there))
    assert found.nodes == {name: count for name, count in sorted(fits.items()) if count}
