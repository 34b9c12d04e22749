"""The pods of the cluster, followed by a watch: which have a node, and which the scheduler has tried.

In: changes of pods. Out: pods by namespace and labels, and a call to the listeners when a pod gets a node. The API server is
the only source, so the figures do not depend on which scheduler runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubesched.errors import SchedulerError

_POLL_SECONDS = 0.1


@dataclass(slots=True)
class SeenPod:
    """What a benchmark needs to know about a pod."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    seen_at: float
    node: str = ""
    was_tried: bool = False

    def matches(self, selector: Mapping[str, str]) -> bool:
        """Return whether the pod has all these labels."""
        return all(self.labels.get(key) == value for key, value in selector.items())


Listener = Callable[[SeenPod, float], None]
"""Called with a pod that just got a node, and the time."""


class PodInformer:
    """Follows all pods, as the sink of a reflector."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, SeenPod]] = {}
        self._listeners: list[Listener] = []

    def deliver(self, kind: str, old: Any | None, new: Any | None) -> None:
        """Apply one change of a pod."""
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
            for listener in tuple(self._listeners):
                listener(pod, now)

    def synced(self, kind: str) -> None:
        """Do nothing when the first list is complete."""

    @contextlib.contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """Call a listener for every pod that gets a node, while the context lasts."""
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
        """Wait until `n_wanted` pods of a namespace have a node, or with `tried` have a node or a failed attempt.

        Raise SchedulerError after `patience` seconds.
        """
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
            await asyncio.sleep(_POLL_SECONDS)
