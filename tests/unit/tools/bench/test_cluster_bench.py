"""How bindings are read from a watch, and what is made of their times."""

from __future__ import annotations

import json

import pytest

from kubesched.tools.bench.cluster import KINDS, Bindings, ClusterBench, _figures


def line(name: str, node: str = "", kind: str = "MODIFIED") -> bytes:
    spec = {"nodeName": node} if node else {}
    pod = {"kind": "Pod", "metadata": {"name": name}, "spec": spec}
    return json.dumps({"type": kind, "object": pod}, separators=(",", ":")).encode()


def test_a_pod_counts_when_it_is_first_seen_on_a_node() -> None:
    found = Bindings()
    found.take(b"\n".join([line("pod-1"), line("pod-2", "node-00007")]), 1.0)
    found.take(b"\n".join([line("pod-2", "node-00007"), line("pod-1", "node-00003"), line("other", "node-00001")]), 2.0)
    assert found.seen == {b"pod-2": 1.0, b"pod-1": 2.0}
    assert found.nodes == {b"pod-2": b"node-00007", b"pod-1": b"node-00003"}


def test_the_steady_rate_leaves_out_the_first_and_the_last() -> None:
    found = Bindings()
    found.seen = {b"%d" % i: 10.0 + i / 100 for i in range(200)}
    found.seen[b"0"], found.seen[b"199"] = 0.0, 1000.0  # one that came long before, one long after all others
    assert found.steady_rate() == pytest.approx(100.0)
    assert Bindings({b"1": 1.0}).steady_rate() == 0.0


def test_figures_are_per_pod_that_was_bound() -> None:
    class Usage:
        ru_utime, ru_stime, ru_maxrss = 1.5, 0.5, 204_800

    found = Bindings({b"a": 11.0, b"b": 12.0}, {b"a": b"n", b"b": b"n"}, start_cpu_seconds=1.0)
    figures = _figures(ClusterBench(pods=4), found, 10.0, Usage())  # type: ignore[arg-type]
    assert figures["bound"] == 2 and figures["pods"] == 4 and figures["nodes_used"] == 1
    assert (figures["pods_per_s"], figures["first_bind_s"]) == (1.0, 1.0)
    assert (figures["cpu_ms_per_pod"], figures["steady_cpu_ms_per_pod"]) == (1000.0, 500.0)


def test_a_pod_that_comes_waits_from_its_being_seen_to_its_being_seen_on_a_node() -> None:
    found = Bindings()
    found.take(line("pod-0", "node-00001"), 0.5)  # was there before
    found.take(b"\n".join([line("pod-1", kind="ADDED"), line("pod-2", kind="ADDED")]), 1.0)
    found.take(line("pod-1"), 1.01)
    found.take(line("pod-1", "node-00002"), 1.02)
    found.take(line("pod-2", "node-00003"), 1.04)
    assert (found.wait_ms(50), found.wait_ms(99)) == (30.0, 39.8)
    assert Bindings().wait_ms(99) == 0.0


def test_kinds_that_need_a_controller_or_time_are_left_out() -> None:
    assert "basic" in KINDS and "dra" in KINDS and not {"churn", "csi"} & set(KINDS)
