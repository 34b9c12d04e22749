"""A server through which tens of thousands of objects pass is as large as after the first thousands.

Pods come and go, ten of a label, and with them events, namespaces, what stands in namespaces, nodes and images. After each
tenth of the history all containers of the server and its fake cluster are counted, and the bytes that are allocated.
"""

from __future__ import annotations

import functools
import gc
import sys
import tracemalloc
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from kubesched.embedded import ManualClock, ObjectStore
from kubesched.embedded.controllers import FakeCluster, Pace
from kubesched.embedded.schema.resources import Catalogue, Resource
from kubesched.embedded.storage import event_ttl
from kubesched.embedded.storage.watch import Change, Entry

PODS_PER_SECOND = 4
FEW = 10  # entries that a structure may have more at one time than at another
MOST_CACHED = 16_384
FREE_BYTES = 128 * 1024  # that the interpreter keeps of freed dictionaries and lists, to use them again
_CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
_LABELS = {"app": "x"}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": {"containers": [_CONTAINER]}}
_IN_EACH_NAMESPACE: list[tuple[str, dict[str, Any]]] = [
    ("services", {"spec": {"selector": _LABELS, "ports": [{"port": 80}]}}),
    ("configmaps", {"data": {"a": "b"}}),
    ("resourcequotas", {"spec": {"hard": {"pods": "1000"}}}),
    ("poddisruptionbudgets", {"spec": {"minAvailable": 1, "selector": {"matchLabels": _LABELS}}}),
    ("deployments", {"spec": {"replicas": 2, "selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}}),
    ("daemonsets", {"spec": {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}}),
    ("jobs", {"spec": {"template": {"spec": {"containers": [_CONTAINER], "restartPolicy": "Never"}}}}),
    (
        "persistentvolumeclaims",
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "standard",
                "resources": {"requests": {"storage": "1Gi"}},
            }
        },
    ),
]


@dataclass(frozen=True)
class History:
    """How long a history is, and how wide."""

    n_pods: int
    n_alive: int
    n_nodes: int
    pods_per_namespace: int
    history_limit: int
    most_events: int


SHORT = History(500, 50, 2, 25, history_limit=5, most_events=120)
LONG = History(30_000, 200, 50, 500, history_limit=10_000, most_events=20_000)


class Churn:
    """Objects that come and go."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.clock = ManualClock()
        self.store = ObjectStore(self.clock, seed=1, history_limit=history.history_limit)
        self.cluster = FakeCluster(self.store, Pace(lease_seconds=10))
        self.cluster.start()
        self.watches = [self.store.watch(resource) for resource in ("pods", "events", "nodes")]
        self.alive: deque[tuple[str, str]] = deque()
        self.namespaces: deque[str] = deque()
        for number in range(history.n_nodes):
            self.add_node(f"node-{number}")

    def add_node(self, name: str) -> None:
        capacity = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
        self.store.create("nodes", {"metadata": {"name": name}, "status": {"capacity": capacity}})

    def run(self, first: int, n_pods: int) -> None:
        for number in range(first, first + n_pods):
            if number % self.history.pods_per_namespace == 0:
                self.next_namespace(number)
            self.add_pod(number)
            if len(self.alive) > self.history.n_alive:
                namespace, name = self.alive.popleft()
                self.store.delete("pods", name, namespace, grace_seconds=number % 3)
            if number % PODS_PER_SECOND == 0:
                self.clock.advance(1.0)
                for watch in self.watches:
                    for event in watch.drain():
                        event.frame("", lambda entry: entry.raw)

    def next_namespace(self, number: int) -> None:
        name = f"team-{number}"
        self.store.create("namespaces", {"metadata": {"name": name}})
        for resource, body in _IN_EACH_NAMESPACE:
            self.store.create(resource, {"metadata": {"name": f"{resource}-{number}"}, **body}, name)
        self.namespaces.append(name)
        if len(self.namespaces) > 3:
            self.store.delete("namespaces", self.namespaces.popleft())
        self.cluster.fail_node(f"node-{number - self.history.pods_per_namespace}-extra")
        self.add_node(f"node-{number}-extra")
        if number:
            self.store.delete("nodes", f"node-{number - self.history.pods_per_namespace}-extra")

    def add_pod(self, number: int) -> None:
        name, namespace, node = f"pod-{number}", self.namespaces[-1], f"node-{number % self.history.n_nodes}"
        metadata: dict[str, Any] = {"name": name, "labels": {"app": f"app-{number // 10}", f"label-{number // 10}": ""}}
        if number % 5 == 0:  # most of these are deleted while they run
            metadata["annotations"] = {"kubesched.io/run-seconds": "86400"}
        container = {**_CONTAINER, "image": f"image-{number}"}
        self.store.create("pods", {"metadata": metadata, "spec": {"containers": [container]}}, namespace)
        self.store.bind(namespace, name, node)
        involved = {"kind": "Pod", "name": name, "namespace": namespace}
        message = f"Successfully assigned {namespace}/{name} to {node}"
        event = {"metadata": {"name": f"{name}.1"}, "involvedObject": involved, "reason": "Scheduled", "message": message}
        self.store.create("events", event, namespace)
        self.alive.append((namespace, name))


def n_entries(*roots: object) -> Counter[str]:
    """Count what the containers hold that can be reached through our own objects, by class and attribute."""
    counted: Counter[str] = Counter()
    seen: set[int] = set()
    ahead: list[tuple[str, object]] = [("", root) for root in roots]
    while ahead:
        place, one = ahead.pop()
        if id(one) in seen or isinstance(one, (str, bytes, Entry, Change, Resource, Catalogue, ManualClock)):
            continue
        seen.add(id(one))
        if isinstance(one, (dict, list, tuple, set, frozenset, deque)):
            counted[place] += len(one)
            values = one.values() if isinstance(one, dict) else one
            ahead += [(f"{place}[]", value) for value in values]
        elif type(one).__module__.startswith("kubesched") and hasattr(one, "__dict__"):
            ahead += [(f"{type(one).__name__}.{name}", value) for name, value in vars(one).items()]
    return counted


def caches() -> Iterator[tuple[str, functools._lru_cache_wrapper[Any]]]:
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("kubesched."):
            for name, value in vars(module).items():
                if isinstance(value, functools._lru_cache_wrapper):
                    yield f"{module_name}.{name}", value


def grown(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    return {name: (before.get(name, 0), count) for name, count in after.items() if count > before.get(name, 0) * 1.1 + FEW}


def play(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_ttl, "MOST_EVENTS", history.most_events)
    churn, tenth = Churn(history), history.n_pods // 10
    counts: list[Counter[str]] = []
    sizes: list[int] = []
    unbounded: list[dict[str, int]] = []
    tracemalloc.start()
    try:
        for number in range(10):
            churn.run(number * tenth, tenth)
            unbounded.append(cached := {})
            for name, cache in caches():
                if cache.cache_info().maxsize is None:
                    cached[name] = cache.cache_info().currsize
                else:
                    cache.cache_clear()  # it may still be filling up to its bound
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
            counts.append(n_entries(churn.store, churn.cluster))
    finally:
        tracemalloc.stop()
    assert len(counts[1]) > 50, "the containers are found"
    assert grown(counts[1], counts[-1]) == {}
    assert grown(unbounded[1], unbounded[-1]) == {}
    assert [name for name, cache in caches() if (cache.cache_info().maxsize or 0) > MOST_CACHED] == []
    assert sizes[-1] <= 1.1 * sizes[1] + FREE_BYTES, [f"{size / 2**20:.1f} MiB" for size in sizes]


def test_what_passed_through_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    play(SHORT, monkeypatch)


@pytest.mark.nightly
def test_tens_of_thousands_of_pods_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    play(LONG, monkeypatch)
