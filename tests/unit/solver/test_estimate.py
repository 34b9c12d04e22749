"""Which nodes to add: exact verdicts on nodes that do not exist yet, cheapest first, and nothing left behind."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.kube.api.meta import OwnerReference
from kubesched.kube.api.pod import Pod
from kubesched.solver.node_groups import NodeGroup
from kubesched.solver.node_groups.daemonset_pods import DaemonSetPods
from kubesched.solver.node_groups.estimate import NewNode, NodeEstimator
from kubesched.solver.node_groups.sizes import GroupSizes, make_node
from kubesched.testing import even, near, node, pod, taint
from kubesched.tools.bench.engine import Bench, build_engine
from kubesched.tools.node_groups import bench

ZONE = "topology.kubernetes.io/zone"


def group(name: str, cpu: str = "4", price: float = 1.0, **fields: Any) -> NodeGroup:
    return NodeGroup(name=name, capacity={"cpu": cpu, "memory": "32Gi"}, price=price, **{"max": 100, **fields})


def pods(n: int, cpu: str = "1", **spec: Any) -> list[Pod]:
    return [pod(f"{cpu}-{i}", requests={"cpu": cpu}, labels={"app": "a"}, **spec) for i in range(n)]


def needed(asked: list[Pod], *groups: NodeGroup, there: tuple[Any, ...] = (), **options: Any) -> list[NewNode]:
    engine = build_engine(Bench())
    for obj in there:
        engine.intake.apply(obj.kind, None, obj)
    before = engine.store.n_pods, engine.store.snapshot().n
    daemons = DaemonSetPods(obj for obj in there if isinstance(obj, Pod))
    sizes = GroupSizes(groups, [obj for obj in there if not isinstance(obj, Pod)])
    found = NodeEstimator(engine, sizes, daemons).estimate(asked, **options)
    assert (engine.store.n_pods, engine.store.snapshot().n) == before  # everything was taken back
    assert sum(sizes.n_nodes.values()) - len(found) == sum(
        sizes.of(obj.name) is not None for obj in there if obj.kind == "Node"
    )
    return found


HOSTNAME = "kubernetes.io/hostname"
A = {"app": "a"}
POOL = {"pool": "p", "limits": {"cpu": 4}}
ZONES = {"labels": {ZONE: "z{i%3}"}}
CASES: list[tuple[str, list[Pod], list[NodeGroup], dict[str, int]]] = [
    ("nobody waits", [], [group("a")], {}),
    ("four cores take four pods", pods(8), [group("a")], {"a": 2}),
    ("a group ends at its max", pods(8), [group("a", max=1)], {"a": 1}),
    ("a group of two sizes: the cheaper per pod", pods(8), [group("a"), group("b", "8", 1.5)], {"b": 1}),
    ("the last pod gets the cheapest node", pods(9), [group("a"), group("b", "8", 1.5)], {"a": 1, "b": 1}),
    ("weight goes before price", pods(4), [group("a"), group("b", price=9.0, weight=1)], {"b": 1}),
    ("without prices, what wastes least", pods(3, "2"), [group("a", "16", 0.0), group("b", "6", 0.0)], {"b": 1}),
    ("nothing is large enough", pods(1, "64"), [group("a")], {}),
    ("a taint that nobody tolerates", pods(1), [group("a", taints=(taint("gpu"),))], {}),
    ("what only the large one takes goes first", [*pods(8), *pods(1, "8")], [group("a"), group("b", "16", 5.0)], {"b": 1}),
    ("the limits of a pool end all its groups", pods(8), [group("a", **POOL), group("b", **POOL)], {"a": 1}),
    ("away from each other by host: one a node", pods(3, affinity=near(A, HOSTNAME, away=True)), [group("a")], {"a": 3}),
    ("a host port: one a node", pods(3, host_ports=[80]), [group("a"), group("small", "1", 0.5)], {"small": 3}),
    ("close to each other by zone: one zone", pods(8, affinity=near(A)), [group("a", **ZONES)], {"a": 2}),
    ("even over zones", pods(12, spread=[even(A)]), [group("a", **ZONES)], {"a": 3}),
    ("a zone that is asked for", pods(4, node_selector={ZONE: "z2"}), [group("a", **ZONES)], {"a": 1}),
]


@pytest.mark.parametrize(("asked", "groups", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_nodes_to_add(asked: list[Pod], groups: list[NodeGroup], expected: dict[str, int]) -> None:
    assert dict(Counter(new.group.name for new in needed(asked, *groups))) == expected


def test_pods_that_fit_on_nodes_that_are_there_or_coming_need_no_new_ones() -> None:
    a = group("a")
    there, coming = node("n", cpu="2"), make_node(a, 0)
    assert [len(new.pods) for new in needed(pods(6), a, there=(there,), coming=[coming])] == []
    assert [len(new.pods) for new in needed(pods(7), a, there=(there, coming))] == [1]


def test_where_there_are_two_zones_each_group_gives_its_half() -> None:
    there = tuple(node(zone, cpu="100m", zone=zone) for zone in ("z0", "z1"))
    groups = [group(f"in-{zone}", labels={ZONE: zone}) for zone in ("z0", "z1")]
    found = needed(pods(8, spread=[even(A)]), *groups, there=there)
    assert sorted((new.group.name, len(new.pods)) for new in found) == [("in-z0", 4), ("in-z1", 4)]


def test_daemon_pods_take_their_share_of_a_new_node_first() -> None:
    owner = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="agent", uid="u", controller=True)
    agent = pod("agent-x", requests={"cpu": "2"}, on="n", tolerates=[])
    agent = replace(agent, metadata=replace(agent.metadata, owner_references=(owner,)))
    there = (node("n", cpu="2"), agent)
    assert [len(new.pods) for new in needed(pods(4), group("a"), there=there)] == [2, 2]
    assert [
        len(new.pods) for new in needed(pods(4, tolerates=[taint("x")]), group("a", taints=(taint("x"),)), there=there)
    ] == [4]


def test_alike_nodes_are_booked_as_single_decisions_would(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [*pods(40, "300m"), *pods(30, "1100m"), *pods(25, "700m"), *pods(7, "2")]
    groups = [group("a", **ZONES), group("b", "8", 1.9)]
    together = [(new.name, [each.name for each in new.pods]) for new in needed(asked, *groups)]
    monkeypatch.setattr(NodeEstimator, "_is_about_nodes_alone", lambda self, made: False)
    assert [(new.name, [each.name for each in new.pods]) for new in needed(asked, *groups)] == together


def test_the_benchmark_finds_as_many_nodes_as_the_autoscaler() -> None:
    found = bench.run("basic", 5100)
    assert found["new_nodes"] == 260 and found["on_new_nodes"] == 5099  # a tenth of 51,000 pods on 2,595 nodes, rounded up
    assert bench.run("spread", 510)["new_nodes"] <= 28
