"""One attempt: what is looked at, in which order, and what is told of it."""

from __future__ import annotations

from typing import Any

import pytest
from cycle_scene import REQUIRED, Scene, pinned

from kubesched.kube.api.pod import Pod
from kubesched.scheduler.engine.explaining.explain import explain
from kubesched.scheduler.framework import CycleState, NodeView, Plugin, PodView
from kubesched.scheduler.framework.equivalence_cache.cache import EquivalenceCache
from kubesched.scheduler.framework.runtime.profile import Profile
from kubesched.scheduler.framework.verdicts import CLEAR, Failed, Placed, Unschedulable
from kubesched.testing import node, pod, taint


def both_ways(scene: Scene, wanted: Pod, **rules: Any) -> list[Any]:
    """Return the decision made plainly, when it is first remembered, and when it is recalled."""
    memo = EquivalenceCache(scene.profile)
    return [
        scene.attempt(wanted, **rules).decision,
        scene.attempt(wanted, memo, **rules).decision,
        scene.attempt(wanted, memo, **rules).decision,
    ]


# Which node


def test_without_nodes_there_is_nothing_to_ask() -> None:
    for decision in both_ways(Scene(), pod()):
        assert isinstance(decision, Unschedulable)
        assert decision.message == "no nodes available to schedule pods"
        assert decision.nomination is CLEAR
        assert not decision.diagnosis.unschedulable_plugins


def test_the_only_feasible_node_is_taken_without_scoring() -> None:
    scene = Scene(node("a", cordoned=True), node("b"))
    made = scene.attempt(pod())
    assert made.decision == Placed(made.pod, "b", 2, 1)
    assert made.scores is None
    assert scene.attempt(pod(), scores_single=True).scores is not None


def test_the_best_node_is_taken() -> None:
    scene = Scene(
        node("a"), node("b"), node("c"), pod("x", on="a", requests={"cpu": "2"}), pod("y", on="c", requests={"cpu": "1"})
    )
    for decision in both_ways(scene, pod(requests={"cpu": "1", "memory": "1Gi"})):
        assert decision.node_name == "b"
        assert (decision.evaluated, decision.feasible) == (3, 3)


def test_ties_are_broken_by_seed_and_uid_and_by_nothing_else() -> None:
    scene = Scene(*(node(f"n{i}") for i in range(20)))
    chosen = {scene.attempt(pod(f"p{i}")).decision.node_name for i in range(30)}  # type: ignore[union-attr]
    assert len(chosen) > 5, "pods are not all sent to one node"
    for i in range(30):
        assert len({decision.node_name for decision in both_ways(scene, pod(f"p{i}"))}) == 1


def test_nodes_that_do_not_come_into_question_are_not_evaluated() -> None:
    scene = Scene(node("a"), node("b", cordoned=True), node("c", cordoned=True))
    for decision in both_ways(scene, pod(affinity=pinned("a", "b"))):
        assert (decision.node_name, decision.evaluated, decision.feasible) == ("a", 2, 1)


# The nominated node


@pytest.mark.parametrize("names", [("n3",), ("n1", "n3", "n5"), ("n0", "n2", "n4", "n6", "gone")], ids=len)
def test_few_named_nodes_are_decided_among_as_if_all_were_looked_at(names: tuple[str, ...]) -> None:
    nodes = [node(f"n{i}", cpu=2 + i % 4, zone=f"z{i % 2}") for i in range(8)]
    scene = Scene(*nodes, pod("old", on="n3", requests={"cpu": "1500m"}, labels={"app": "x"}))
    wanted = pod("new", requests={"cpu": "1"}, affinity=pinned(*names), labels={"app": "x"})
    few, among_all = scene.attempt(wanted), scene.attempt(wanted, scores_single=True)
    assert isinstance(few.decision, Placed) and isinstance(among_all.decision, Placed)
    assert (few.decision.node_name, few.decision.feasible) == (among_all.decision.node_name, among_all.decision.feasible)
    assert among_all.scores is not None and few.verdicts is None, "what was not looked at was not written down"


def test_a_nominated_node_that_does_is_taken_although_another_scores_higher() -> None:
    scene = Scene(node("a"), node("b"), pod("x", on="b", requests={"cpu": "3"}))
    for decision in both_ways(scene, pod(requests={"cpu": "1"}, nominated="b")):
        assert decision == Placed(decision.pod, "b", evaluated=1, feasible=1), "no other node is looked at"


@pytest.mark.parametrize("nominated", ["full", "gone"])
def test_a_nominated_node_that_does_not_is_passed_over(nominated: str) -> None:
    scene = Scene(node("a"), node("full", cpu="1"))
    for decision in both_ways(scene, pod(requests={"cpu": "2"}, nominated=nominated)):
        assert decision.node_name == "a"


