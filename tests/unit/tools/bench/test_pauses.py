"""Pauses between decisions: the figures, and that the collector has no pod to walk."""

from __future__ import annotations

import gc

from kubesched.scheduler.cluster import PodView, Store
from kubesched.tools.bench import workloads
from kubesched.tools.bench.builders import make_pod
from kubesched.tools.bench.pauses import Pauses, run


def test_pods_come_and_go_and_memory_is_level() -> None:
    figures = run(Pauses(nodes=20, pods=400, turns=300))
    assert figures["placed"] == 300
    assert 0 < figures["p50_ms"] <= figures["p99_ms"] <= figures["longest_ms"]
    assert figures["rss_end_mib"] - figures["rss_begin_mib"] < 20


def test_the_collector_does_not_walk_placed_pods() -> None:
    store = Store()
    store.put_node(workloads.node(0))
    pods = [make_pod(i, {"app": "web"}, node_name="node-00000") for i in range(3)]
    views = [store.put_pod(pod) for pod in pods]
    assert all(isinstance(view, PodView) and not gc.is_tracked(view) for view in views)
    assert not any(gc.is_tracked(pod) for pod in pods)
