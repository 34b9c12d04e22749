"""PodTopologySpread: defaults, errors and changes; the golden families `spread` and tests/oracles compare the rest."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
from plugin_bench import Bench

from kubesched.kube.api import codec
from kubesched.kube.api.apps import ReplicaSet, StatefulSet
from kubesched.kube.api.core import ReplicationController, Service
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.framework import CycleState
from kubesched.scheduler.plugins import PodTopologySpread
from kubesched.scheduler.plugins.pod_topology_spread.counts import natural_log
from kubesched.testing import even, node, pod

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
MISSING = ("UnschedulableAndUnresolvable", ["node(s) didn't match pod topology spread constraints (missing required label)"])
WEB = {"app": "web"}


def spreading(**changes: Any) -> Pod:
    constraint = {**even(WEB), **changes}
    return pod("new", labels=changes.pop("labels", WEB), spread=[{k: v for k, v in constraint.items() if k != "labels"}])


def pods_on(**counts: int) -> list[Pod]:
    return [pod(f"{name}-{i}", on=name, labels=WEB) for name, count in counts.items() for i in range(count)]


def zones(*names: str) -> list[Node]:
    return [node(name, zone=name) for name in names]


def test_a_pod_without_hard_constraints_is_not_asked_about() -> None:
    bench = Bench(PodTopologySpread, *zones("z1"))
    assert bench.pre_filter(pod()) == "Skip"
    assert bench.pre_filter(spreading(whenUnsatisfiable="ScheduleAnyway")) == "Skip"


def test_very_many_constraints_do_not_get_in_each_others_way() -> None:
    many = [even(WEB, f"key-{i}") for i in range(40)]
    bench = Bench(
        PodTopologySpread,
        node("all", labels={f"key-{i}": "x" for i in range(40)}),
        node("most", labels={f"key-{i}": "x" for i in range(39)}),
    )
    assert bench.refusals(pod("new", labels=WEB, spread=many)) == {"most": MISSING}


def test_label_keys_are_passed_over_where_their_gate_is_off() -> None:
    off = {"MatchLabelKeysInPodTopologySpread": False, "MatchLabelKeysInPodTopologySpreadSelectorMerge": False}
    bench = Bench(PodTopologySpread, *zones("z1", "z2"), pod("old", on="z1", labels={**WEB, "hash": "1"}), gates=off)
    wanted = pod("new", labels={**WEB, "hash": "2"}, spread=[{**even(WEB), "matchLabelKeys": ["hash"]}])
    assert bench.fits(wanted) == ["z2"]


def test_a_selector_that_cannot_be_read_is_an_error() -> None:
    broken = spreading(labelSelector={"matchExpressions": [{"key": "app", "operator": "Like"}]})
    code, _ = Bench(PodTopologySpread, *zones("z1")).pre_filter(broken)
    assert code == "Error"


# Scores


def soft(*constraints: dict[str, Any]) -> Pod:
    return pod("new", labels=WEB, spread=[{**c, "whenUnsatisfiable": "ScheduleAnyway"} for c in constraints])


def service(selector: dict[str, str] | None, namespace: str = "default") -> Service:
    metadata = {"name": f"s-{selector}", "namespace": namespace}
    return codec.convert({"metadata": metadata, "spec": {"selector": selector}}, Service)


def controller(kind: str) -> Any:
    """Return a controller that selects the pod."""
    kinds: dict[str, Any] = {
        "ReplicaSet": ReplicaSet,
        "StatefulSet": StatefulSet,
        "ReplicationController": ReplicationController,
    }
    selector = WEB if kind == "ReplicationController" else {"matchLabels": WEB}
    return codec.convert({"metadata": {"name": "o", "namespace": "default"}, "spec": {"selector": selector}}, kinds[kind])


FOUR = node("a", zone="z1"), node("b", zone="z1"), node("c", zone="z2"), node("d", zone="z2")


def test_system_defaults_spread_siblings_over_hosts_and_zones() -> None:
    bench = Bench(PodTopologySpread, *FOUR, *pods_on(a=2, b=1), service(WEB))
    assert bench.scores(pod("new", labels=WEB), raw=True) == {"a": 14, "b": 12, "c": 6, "d": 6}
    assert bench.scores(pod("new", labels=WEB)) == {"a": 42, "b": 57, "c": 100, "d": 100}


@pytest.mark.parametrize(
    ("sentence", "around", "owner", "is_scored"),
    [
        ("nobody selects the pod", [], None, False),
        ("a service of its namespace", [service(WEB)], None, True),
        ("a service of another", [service(WEB, "other")], None, False),
        ("a service for other pods", [service({"app": "db"})], None, False),
        ("a service without a selector", [service(None)], None, False),
        ("a service with an empty one adds nothing", [service({})], None, False),
        ("a replica set", ["ReplicaSet"], ("apps/v1", "ReplicaSet"), True),
        ("a stateful set", ["StatefulSet"], ("apps/v1", "StatefulSet"), True),
        ("a replication controller", ["ReplicationController"], ("v1", "ReplicationController"), True),
        ("a replica set of the wrong version", ["ReplicaSet"], ("apps/v2", "ReplicaSet"), False),
        ("an owner that is gone", [], ("apps/v1", "ReplicaSet"), False),
        ("an owner of another kind", [], ("batch/v1", "Job"), False),
    ],
)
def test_siblings_are_those_whom_services_and_controllers_select(
    sentence: str, around: list[Any], owner: Any, is_scored: bool
) -> None:
    objects = [controller(obj) if isinstance(obj, str) else obj for obj in around]
    references = [{"apiVersion": owner[0], "kind": owner[1], "name": "o", "controller": True}] if owner else []
    wanted = codec.convert(
        {
            "metadata": {"name": "p", "namespace": "default", "uid": "u", "labels": WEB, "ownerReferences": references},
            "spec": {"containers": []},
        },
        Pod,
    )
    assert (Bench(PodTopologySpread, *FOUR, *objects).pre_score(wanted) is None) is is_scored, sentence


LISTED = {
    "defaultingType": "List",
    "defaultConstraints": [
        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["hash"]}
    ],
}


def test_listed_defaults_may_be_hard_and_their_label_keys_are_not_looked_at() -> None:
    bench = Bench(
        PodTopologySpread, *zones("z1", "z2"), service(WEB), pod("old", on="z1", labels={**WEB, "hash": "1"}), args=LISTED
    )
    assert bench.fits(pod("new", labels={**WEB, "hash": "2"})) == ["z2"]
    assert bench.pre_score(pod("new", labels=WEB)) == "Skip", "a list replaces the system's own"


def test_nodes_without_a_zone_are_ignored_by_own_constraints_and_not_by_system_defaults() -> None:
    nodes = [node("a", zone="z1"), node("b", zone="z2"), node("none")]
    bench = Bench(PodTopologySpread, *nodes, *pods_on(a=1), service(WEB))
    assert bench.scores(soft(even(WEB))) == {"a": 0, "b": 100, "none": 0}
    # Hosts: ln 5 each. Zones: a, b and "no zone" are three domains, so ln 5 too; the node without one is not charged.
    raw = {"a": round(log(5) + 2 + log(5) + 4), "b": 6, "none": 2}
    assert bench.scores(pod("new", labels=WEB), raw=True) == raw
    assert bench.scores(pod("new", labels=WEB)) == {"a": 22, "b": 55, "none": 100}


@pytest.mark.parametrize("x", [3, 14, 48, 74, 176])
def test_the_logarithm_is_the_references_to_the_last_bit(x: int) -> None:
    """These are the first integers for which the C library's differs by one unit in the last place."""
    assert natural_log(x) != log(x)
    assert natural_log(x) == pytest.approx(log(x), rel=1e-15)


