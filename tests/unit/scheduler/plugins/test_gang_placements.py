"""Placements of pod groups: which domains come into question, and which of them is best."""

from typing import Any

import pytest

from kubesched.kube.api.meta import ObjectMeta
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.workload import PodGroup, PodGroupSchedulingConstraints, PodGroupSpec, TopologyConstraint
from kubesched.scheduler.cluster import GroupKey, Store
from kubesched.scheduler.config.releases.gates import Gates
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework import Status
from kubesched.scheduler.framework.grouping import WORKLOAD, Placement, Proposal
from kubesched.scheduler.plugins.node_resources_fit.plugin import NodeResourcesFit, NodeResourcesFitArgs
from kubesched.scheduler.plugins.pod_group_pods_count import PodGroupPodsCount
from kubesched.scheduler.plugins.topology_placement_generator import TopologyPlacementGenerator
from kubesched.testing import check_plugin, node, pod

KEY = GroupKey(WORKLOAD, "default", "g")
RACK = "rack"


def cluster(*objects: Any, topology: str = RACK) -> tuple[Store, EngineHandle]:
    """Return a store in which every pod is of the group g."""
    store = Store()
    store.groups.read_with([lambda view: KEY])
    constraints = PodGroupSchedulingConstraints(topology=(TopologyConstraint(key=topology),)) if topology else None
    store.objects.put(
        PodGroup(metadata=ObjectMeta(name="g", namespace="default"), spec=PodGroupSpec(scheduling_constraints=constraints))
    )
    for obj in objects:
        if isinstance(obj, Pod):
            store.groups.put(store.put_pod(obj) if obj.spec.node_name else store.view(obj))
        else:
            store.put_node(obj)
    return store, EngineHandle(store.objects, groups=store.groups)


def racks(**names: str) -> list[Any]:
    return [node(name, labels={RACK: value} if value else {}) for name, value in names.items()]


def placements(*objects: Any, topology: str = RACK) -> Any:
    store, handle = cluster(*objects, topology=topology)
    nodes = store.snapshot()
    found = TopologyPlacementGenerator(None, handle).generate_placements(KEY, nodes)
    if isinstance(found, Status):
        return found.message
    return {p.name: None if p.rows is None else sorted(nodes.name(int(row)) for row in p.rows) for p in found}


OLD = "cannot determine domain for already scheduled pods: "
CASES = [
    (
        "one placement a value, nodes without the label left out",
        racks(a="r1", b="r2", c="r1", d=""),
        {"r1": ["a", "c"], "r2": ["b"]},
    ),
    ("pods without a place restrict nothing", [*racks(a="r1", b="r2"), pod("p")], {"r1": ["a"], "r2": ["b"]}),
    ("the group stays where its pods are", [*racks(a="r1", b="r2", c="r2"), pod("p", on="b")], {"r2": ["b", "c"]}),
    ("no node has the label", racks(a=""), {}),
    (
        "pods in two domains",
        [*racks(a="r2", b="r1"), pod("p", on="a"), pod("q", on="b")],
        OLD + "more than 1 domain found for pod group: r1, r2",
    ),
    (
        "a pod on a node without the label",
        [*racks(a="r1", b=""), pod("p", on="b")],
        OLD + "no topology domain found for pod default/p",
    ),
    (
        "a pod on a node that is gone",
        [*racks(a="r1"), pod("p", on="gone")],
        OLD + 'getting node for pod default/p: nodeinfo not found for node name "gone"',
    ),
]


@pytest.mark.parametrize(("objects", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_placements(objects: list[Any], expected: Any) -> None:
    assert placements(*objects) == expected


def test_a_group_that_asks_for_no_topology_may_lie_anywhere() -> None:
    assert placements(*racks(a="r1"), topology="") == {"": None}


def test_a_group_that_is_not_known_cannot_be_placed() -> None:
    found = TopologyPlacementGenerator(None, EngineHandle(Store().objects)).generate_placements(KEY, Store().snapshot())
    assert isinstance(found, Status) and not found.is_rejected


def test_more_pods_are_better() -> None:
    store, handle = cluster(*racks(a="r1"), pod("p", on="a"), pod("q"))
    plugin, nodes = PodGroupPodsCount(None, handle), store.snapshot()
    two = Proposal(Placement("r1"), ((store.view(pod("q")), "a"), (store.view(pod("r")), "a")))
    assert plugin.score_placement(KEY, two, nodes) == 3, "the one that has a place counts as well"
    assert plugin.normalize_placements([10, 50, 110]) == [9, 45, 100]
    nothing = plugin.normalize_placements([0, 0])
    assert isinstance(nothing, Status)
    assert nothing.message == "no pods from pod group are assigned to any of the candidate placements"


@pytest.mark.parametrize(("rows", "n_pods", "expected"), [([0], 1, 75), ([1], 2, 37), ([1, 0], 2, 41), (None, 2, 41)])
def test_the_fuller_placement_is_better(rows: Any, n_pods: int, expected: int) -> None:
    # a offers 4 of cpu and memory and 2 are used, b offers 8 and 1 is used; each pod asks for 1.
    one, two = {"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "2Gi"}
    store, handle = cluster(
        node("a", cpu="4", memory="4Gi"),
        node("b", cpu="8", memory="8Gi"),
        pod("x", on="a", requests=two),
        pod("y", on="b", requests=one),
    )
    plugin = NodeResourcesFit(NodeResourcesFitArgs().defaulted(Gates.defaults()), handle)
    pods = tuple((store.view(pod(f"p{i}", requests=one)), "a") for i in range(n_pods))
    assert plugin.score_placement(KEY, Proposal(Placement("x", rows), pods), store.snapshot()) == expected


@pytest.mark.parametrize("cls", [TopologyPlacementGenerator, PodGroupPodsCount], ids=lambda cls: cls.name)
def test_they_keep_the_contract(cls: Any) -> None:
    check_plugin(cls, seed=2)
