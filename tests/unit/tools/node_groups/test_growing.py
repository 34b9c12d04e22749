"""Plans and capacities on clusters that may grow, and nodes that could go."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.kube.api.meta import OwnerReference
from kubesched.kube.api.pod import Pod
from kubesched.scheduler import config
from kubesched.scheduler.engine.assembly import Ports, default_configuration
from kubesched.scheduler.engine.loop import Engine
from kubesched.solver.node_groups import NodeGroup
from kubesched.solver.node_groups.sizes import make_node
from kubesched.testing import node, pod
from kubesched.tools.plan.capacity import measure
from kubesched.tools.plan.manifests import Manifest
from kubesched.tools.plan.planning import make_plan
from kubesched.tools.snapshots.captured import Captured

SMALL = NodeGroup(name="small", capacity={"cpu": 4, "memory": "16Gi"}, price=1.0, max=10)
LARGE = NodeGroup(name="large", capacity={"cpu": 16, "memory": "64Gi"}, price=5.0, max=10)


def engine(cluster: Captured, ports: Ports) -> Engine:
    gates = config.Gates.defaults()
    return cluster.engine(default_configuration(gates), gates, ports=ports)


def workload(kind: str, name: str, cpu: str, replicas: int = 1) -> Manifest:
    labels = {"app": name}
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    spec: dict[str, Any] = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    if kind == "Deployment":
        spec["replicas"] = replicas
    return Manifest("x.yaml", {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})


def running(name: str, cpu: str, on: str) -> Pod:
    made = pod(name, requests={"cpu": cpu}, on=on, labels={"app": "x"})
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="x", uid="x", controller=True)
    return replace(made, metadata=replace(made.metadata, owner_references=(owner,)))


def test_a_plan_adds_the_nodes_that_its_pods_need_and_places_them_there() -> None:
    asked = [workload("DaemonSet", "agent", "1"), workload("Deployment", "web", "1", 9)]
    plan = make_plan(Captured(5.0, [node("n", cpu="3")]), asked, engine, groups=[SMALL, LARGE])
    assert plan.added is not None and not plan.pending
    assert [each.group for each in plan.added] == ["small"] * 3 and sum(each.n_pods for each in plan.added) == 7
    assert max(each.n_pods for each in plan.added) <= 3  # beside an agent on each
    assert plan.as_dict()["pricePerHour"] == 3.0 and len(plan.zones) == 4


def test_pods_that_no_node_helps_stay_pending_and_add_none() -> None:
    plan = make_plan(Captured(5.0, []), [workload("Deployment", "web", "32", 2)], engine, groups=[SMALL, LARGE])
    assert plan.added == [] and len(plan.pending) == 2


def test_pods_that_wait_in_the_cluster_are_helped_without_manifests() -> None:
    plan = make_plan(Captured(5.0, [node("n", cpu="1"), pod("w", requests={"cpu": "2"})]), [], engine, groups=[SMALL])
    assert plan.others[0].node == "small-0" and plan.added is not None and len(plan.added) == 1


def test_a_capacity_grows_until_every_group_is_at_its_max() -> None:
    groups = [replace(SMALL, max=2), replace(LARGE, max=1)]
    found = measure(Captured(5.0, [node("n", cpu="3")]), [workload("Deployment", "web", "1")], engine, groups=groups)
    assert (found.count, found.added, found.price) == (3 + 2 * 4 + 16, {"large": 1, "small": 2}, 7.0)
    assert found.stopped_by is not None and "Insufficient cpu" in found.stopped_by.message
    limited = measure(Captured(5.0, []), [workload("Deployment", "web", "1")], engine, groups=groups, limit=3)
    assert (limited.count, limited.added, limited.is_limited) == (3, {"small": 1}, True)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([("a", "3", "large-0"), ("b", "2", "small-0")], [("large-0", "small", ("default/a",), 4.0)]),
        ([("a", "1", "small-0"), ("b", "1", "small-1")], [("large-0", "", (), 5.0), ("small-0", "", ("default/a",), 1.0)]),
        ([("a", "14", "large-0"), ("b", "4", "small-0"), ("c", "4", "small-1")], []),
    ],
    ids=["a cheaper node instead", "the least used go first, and one stays for what is left", "all are needed"],
)
def test_nodes_that_could_go(pods: list[tuple[str, str, str]], expected: list[tuple[Any, ...]]) -> None:
    nodes = [make_node(LARGE, 0), make_node(SMALL, 0), make_node(SMALL, 1)]
    if pods[0][2] == "large-0" and len(pods) == 2:
        nodes.pop()
    objects = [*nodes, *(running(*each) for each in pods)]
    plan = make_plan(Captured(5.0, objects), [], engine, groups=[SMALL, LARGE], consolidates=True)
    assert plan.spared is not None
    assert [(each.name, each.replaced_by, each.moves, each.saves) for each in plan.spared] == expected


def test_a_group_is_not_emptied_below_its_min() -> None:
    objects = [make_node(SMALL, 0), make_node(SMALL, 1)]
    plan = make_plan(Captured(5.0, objects), [], engine, groups=[replace(SMALL, min=1)], consolidates=True)
    assert plan.spared is not None and [each.name for each in plan.spared] == ["small-0"]
