"""PodTopologySpread: what is too skewed, and which domain is the emptier."""

from __future__ import annotations

from math import log
from typing import Any

import pytest
from plugin_bench import Bench

from kubesched.kube.api import codec
from kubesched.kube.api.apps import ReplicaSet, StatefulSet
from kubesched.kube.api.core import ReplicationController, Service
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.framework import CycleState
from kubesched.scheduler.framework.runtime.feasible import FeasibleNodes, NodeTotals
from kubesched.scheduler.plugins import PodTopologySpread
from kubesched.scheduler.plugins.pod_topology_spread.counts import natural_log
from kubesched.testing import even, node, pod, taint

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SKEWED = ("Unschedulable", ["node(s) didn't match pod topology spread constraints"])
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


@pytest.mark.parametrize(
    ("sentence", "changes", "refused"),
    [
        ("the emptier zone takes it", {}, {"z1": SKEWED}),
        ("fewer domains than wanted: the emptiest counts as empty", {"minDomains": 3}, {"z1": SKEWED, "z2": SKEWED}),
        ("as many as wanted", {"minDomains": 2}, {"z1": SKEWED}),
        ("a larger skew", {"maxSkew": 2}, {}),
        ("a pod that does not count itself", {"labels": {"app": "db"}}, {}),
        ("no selector counts nobody", {"labelSelector": None}, {}),
        ("a selector for all counts nobody but itself", {"labelSelector": {}}, {}),
        ("a key that no node has", {"topologyKey": "nobody-has"}, {"z1": MISSING, "z2": MISSING}),
    ],
)
def test_zones_of_three_and_two(sentence: str, changes: dict[str, Any], refused: Any) -> None:
    bench = Bench(PodTopologySpread, *zones("z1", "z2"), *pods_on(z1=3, z2=2))
    assert bench.refusals(spreading(**changes)) == refused, sentence


def test_too_few_domains_over_hosts() -> None:
    bench = Bench(PodTopologySpread, node("a"), node("b"), node("c"), *pods_on(a=2, b=2, c=1))
    assert bench.fits(spreading(topologyKey=HOST, maxSkew=2, minDomains=4)) == ["c"]


def test_who_is_counted() -> None:
    others = [
        pod("elsewhere", namespace="other", on="z1", labels=WEB),
        pod("db", on="z1", labels={"app": "db"}),
        pod("going", on="z1", labels=WEB, deleted_at="2026-01-01T00:00:00Z"),
    ]
    bench = Bench(PodTopologySpread, *zones("z1", "z2"), *others)
    assert bench.fits(spreading()) == ["z1", "z2"]
    bench.put(pod("web", on="z1", labels=WEB))
    assert bench.fits(spreading()) == ["z2"]


def test_the_first_constraint_that_a_node_breaks_is_told() -> None:
    wanted = pod("new", labels=WEB, spread=[even(WEB), even(WEB, "rack")])
    bench = Bench(
        PodTopologySpread,
        node("a", zone="z1", labels={"rack": "1"}),
        node("b", zone="z2"),
        node("c"),
        node("d", zone="z2", labels={"rack": "2"}),
        *pods_on(a=1),
    )
    assert bench.refusals(wanted) == {"a": SKEWED, "b": MISSING, "c": MISSING}


def test_nodes_without_all_keys_are_no_domains() -> None:
    """Otherwise b, which has no rack, would make the emptiest zone empty and d too skewed."""
    wanted = pod("new", labels=WEB, spread=[even(WEB), even(WEB, "rack", skew=9)])
    bench = Bench(PodTopologySpread, node("d", zone="z1", labels={"rack": "1"}), node("b", zone="z2"), *pods_on(d=1))
    assert bench.fits(wanted) == ["d"]


def test_very_many_constraints_do_not_get_in_each_others_way() -> None:
    many = [even(WEB, f"key-{i}") for i in range(40)]
    bench = Bench(
        PodTopologySpread,
        node("all", labels={f"key-{i}": "x" for i in range(40)}),
        node("most", labels={f"key-{i}": "x" for i in range(39)}),
    )
    assert bench.refusals(pod("new", labels=WEB, spread=many)) == {"most": MISSING}


POLICIES = [
    ("nodes that the pod may not go to are left out", {}, ["z1", "z2"]),
    ("unless they are not to be", {"nodeAffinityPolicy": "Ignore"}, ["z2"]),
]


@pytest.mark.parametrize(("changes", "fits"), [p[1:] for p in POLICIES], ids=[p[0] for p in POLICIES])
def test_the_node_affinity_policy(changes: dict[str, Any], fits: list[str]) -> None:
    nodes = [node("z1", zone="z1", labels={"disk": "ssd"}), node("z2", zone="z2", labels={"disk": "hdd"})]
    constraint = {**even(WEB), **changes}
    wanted = pod("new", labels=WEB, spread=[constraint], node_selector={"disk": "ssd"})
    assert Bench(PodTopologySpread, *nodes, *pods_on(z1=1)).fits(wanted) == fits


@pytest.mark.parametrize(
    ("sentence", "changes", "fits"),
    [
        ("tainted nodes count", {}, ["z2"]),
        ("unless they are not to", {"nodeTaintsPolicy": "Honor"}, ["z1", "z2"]),
    ],
)
def test_the_node_taints_policy(sentence: str, changes: dict[str, Any], fits: list[str]) -> None:
    nodes = [node("z1", zone="z1"), node("z2", zone="z2", taints=[taint("gpu")])]
    assert Bench(PodTopologySpread, *nodes, *pods_on(z1=1)).fits(spreading(**changes)) == fits, sentence


