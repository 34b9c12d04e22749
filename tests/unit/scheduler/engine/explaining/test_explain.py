"""An attempt, told."""

from __future__ import annotations

from cycle_scene import Scene, pinned

from kubesched.scheduler.engine.explaining.explain import Explanation, NodeScores, explain
from kubesched.scheduler.engine.records.refusals import Refusal
from kubesched.testing import node, pod, taint


def told(scene: Scene, wanted: object, top: int = 5) -> Explanation:
    return explain(scene.attempt(wanted, scores_single=True), top=top)  # type: ignore[arg-type]


def test_a_placed_pod_is_told_with_its_node_and_a_ranking() -> None:
    scene = Scene(node("a"), node("b"), node("c", cordoned=True), pod("x", on="a", requests={"cpu": "2"}))
    found = told(scene, pod("web", requests={"cpu": "1", "memory": "1Gi"}))
    assert (found.pod, found.node, found.message) == ("default/web", "b", "")
    assert (found.n_nodes, found.n_feasible, found.advice) == (3, 2, [])
    assert [ranked.node for ranked in found.ranking] == ["b", "a"]
    best = found.ranking[0]
    assert isinstance(best, NodeScores) and sum(best.by_plugin.values()) == best.total
    assert best.by_plugin["TaintToleration"] == 300
    assert found.refusals == [Refusal("NodeUnschedulable", "node(s) were unschedulable", 1, False, ("c",))]


def test_the_ranking_is_cut() -> None:
    scene = Scene(*(node(f"n{i}") for i in range(10)))
    assert len(told(scene, pod(), top=3).ranking) == 3


def test_refusals_are_counted_with_examples_the_most_frequent_first() -> None:
    scene = Scene(node("t", taints=[taint("gpu")]), *(node(f"n{i}", cpu="1") for i in range(5)))
    found = told(scene, pod(requests={"cpu": "2"}))
    assert found.refusals == [
        Refusal("NodeResourcesFit", "Insufficient cpu", 5, False, ("n0", "n1", "n2")),
        Refusal("TaintToleration", "node(s) had untolerated taint(s)", 1, False, ("t",)),
    ]


def test_nodes_that_did_not_come_into_question_are_told_too() -> None:
    found = told(Scene(node("a", cordoned=True), node("b"), node("c")), pod(affinity=pinned("a")))
    assert [(r.reason, r.count) for r in found.refusals] == [
        ("node(s) didn't satisfy plugin(s) [NodeAffinity]", 2),
        ("node(s) were unschedulable", 1),
    ]


def test_a_refusal_before_filtering_is_told_for_all_nodes() -> None:
    conflict = pinned("a")
    terms = conflict["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    terms[0]["matchFields"].append({"key": "metadata.name", "operator": "In", "values": ["b"]})
    found = told(Scene(node("a"), node("b")), pod(affinity=conflict))
    assert found.refusals == [Refusal("NodeAffinity", "pod affinity terms conflict", 2, False, ())]
    assert found.message == "0/2 nodes are available: pod affinity terms conflict."


def test_the_node_that_a_pod_is_on_is_ranked_wherever_it_stands() -> None:
    scene = Scene(*(node(f"n{i}") for i in range(5)), pod("there", on="n3", requests={"cpu": "2"}))
    found = explain(scene.attempt(pod("there", requests={"cpu": "2"}), scores_single=True), top=2, home="n3")
    assert [ranked.node for ranked in found.ranking] == ["n0", "n1", "n3"]
    assert found.against_home == ()


def test_a_node_that_would_not_take_one_more_says_why() -> None:
    scene = Scene(node("a", cpu="3"), node("b"), pod("there", on="a", requests={"cpu": "2"}))
    found = explain(scene.attempt(pod("there", requests={"cpu": "2"}), scores_single=True), home="a")
    assert (found.against_home, [ranked.node for ranked in found.ranking]) == (("Insufficient cpu",), ["b"])


def test_whom_it_would_evict_is_told() -> None:
    scene = Scene(node("a", cpu="2"), pod("low", on="a", priority=1, requests={"cpu": "2"}))
    found = explain(scene.attempt(pod("high", priority=9, requests={"cpu": "1"}), preempts=True))
    assert found.preemption is not None and "preempting 1 victims" in (found.preemption_result or "")
    assert (found.preemption.node_name, [victim.key for victim in found.preemption.victims]) == ("a", ["default/low"])
    hopeless = explain(scene.attempt(pod("low-too", priority=1, requests={"cpu": "1"}), preempts=True))
    assert hopeless.preemption is None and "No preemption victims found for incoming pod" in (hopeless.preemption_result or "")
