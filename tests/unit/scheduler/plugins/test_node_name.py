"""NodeName."""

from __future__ import annotations

from plugin_bench import Bench

from kubesched.scheduler.plugins import NodeName
from kubesched.testing import node, pod

OTHER = ("UnschedulableAndUnresolvable", ["node(s) didn't match the requested node name"])


def test_a_pod_that_names_its_node_fits_that_node_only() -> None:
    bench = Bench(NodeName, node("a"), node("b"))
    assert bench.refusals(pod(on="a")) == {"b": OTHER}
    assert bench.refusals(pod(on="gone")) == {"a": OTHER, "b": OTHER}
    assert bench.refusals(pod()) == {}
