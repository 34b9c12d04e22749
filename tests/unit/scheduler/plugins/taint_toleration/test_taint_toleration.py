"""TaintToleration."""

from __future__ import annotations

import pytest
from plugin_bench import Bench

from kubesched.kube.api.pod import Toleration
from kubesched.scheduler.plugins import TaintToleration
from kubesched.testing import node, pod, taint

REFUSED = ("UnschedulableAndUnresolvable", ["node(s) had untolerated taint(s)"])


def test_hard_taints_refuse_and_soft_ones_do_not() -> None:
    bench = Bench(
        TaintToleration,
        node("clean"),
        node("no", taints=[taint("gpu", "x")]),
        node("out", taints=[taint("gpu", effect="NoExecute")]),
        node("soft", taints=[taint("gpu", effect="PreferNoSchedule")]),
    )
    assert bench.refusals(pod()) == {"no": REFUSED, "out": REFUSED}


@pytest.mark.parametrize(
    ("sentence", "toleration", "fits"),
    [
        ("key, value and effect", Toleration(key="gpu", operator="Equal", value="x", effect="NoSchedule"), True),
        ("no operator is Equal", Toleration(key="gpu", value="x"), True),
        ("another value", Toleration(key="gpu", value="y"), False),
        ("any value", Toleration(key="gpu", operator="Exists"), True),
        ("any key", Toleration(operator="Exists"), True),
        ("another effect", Toleration(key="gpu", operator="Exists", effect="NoExecute"), False),
        ("an empty key with Equal compares the value alone", Toleration(operator="Equal", value="x"), True),
        ("an operator that nobody knows", Toleration(key="gpu", operator="Like", value="x"), False),
    ],
)
def test_a_taint_is_tolerated(sentence: str, toleration: Toleration, fits: bool) -> None:
    bench = Bench(TaintToleration, node("a", taints=[taint("gpu", "x")]))
    assert bench.refusals(pod(tolerates=[toleration])) == ({} if fits else {"a": REFUSED}), sentence


@pytest.mark.parametrize(
    ("operator", "bound", "fits"),
    [("Gt", "2", True), ("Gt", "3", False), ("Lt", "4", True), ("Lt", "03", False), ("Gt", "x", False)],
)
def test_values_are_compared_only_behind_their_gate(operator: str, bound: str, fits: bool) -> None:
    tolerant = pod(tolerates=[Toleration(key="level", operator=operator, value=bound)])
    tainted = node("a", taints=[taint("level", "3")])
    assert Bench(TaintToleration, tainted).fits(tolerant) == []
    behind = Bench(TaintToleration, tainted, gates={"TaintTolerationComparisonOperators": True})
    assert behind.fits(tolerant) == (["a"] if fits else [])


def soft(*keys: str) -> list[object]:
    return [taint(key, effect="PreferNoSchedule") for key in keys]


def test_soft_taints_that_are_not_tolerated_cost_points() -> None:
    bench = Bench(TaintToleration, node("none"), node("one", taints=soft("a")), node("three", taints=soft("a", "b", "c")))
    assert bench.scores(pod(), raw=True) == {"none": 0, "one": 1, "three": 3}
    assert bench.scores(pod()) == {"none": 100, "one": 67, "three": 0}
    assert bench.scores(pod(), among=["one", "three"]) == {"one": 67, "three": 0}


def test_where_nothing_is_disliked_all_get_the_best_score() -> None:
    bench = Bench(TaintToleration, node("a"), node("b", taints=[taint("hard")]))
    assert bench.scores(pod()) == {"a": 100, "b": 100}
    assert bench.pre_score(pod()) is None, "it never stays out"


@pytest.mark.parametrize(("effect", "cost"), [("", 0), ("PreferNoSchedule", 0), ("NoSchedule", 1)])
def test_only_tolerations_for_soft_taints_help(effect: str, cost: int) -> None:
    bench = Bench(TaintToleration, node("a", taints=soft("a")))
    assert bench.scores(pod(tolerates=[Toleration(key="a", operator="Exists", effect=effect)]), raw=True) == {"a": cost}
