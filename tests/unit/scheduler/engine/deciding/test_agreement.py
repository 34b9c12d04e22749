"""Another scheduler's choice, judged by our own decision."""

from __future__ import annotations

from collections import Counter

import pytest
from cycle_scene import Scene, pinned

from kubesched.kube.api.pod import Pod
from kubesched.scheduler.engine.deciding.agreement import UNKNOWN_NODE, Agreement, Comparison, compare
from kubesched.scheduler.engine.deciding.cycle import Rules
from kubesched.scheduler.engine.deciding.sampling import adaptive_percentage
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.testing import node, pod, taint

ASKS = {"cpu": "1", "memory": "1Gi"}


def judged(scene: Scene, wanted: Pod, chosen: str, percentage: int = 100) -> Comparison:
    rules = Rules(SeededTies(0), scene.nominations)
    nodes = scene.store.snapshot()
    return compare(scene.store.view(wanted), nodes, scene.profile, rules, chosen, percentage=percentage)


def a_scene() -> Scene:
    """Two empty nodes, one that is half full, one that is tainted."""
    return Scene(
        node("empty-1"),
        node("empty-2"),
        node("half"),
        node("tainted", taints=[taint("gpu")]),
        pod("other", on="half", requests={"cpu": "2", "memory": "16Gi"}),
    )


def test_of_two_equal_nodes_one_is_the_same_and_the_other_a_tie() -> None:
    scene = a_scene()
    kinds = {name: judged(scene, pod("p", requests=ASKS), name) for name in ("empty-1", "empty-2")}
    assert sorted(found.kind for found in kinds.values()) == ["same", "tie"]
    for found in kinds.values():
        assert (found.behind, found.by_plugin, found.n_feasible, found.n_best) == (0, {}, 3, 2)


def test_a_lower_score_is_told_with_its_difference_and_the_plugins_it_comes_from() -> None:
    found = judged(a_scene(), pod("p", requests=ASKS), "half")
    assert found.kind is Agreement.WORSE and not found.kind.is_agreement
    assert found.ours in ("empty-1", "empty-2")
    assert set(found.by_plugin) == {"NodeResourcesFit"}
    assert found.behind == sum(found.by_plugin.values()) > 0


@pytest.mark.parametrize(
    ("chosen", "wanted", "refused_by", "reason"),
    [
        ("tainted", pod("p"), "TaintToleration", "node(s) had untolerated taint(s)"),
        ("half", pod("p", requests={"cpu": "3"}), "NodeResourcesFit", "Insufficient cpu"),
        ("half", pod("p", affinity=pinned("empty-1")), "NodeAffinity", "node(s) didn't match Pod's node affinity"),
        ("gone", pod("p"), "", UNKNOWN_NODE),
        ("empty-2", pod("p", nominated="empty-1"), "", "the pod is nominated to empty-1, which takes it"),
    ],
)
def test_a_node_that_we_refuse_is_told_with_who_refuses_it(chosen: str, wanted: Pod, refused_by: str, reason: str) -> None:
    found = judged(a_scene(), wanted, chosen)
    assert (found.kind, found.refused_by) == (Agreement.INFEASIBLE, refused_by)
    assert found.reasons[0].startswith(reason) and found.ours.startswith("empty")


def test_a_pod_that_fits_nowhere_is_infeasible_wherever_it_was_put() -> None:
    found = judged(a_scene(), pod("p", requests={"cpu": "99"}), "empty-1")
    assert (found.kind, found.ours, found.n_feasible) == (Agreement.INFEASIBLE, "", 0)


def test_the_only_feasible_node_is_the_same() -> None:
    assert judged(a_scene(), pod("p", affinity=pinned("half")), "half").kind is Agreement.SAME


def test_the_nominated_node_is_the_same_where_it_does() -> None:
    assert judged(a_scene(), pod("p", nominated="half"), "half").kind is Agreement.SAME


def test_what_kube_scheduler_samples_where_nobody_says() -> None:
    assert [adaptive_percentage(n) for n in (100, 1000, 5000, 6000, 50_000)] == [50, 42, 10, 5, 5]


def test_the_best_of_a_sample_is_no_difference_where_the_other_scheduler_samples() -> None:
    """400 nodes, of which 20 that lie together are better than all others: a search for 40 % of them may miss these."""
    others = [pod(f"on-{i}", on=f"n{i:03d}", requests=ASKS) for i in range(20, 400)]
    scene = Scene(*(node(f"n{i:03d}") for i in range(400)), *others)
    wanted = pod("p", requests=ASKS)
    assert judged(scene, wanted, "n200").kind is Agreement.WORSE
    assert judged(scene, wanted, "n200", percentage=40).kind is Agreement.SAMPLED
    assert judged(scene, wanted, "n200", percentage=0).kind is Agreement.SAMPLED
    assert judged(scene, wanted, "n200", percentage=98).kind is Agreement.WORSE, "392 of 400: some better one is among them"


def test_the_worst_of_all_is_the_best_of_no_sample() -> None:
    others = [pod("on-7", on="n007", requests=ASKS)]
    scene = Scene(*(node(f"n{i:03d}") for i in range(400)), *others)
    found = Counter(judged(scene, pod("p", requests=ASKS), f"n{i:03d}", percentage=5).kind for i in (6, 7, 8))
    assert (found[Agreement.WORSE], found[Agreement.SAMPLED]) == (1, 0)