def test_otherwise_the_logarithm_is_the_usual_one() -> None:
    assert [x for x in range(1, 50) if natural_log(x) != log(x)] == [3, 14, 48]


def test_a_node_that_moves_to_a_new_zone_right_after_a_pod_came_to_it_is_counted_there() -> None:
    bench = Bench(PodTopologySpread, *zones("z1", "z2"), *pods_on(z1=1))
    wanted, state = bench.store.view(spreading()), CycleState()
    assert bench.plugin.pre_filter(wanted, bench.store.snapshot(), state) is None
    bench.store.put_pod(pod("late", on="z2", labels=WEB))
    bench.store.put_node(node("z2", zone="z3"))
    counts = state.read("PodTopologySpread")
    counts.refresh(bench.store.snapshot())
    assert counts.counts[0].tolist() == [1, 0, 1, 0], "z1, z2 that no node is in any more, z3, and nodes in no zone"


def test_a_skew_that_no_api_server_lets_pass_is_scored_in_the_way_that_checks_scores() -> None:
    bench = Bench(PodTopologySpread, *zones("z1", "z2"), *pods_on(z1=1))
    nodes = bench.store.snapshot()
    feasible, totals = np.ones(nodes.n, dtype=np.bool_), np.zeros(nodes.n, dtype=np.int64)
    for skew, is_answered in ((1, True), (0, False), (-1, False)):
        soft = [
            {**even(WEB), "topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "ScheduleAnyway"} for key in (HOST, ZONE)
        ]
        view = bench.store.view(pod("new", labels=WEB, spread=soft))
        assert (bench.plugin.add_scores(view, nodes, feasible, CycleState(), totals, 1) is not None) == is_answered
