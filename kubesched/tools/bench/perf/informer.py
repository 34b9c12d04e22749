"""The pods as a watch tells of them: who has a node, who was tried, who is told when one gets a node.

In: a connection. Out: counts by namespace and labels, and calls of those who listen. It follows the API server and nothing
else, so it sees what any client would see, whichever scheduler is at work.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubesched.errors import SchedulerError

_LOOKS_EVERY_SECONDS = 0.1


@dataclass(slots=True)
class SeenPod:
    """One pod, as far as a benchmark wants to know it."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    seen_at: float
    node: str = ""
    was_tried: bool = False

    def matches(self, selector: Mapping[str, str]) -> bool:
        """Return whether it has all these labels."""
        return all(self.labels.get(key) == value for key, value in selector.items())


Listener = Callable[[SeenPod, float], None]
"""Told of a pod that was just seen on a node, and when."""


class PodInformer:
    """Follows all pods."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, SeenPod]] = {}
        self._listeners: list[Listener] = []

    # What the reflector tells

    def deliver(self, kind: str, old: Any | None, new: Any | None) -> None:
        """Take one change."""
        if new is None:
            if old is not None:
                self._pods.get(old.metadata.namespace, {}).pop(old.metadata.name, None)
            return
        meta = new.metadata
        pods = self._pods.setdefault(meta.namespace, {})
        now = time.monotonic()
        if old is None:
            pods[meta.name] = SeenPod(meta.namespace, meta.name, meta.labels, now)
        pod = pods[meta.name]
        pod.labels = meta.labels
        if not pod.was_tried:
            pod.was_tried = any(condition.type == "PodScheduled" for condition in new.status.conditions)
        if new.spec.node_name and not pod.node:
            pod.node = new.spec.node_name
            for tell in tuple(self._listeners):
                tell(pod, now)

    def synced(self, kind: str) -> None:
        """Know that the first list is delivered."""

    # What the operations ask

    @contextlib.contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """Tell somebody of every pod that gets a node, for as long as the context lasts."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def pods(self, namespace: str, selector: Mapping[str, str]) -> list[SeenPod]:
        """Return the pods of a namespace that have these labels."""
        return [pod for pod in self._pods.get(namespace, {}).values() if pod.matches(selector)]

    async def wait(
        self, namespace: str, n_wanted: int, patience: float, *, selector: Mapping[str, str] | None = None, tried: bool = False
    ) -> None:
        """Wait until so many pods of a namespace have a node, or (`tried`) have one or were refused one; raise in the end."""
        deadline = time.monotonic() + patience
        while True:
            pods = self.pods(namespace, selector or {})
            n_done = sum(1 for pod in pods if pod.node or (tried and pod.was_tried))
            if n_done >= n_wanted:
                return
            if time.monotonic() > deadline:
                waits = next((f", {pod.namespace}/{pod.name} is not" for pod in pods if not pod.node), "")
                done = "tried" if tried else "scheduled"
                what = f"only {n_done} of {n_wanted} pods in namespace {namespace} were {done} within {patience:g} s{waits}"
                raise SchedulerError(what)
            await asyncio.sleep(_LOOKS_EVERY_SECONDS)
