"""The figures of an observed cluster as metrics: what waits, how full it is, how fragmented."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kubesched.scheduler.engine import Engine
from kubesched.server.web.page.history import fragmented
from kubesched.server.web.page.node_columns import shares
from kubesched.server.web.page.queue_data import counts_of


class Figures(Collector):
    """Reads them at every scrape."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        engine, nodes = self._engine, self._engine.store.snapshot()
        pending = GaugeMetricFamily(
            "kubesched_observe_pending_pods", "Pods without a node, by where a scheduler would keep them.", labels=("queue",)
        )
        for name, count in counts_of(engine).items():
            if name != "waiting":
                pending.add_metric((name,), count)
        yield pending
        text = "Share requested of what all nodes offer."
        requested = GaugeMetricFamily("kubesched_observe_requested_ratio", text, labels=("resource",))
        for name, share in shares(nodes).items():
            requested.add_metric((name,), share)
        yield requested
        text = "Share of the free cpu that is of no use to pods of the usual size."
        yield GaugeMetricFamily("kubesched_observe_fragmentation_ratio", text, fragmented(engine))
        yield GaugeMetricFamily("kubesched_observe_nodes", "Nodes.", nodes.n)