def test_a_pod_does_not_stand_in_its_own_way() -> None:
    scene = Scene(node("a", cpu="1"))
    wanted = pod(requests={"cpu": "1"}, nominated="a")
    scene.nominations.put(scene.store.view(wanted), "a")
    for decision in both_ways(scene, wanted):
        assert isinstance(decision, Placed)


def test_what_refuses_a_nominated_node_is_told_even_if_it_did_not_come_into_question() -> None:
    scene = Scene(node("a", taints=[taint("gpu")]), node("b", cordoned=True), node("c"))
    for decision in both_ways(scene, pod(affinity=pinned("b"), nominated="a")):
        assert decision.message == (
            "0/3 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity TaintToleration], "
            "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
        )
        assert decision.diagnosis.unschedulable_plugins == {"NodeAffinity", "TaintToleration", "NodeUnschedulable"}


def test_who_refuses_a_nominated_node_is_named_with_those_that_left_nodes_out() -> None:
    scene = Scene(node("a", cpu="1"), node("b"))
    for decision in both_ways(scene, pod(requests={"cpu": "2"}, affinity=pinned("a"), nominated="a")):
        assert decision.message == (
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity NodeResourcesFit]."
        )


# Beside nominated pods


@pytest.mark.parametrize(
    ("sentence", "theirs", "fits"),
    [
        ("a pod of higher priority is given way to", 20, False),
        ("one of equal priority too", 10, False),
        ("one of lower priority is not", 9, True),
    ],
)
def test_a_pod_must_fit_beside_those_nominated_before_it(sentence: str, theirs: int, fits: bool) -> None:
    scene = Scene(node("a", cpu="2"))
    scene.nominations.put(scene.store.view(pod("other", requests={"cpu": "1500m"}, priority=theirs)), "a")
    for decision in both_ways(scene, pod(requests={"cpu": "1"}, priority=10)):
        assert isinstance(decision, Placed) is fits, sentence


def test_a_pod_must_also_fit_without_those_nominated_before_it() -> None:
    """One that is wanted near may be nominated and never come."""
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    scene = Scene(node("a"))
    scene.nominations.put(scene.store.view(pod("db", labels={"app": "db"}, priority=10)), "a")
    for decision in both_ways(scene, pod(affinity={"podAffinity": {REQUIRED: [term]}})):
        assert decision.message == "0/1 nodes are available: 1 node(s) didn't match pod affinity rules."


class Remembering(Plugin):
    """Writes down at Filter how many pods a node takes, and scores by that."""

    def filter_node(self, pod: PodView, node: NodeView, state: CycleState) -> None:
        state.write(f"room/{node.name}", node.free_pods)

    def score_node(self, pod: PodView, node: NodeView, state: CycleState) -> int:
        return int(state.read(f"room/{node.name}"))


def test_what_filters_write_about_nodes_with_nominated_pods_is_not_read_by_scores() -> None:
    scene = Scene(node("a", pods=10), node("b", pods=10))
    plugin = Remembering(None, scene.profile.plugins[0].handle)
    scene.profile = Profile("p", {"filter": [(plugin, 0)], "score": [(plugin, 1)]})
    scene.nominations.put(scene.store.view(pod("other", priority=10)), "b")
    made = scene.attempt(pod())
    assert made.scores is not None
    assert made.scores.raw["Remembering"].tolist() == [10, 10]


# What is told


def test_all_reasons_are_told_however_many_there_are() -> None:
    names = [f"ex.com/r{i}" for i in range(100)]
    scene = Scene(*(node(f"n{i}", offers={names[7]: "1"}) for i in range(5)), pod("low", on="n0", requests={names[7]: "1"}))
    wanted = pod(requests=dict.fromkeys(names, "1"), priority=10)
    lines = sorted(["1 Insufficient ex.com/r7", *(f"5 Insufficient {name}" for name in names if name != names[7])])
    told = f"0/5 nodes are available: {', '.join(lines)}."
    for decision in both_ways(scene, wanted):
        assert decision.message == told
    made = scene.attempt(wanted, preempts=True)
    assert made.decision.message == f"{told} preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."
    assert len(explain(made, profile=scene.profile).refusals) == 100
    assert set(made.decision.diagnosis.status("n0").reasons) == {f"Insufficient {name}" for name in names}


class Particular(Plugin):
    """Refuses each node in words of its own."""

    def filter_node(self, pod: PodView, node: NodeView, state: CycleState) -> str:
        return f"not {node.name}"


