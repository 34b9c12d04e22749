"""NodeUnschedulable."""

from __future__ import annotations

import pytest
from plugin_bench import Bench

from kubesched.kube.api.pod import Toleration
from kubesched.scheduler.plugins import NodeUnschedulable
from kubesched.testing import node, pod

KEY = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("sentence", "toleration", "fits"),
    [
        ("a cordoned node is refused", None, False),
        ("any taint of the key is tolerated", Toleration(key=KEY, operator="Exists"), True),
        ("the cordon's taint is tolerated", Toleration(key=KEY, effect="NoSchedule"), True),
        ("everything is tolerated", Toleration(operator="Exists"), True),
        ("a value that the cordon does not have", Toleration(key=KEY, operator="Equal", value="x"), False),
        ("another effect", Toleration(key=KEY, operator="Exists", effect="NoExecute"), False),
        ("another key", Toleration(key="gpu", operator="Exists"), False),
    ],
)
def test_a_cordon_keeps_pods_away_unless_they_tolerate_it(sentence: str, toleration: Toleration | None, fits: bool) -> None:
    bench = Bench(NodeUnschedulable, node("open"), node("closed", cordoned=True))
    refused = bench.refusals(pod(tolerates=[toleration] if toleration else ()))
    assert refused == ({} if fits else {"closed": ("UnschedulableAndUnresolvable", ["node(s) were unschedulable"])}), sentence
