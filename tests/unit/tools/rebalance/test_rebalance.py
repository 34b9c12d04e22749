"""Rebalancing: who may be moved, what each goal finds, and that every move lands as predicted."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.kube.api import codec
from kubesched.kube.api.meta import OwnerReference
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.scheduler import config
from kubesched.scheduler.engine.assembly import Ports, default_configuration
from kubesched.scheduler.engine.loop import Engine
from kubesched.testing import node, pod
from kubesched.tools.rebalance import goals
from kubesched.tools.rebalance.board import Board
from kubesched.tools.rebalance.goals import MovePlan
from kubesched.tools.rebalance.proof import prove
from kubesched.tools.simulation.clock import EPOCH
from kubesched.tools.snapshots.captured import Captured

PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
_with = msgspec.structs.replace


def owned(name: str, on: str, cpu: str = "1", kind: str = "ReplicaSet", owner: str = "web", **more: Any) -> Pod:
    made = pod(name, on=on, requests={"cpu": cpu}, labels={"app": owner}, **more)
    reference = OwnerReference(api_version="apps/v1", kind=kind, name=owner, uid=f"uid-{owner}", controller=True)
    return _with(made, metadata=_with(made.metadata, owner_references=(reference,)))


def budget(allowed: int) -> Any:
    return codec.decode(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": allowed},
        }
    )


class Cluster:
    """A captured cluster, and how it is decided."""

    def __init__(self, *objects: Any, configuration: str = "") -> None:
        self.captured = Captured(EPOCH, list(objects))
        self._gates = config.Gates.defaults()
        self._configuration = configuration

    def engine(self, cluster: Captured, ports: Ports | None = None) -> Engine:
        found = default_configuration(self._gates)
        if self._configuration:
            from kubesched.scheduler.engine.assembly import registry_with
            from kubesched.scheduler.framework.runtime.building import catalogue

            found = config.load(self._configuration, gates=self._gates, registry=catalogue(registry_with()))
        return cluster.engine(found, self._gates, ports=ports)

    def board(self) -> Board:
        return Board(self.engine(self.captured))

    def prove(self, plan: MovePlan) -> tuple[int, str]:
        return prove(self.captured, plan, self.engine)

    def after(self, plan: MovePlan) -> Cluster:
        """Return the cluster that a plan leaves."""
        moved = {move.key: move.targets[0] for move in plan.moves}
        objects = []
        for obj in self.captured.objects:
            if isinstance(obj, Pod) and obj.key in moved:
                obj = _with(obj, spec=_with(obj.spec, node_name=moved[obj.key]))
            elif isinstance(obj, Node) and obj.metadata.name in plan.closed:
                obj = _with(obj, spec=_with(obj.spec, unschedulable=True))
            objects.append(obj)
        return Cluster(*objects, configuration=self._configuration)


STAYS = [
    ("a bare pod", pod("p", on="a"), "nobody would replace it"),
    ("a DaemonSet's pod", owned("p", "a", kind="DaemonSet"), "it belongs to its node"),
    ("a pod with a system priority", owned("p", "a", priority=2_000_001_000), "it has a system priority"),
    ("data on the node", owned("p", "a", volumes=[{"name": "v", "emptyDir": {}}]), "it keeps data on its node"),
    ("a pod that is going", owned("p", "a", deleted_at="2026-01-01T00:00:00Z"), "it is on its way out"),
    ("a foreign scheduler's pod", owned("p", "a", scheduler="other"), "its scheduler other is not configured here"),
]


@pytest.mark.parametrize(("why", "made", "expected"), STAYS, ids=[case[0] for case in STAYS])
def test_who_stays(why: str, made: Pod, expected: str) -> None:
    plan = goals.off_node(Cluster(node("a"), node("b"), made).board(), "a", 9)
    assert (plan.moves, plan.stays) == ([], [("default/p", expected)])


def test_a_budget_is_used_up() -> None:
    cluster = Cluster(node("a"), node("b"), budget(1), *(owned(f"p{i}", "a") for i in range(3)))
    plan = goals.off_node(cluster.board(), "a", 9)
    assert [move.key for move in plan.moves] == ["default/p0"]
    assert {why for _, why in plan.stays} == {"its disruption budget default/b allows no more"}


def test_off_a_node_and_proven() -> None:
    cluster = Cluster(node("a"), node("b"), node("c"), *(owned(f"p{i}", "a") for i in range(4)))
    plan = goals.off_node(cluster.board(), "a", 9)
    assert len(plan.moves) == 4 and plan.closed == ["a"] and cluster.prove(plan) == (4, "")
    assert goals.off_node(cluster.after(plan).board(), "a", 9).moves == []


def test_fewer_nodes_are_found_where_the_scheduler_packs_and_not_where_it_spreads() -> None:
    objects = [node(name) for name in "abcd"] + [owned(f"p{i}", name) for i, name in enumerate("abc")]
    packing = Cluster(*objects, configuration=PACKING)
    plan = goals.fewer_nodes(packing.board(), 9)
    assert plan.gain == "2 of 3 used nodes become empty" and packing.prove(plan) == (2, "")
    assert goals.fewer_nodes(packing.after(plan).board(), 9).moves == []
    assert goals.fewer_nodes(Cluster(*objects).board(), 9).moves == [], "the default puts the replacement on an empty node"
    assert goals.fewer_nodes(packing.board(), 1).moves == [] or len(goals.fewer_nodes(packing.board(), 1).moves) == 1


def test_even_zones() -> None:
    nodes = [node(f"{zone}{i}", zone=zone) for zone in ("x", "y") for i in range(2)]
    cluster = Cluster(*nodes, *(owned(f"p{i}", "x0" if i < 3 else "x1") for i in range(6)))
    plan = goals.even_zones(cluster.board(), 9)
    # One more would find its own node as good as any other.
    assert plan.gain == "the widest gap between zones goes from 6 to 2" and len(plan.moves) == 2
    assert cluster.prove(plan) == (2, "")
    assert goals.even_zones(cluster.after(plan).board(), 9).moves == []


def test_room_for_a_pod_that_waits() -> None:
    large = pod("large", requests={"cpu": "4"})
    cluster = Cluster(node("a"), node("b"), owned("p", "a"), owned("q", "b", "3"), large)
    plan = goals.room_for(cluster.board(), large, 9)
    assert [move.key for move in plan.moves] == ["default/p"] and plan.waiting_node == "a"
    assert cluster.prove(plan) == (1, "")
    impossible = pod("huge", requests={"cpu": "5"})
    assert goals.room_for(Cluster(node("a"), owned("p", "a"), impossible).board(), impossible, 9).moves == []


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_every_move_lands_as_predicted_and_a_second_run_finds_nothing(seed: int) -> None:
    random = Random(seed)
    nodes = [node(f"n{i}", cpu=random.choice(["4", "8"]), zone=f"z{i % 3}") for i in range(random.randrange(2, 7))]
    sizes, owners = ["500m", "1", "2"], ["web", "api"]
    pods = [
        owned(f"p{i}", f"n{random.randrange(len(nodes))}", random.choice(sizes), owner=random.choice(owners))
        for i in range(random.randrange(12))
    ]
    budgets = [budget(random.randrange(4))] if seed % 3 == 0 else []
    cluster = Cluster(*nodes, *pods, *budgets, configuration=random.choice(["", PACKING]))
    for goal in (goals.fewer_nodes, goals.even_zones):
        now = cluster
        for _ in range(100):
            plan = goal(now.board(), 50)
            if not plan.moves:
                break
            assert now.prove(plan) == (len(plan.moves), ""), plan
            now = now.after(plan)
        else:
            raise AssertionError("it never ends")
