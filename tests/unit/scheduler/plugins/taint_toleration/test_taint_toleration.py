"""TaintToleration: comparing tolerations; the golden family `taints` and tests/oracles compare the rest."""

from __future__ import annotations

import pytest
from plugin_bench import Bench

from kubesched.kube.api.pod import Toleration
from kubesched.scheduler.plugins import TaintToleration
from kubesched.testing import node, pod, taint


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


@pytest.mark.parametrize(("effect", "cost"), [("", 0), ("PreferNoSchedule", 0), ("NoSchedule", 1)])
def test_only_tolerations_for_soft_taints_help(effect: str, cost: int) -> None:
    bench = Bench(TaintToleration, node("a", taints=soft("a")))
    assert bench.scores(pod(tolerates=[Toleration(key="a", operator="Exists", effect=effect)]), raw=True) == {"a": cost}
