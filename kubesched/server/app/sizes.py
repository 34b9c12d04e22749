"""Gauges of sizes (pods by queue, cache, inbox), which are read when metrics are scraped."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kubesched.kube.client import Reflectors
from kubesched.scheduler.engine import Engine
from kubesched.telemetry import Metrics

INFORMERS_OF = "kube-scheduler"


def watch_sizes(metrics: Metrics, engine: Engine, reflectors: Callable[[], Reflectors | None] | None) -> None:
    """Let the metrics read the sizes of an engine, and with `reflectors` the items and versions of each informer."""
    # Called again after a reload: the new engine's functions replace the old one's by name.
    queue, store = engine.queue, engine.store
    metrics.watch(
        pending_pods=lambda: {
            "active": queue.n_active,
            "backoff": queue.n_backoff,
            "unschedulable": queue.n_unschedulable,
            "gated": queue.n_gated,
        },
        inflight_events=queue.in_flight_events,
        cache_size=lambda: {
            "nodes": len(store.nodes),
            "pods": sum(1 for _ in store.pods()),
            "assumed_pods": store.n_assumed,
        },
        waiting=lambda: {"inbox": len(engine.inbox)},
    )
    if reflectors is not None:
        informers = Informers(engine, reflectors)
        metrics.watch(informer_items=informers.items, informer_versions=informers.versions)


class Informers:
    """The informer metrics of kube-scheduler, by (name, group, version, resource)."""

    def __init__(self, engine: Engine, reflectors: Callable[[], Reflectors | None]) -> None:
        self._engine = engine
        self._reflectors = reflectors

    def items(self) -> dict[tuple[str, ...], float]:
        """Return how many changes of each resource wait in the inbox."""
        # Our reflectors have no queue of their own. What they have delivered and the loop has not applied waits in the inbox,
        # so that is what client-go's informer metric means here.
        waiting = self._engine.inbox.n_changes()
        return {labels: waiting.get(kind, 0) for kind, labels, _ in self._each()}

    def versions(self) -> dict[tuple[str, ...], float]:
        """Return the last 15 digits of each resource's newest resourceVersion, which fit a float."""
        return {labels: int(version[-15:]) for _, labels, version in self._each() if version.isdigit()}

    def _each(self) -> Iterator[tuple[str, tuple[str, ...], str]]:
        """Yield kind, labels and newest resourceVersion of every resource that is followed."""
        reflectors = self._reflectors()
        for kind, reflector in (reflectors.by_kind if reflectors is not None else {}).items():
            if reflector.is_left_out:
                continue
            group, _, version = reflector.api_version.rpartition("/")
            yield kind, (INFORMERS_OF, group, version, reflector.plural), reflector.version
