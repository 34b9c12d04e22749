"""A store, a virtual clock, a world over it, and the simplest scheduler there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kubesched.embedded import ManualClock, ObjectStore
from kubesched.embedded.controllers import FakeCluster, Pace
from kubesched.embedded.storage.watch import Change


class Cluster:
    """The little world in virtual time. Pods are bound round robin to nodes that are not cordoned or pinned away."""

    def __init__(self, directory: Path, pace: Pace | None = None, scheduling: bool = True) -> None:
        self.clock = ManualClock()
        self.store = ObjectStore(self.clock, seed=1, data_dir=directory)
        self.world = FakeCluster(self.store, pace)
        self._turn = 0
        if scheduling:
            self.store.listen("pods", self._pod_changed)
        self.world.start()

    def _pod_changed(self, change: Change) -> None:
        if change.new is not None and not change.new.obj["spec"].get("nodeName"):
            key = change.key
            self.clock.call_later(0.01, lambda: self._schedule(key))

    def _schedule(self, key: str) -> None:
        namespace, name = key.split("/")
        entry = self.store.context.find(self.store.context.resource("pods"), namespace, name)
        if entry is None or entry.obj["spec"].get("nodeName"):
            return
        nodes = [node["metadata"]["name"] for node in self.store.list("nodes").items if self._allowed(entry.obj, node)]
        if nodes:
            self._turn += 1
            self.store.bind(namespace, name, nodes[self._turn % len(nodes)])

    def _allowed(self, pod: dict, node: dict) -> bool:
        rules = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        ) or {}
        for term in rules.get("nodeSelectorTerms") or ():
            for field in term.get("matchFields") or ():
                if node["metadata"]["name"] not in field["values"]:
                    return False
        tolerated = {one.get("key") for one in pod["spec"].get("tolerations") or ()}
        taints = (node.get("spec") or {}).get("taints") or ()
        return all(taint["key"] in tolerated for taint in taints if taint["effect"] != "PreferNoSchedule")

    def add_nodes(self, count: int, **labels: str) -> None:
        for number in range(count):
            name = f"n{number}"
            metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
            self.store.create("nodes", {"metadata": metadata, "status": {"capacity": {"cpu": "4", "pods": "110"}}})

    def run(self, seconds: float = 60.0) -> None:
        self.clock.advance(seconds)

    def pods(self, selector: str = "") -> list[dict]:
        return self.store.list("pods", label_selector=selector).items

    def phases(self, selector: str = "") -> list[str]:
        return sorted(pod["status"]["phase"] for pod in self.pods(selector))

    def events(self) -> list[tuple[str, str]]:
        return [(one["involvedObject"]["kind"], one["reason"]) for one in self.store.list("events").items]

    def check_nothing_was_changed_in_place(self) -> None:
        for table in self.store.context.storage.tables():
            for entry in table.entries.values():
                assert msgspec.json.encode(entry.obj) == entry.raw, f"{table.name} {entry.key} was changed in place"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    made.add_nodes(3)
    yield made
    made.check_nothing_was_changed_in_place()
    made.store.close()


@pytest.fixture
def new_cluster() -> type[Cluster]:
    """The class itself, for tests that need more than one or another pace."""
    return Cluster