def test_a_plugin_may_refuse_every_node_for_a_reason_of_its_own() -> None:
    scene = Scene(*(node(f"n{i}") for i in range(70)))
    scene.profile = Profile("p", {"filter": [(Particular(None, scene.profile.plugins[0].handle), 0)]})
    for decision in both_ways(scene, pod()):
        assert decision.message == f"0/70 nodes are available: {', '.join(sorted(f'1 not n{i}' for i in range(70)))}."


def test_a_pod_pinned_to_a_cordoned_node() -> None:
    scene = Scene(node("x", cordoned=True), node("y"), node("z"))
    wanted = pod(affinity=pinned("x"))
    short = "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    for decision in both_ways(scene, wanted):
        assert decision.message == short
    for decision in both_ways(scene, wanted, preempts=True):
        assert decision.message == (f"{short} preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.")


def test_names_that_conflict_are_a_refusal_for_all_nodes() -> None:
    conflict = {
        "nodeAffinity": {
            REQUIRED: {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("x", "y")]}
                ]
            }
        }
    }
    scene = Scene(node("x"), node("y"), node("z"))
    for decision in both_ways(scene, pod(affinity=conflict), preempts=True):
        assert decision.message == "0/3 nodes are available: pod affinity terms conflict. not found"
        assert decision.diagnosis.unschedulable_plugins == {"NodeAffinity"}


def test_names_of_nodes_that_do_not_exist_count_every_node() -> None:
    scene = Scene(node("x"), node("y"))
    for decision in both_ways(scene, pod(affinity=pinned("gone"))):
        assert decision.message == "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."


def test_reasons_add_up_and_lines_are_sorted_as_text() -> None:
    nodes = [node(f"n{i}", cpu="1", memory="1Gi" if i < 2 else "8Gi") for i in range(10)]
    tainted = [node(f"t{i}", taints=[taint("gpu")]) for i in range(2)]
    for decision in both_ways(Scene(*nodes, *tainted), pod(requests={"cpu": "2", "memory": "2Gi"}), preempts=True):
        assert decision.message == (
            "0/12 nodes are available: 10 Insufficient cpu, 2 Insufficient memory, 2 node(s) had untolerated taint(s). "
            "preemption: 0/12 nodes are available: 12 Preemption is not helpful for "
            "scheduling."
        )


def test_a_broken_preference_is_an_error_unless_there_is_only_one_node() -> None:
    wish = {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["a b"]}]}}
    wanted = pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}})
    for decision in both_ways(Scene(node("a"), node("b")), wanted):
        assert isinstance(decision, Failed)
        assert decision.message.startswith('running PreScore plugin "NodeAffinity": ')
        assert decision.nomination is CLEAR
    for decision in both_ways(Scene(node("a"), node("b", cordoned=True)), wanted):
        assert isinstance(decision, Placed)


# A class that no node takes


def test_the_next_pod_of_a_class_that_no_node_takes_is_refused_at_once_until_anything_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(node("a", cpu="1"), pod("old", on="a", requests={"cpu": "1"}, priority=5))
    memo, asked = EquivalenceCache(scene.profile), []
    recall = memo.recall
    monkeypatch.setattr(memo, "recall", lambda key, pod, *rest: asked.append(pod.name) or recall(key, pod, *rest))

    def told(name: str, **more: Any) -> Any:
        wanted = pod(name, requests={"cpu": "1"}, **more)
        made, plain = scene.attempt(wanted, memo, preempts=True), scene.attempt(wanted, preempts=True)
        assert isinstance(made.decision, Unschedulable) and isinstance(plain.decision, Unschedulable)
        assert (made.decision.message, made.decision.nomination) == (plain.decision.message, plain.decision.nomination)
        assert made.diagnosis is not None and plain.diagnosis is not None
        assert made.diagnosis.unschedulable_plugins == plain.diagnosis.unschedulable_plugins
        return made.decision.pod.name

    assert [told("p0"), told("p1"), told("p2")] == ["p0", "p1", "p2"]
    assert asked == ["p0"], "nothing had changed for the others"
    told("p3", labels={"app": "other"})
    assert asked == ["p0", "p3"], "what was concluded is the class's own"
    scene.store.put_node(node("b", cpu="500m"))
    told("p4")
    told("p5")
    assert asked == ["p0", "p3", "p4"], "a node came"
    scene.nominations.put(scene.store.view(pod("n", requests={"cpu": "100m"}, priority=10)), "b")
    told("p6")
    assert asked[3:] == ["p6"], "with nominations about, one pod's answer may not be another's"