@pytest.mark.parametrize(
    ("sentence", "keys", "labels", "fits"),
    [
        ("pods of another revision are not counted", ["hash"], {**WEB, "hash": "2"}, ["z1", "z2"]),
        ("pods of its own are", ["hash"], {**WEB, "hash": "1"}, ["z2"]),
        ("a key that the pod lacks changes nothing", ["hash"], WEB, ["z2"]),
    ],
)
def test_label_keys_narrow_the_selector_to_the_pods_own_values(
    sentence: str, keys: list[str], labels: dict[str, str], fits: list[str]
) -> None:
    bench = Bench(PodTopologySpread, *zones("z1", "z2"), pod("old", on="z1", labels={**WEB, "hash": "1"}))
    wanted = pod("new", labels=labels, spread=[{**even(WEB), "matchLabelKeys": keys}])
    assert bench.fits(wanted) == fits, sentence


def test_label_keys_are_passed_over_where_their_gate_is_off() -> None:
    off = {"MatchLabelKeysInPodTopologySpread": False, "MatchLabelKeysInPodTopologySpreadSelectorMerge": False}
    bench = Bench(PodTopologySpread, *zones("z1", "z2"), pod("old", on="z1", labels={**WEB, "hash": "1"}), gates=off)
    wanted = pod("new", labels={**WEB, "hash": "2"}, spread=[{**even(WEB), "matchLabelKeys": ["hash"]}])
    assert bench.fits(wanted) == ["z2"]


def test_label_keys_make_something_of_a_selector_for_all_but_nothing_of_none() -> None:
    bench = Bench(PodTopologySpread, *zones("z1", "z2"), *pods_on(z1=2))
    assert bench.fits(spreading(labelSelector={}, matchLabelKeys=["app"])) == ["z2"]
    assert bench.fits(spreading(labelSelector=None, matchLabelKeys=["app"])) == ["z1", "z2"]


def test_a_selector_that_cannot_be_read_is_an_error() -> None:
    broken = spreading(labelSelector={"matchExpressions": [{"key": "app", "operator": "Like"}]})
    code, _ = Bench(PodTopologySpread, *zones("z1")).pre_filter(broken)
    assert code == "Error"


# Scores


def soft(*constraints: dict[str, Any]) -> Pod:
    return pod("new", labels=WEB, spread=[{**c, "whenUnsatisfiable": "ScheduleAnyway"} for c in constraints])


@pytest.mark.parametrize(("skew", "raw", "scores"), [(1, [4, 2, 0, 5], [20, 60, 100, 0]), (2, [5, 3, 1, 6], [33, 66, 100, 16])])
def test_hosts_with_two_one_none_and_three(skew: int, raw: list[int], scores: list[int]) -> None:
    bench = Bench(PodTopologySpread, *(node(name) for name in "abcd"), *pods_on(a=2, b=1, c=0, d=3))
    wanted = soft(even(WEB, HOST, skew=skew))
    assert list(bench.scores(wanted, raw=True).values()) == raw
    assert list(bench.scores(wanted).values()) == scores


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


def test_a_pod_with_constraints_of_its_own_gets_no_defaults() -> None:
    bench = Bench(PodTopologySpread, *FOUR, service(WEB))
    assert bench.pre_score(spreading()) == "Skip"


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


def test_a_host_counts_its_own_pods_only_and_its_exclusion_does_not_matter() -> None:
    nodes = [node("a", taints=[taint("gpu")]), node("b")]
    bench = Bench(PodTopologySpread, *nodes, *pods_on(a=2))
    wanted = soft({**even(WEB, HOST), "nodeTaintsPolicy": "Honor"})
    assert bench.scores(wanted, raw=True) == {"a": 3, "b": 0}
    by_zone = Bench(PodTopologySpread, node("a", zone="z", taints=[taint("gpu")]), node("b", zone="y"), *pods_on(a=2))
    assert by_zone.scores(soft({**even(WEB), "nodeTaintsPolicy": "Honor"}), raw=True) == {"a": 0, "b": 0}


def test_where_nobody_matches_all_get_the_best_score() -> None:
    bench = Bench(PodTopologySpread, *zones("z1", "z2"))
    assert bench.scores(soft(even(WEB))) == {"z1": 100, "z2": 100}


def test_the_number_of_feasible_domains_weighs_not_that_of_all() -> None:
    bench = Bench(PodTopologySpread, *zones("z1", "z2", "z3", "z4", "z5", "z6"), *pods_on(z1=4))
    assert bench.scores(soft(even(WEB)), among=["z1", "z2"], raw=True) == {"z1": round(4 * log(4)), "z2": 0}


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
    assert counts.counts[0].values.tolist() == [1, 0, 1, 0], "z1, z2 that no node is in any more, z3, and nodes in no zone"


def test_a_skew_that_no_api_server_lets_pass_is_scored_in_the_way_that_checks_scores() -> None:
    bench = Bench(PodTopologySpread, *zones("z1", "z2"), *pods_on(z1=1))
    nodes = bench.store.snapshot()
    feasible = FeasibleNodes(NodeTotals(nodes), nodes)
    for skew, is_answered in ((1, True), (0, False), (-1, False)):
        soft = [
            {**even(WEB), "topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "ScheduleAnyway"} for key in (HOST, ZONE)
        ]
        view = bench.store.view(pod("new", labels=WEB, spread=soft))
        assert (bench.plugin.score_domains(view, nodes, feasible, CycleState()) is not None) == is_answered
