"""Protocols for everything outside the framework: time, random numbers, writing to the API server, events.

Framework and plugins use nothing else from outside. The engine, the simulator and the tests pass what fits: a real or a virtual
clock, a writer that uses HTTP or one that fills a list.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

from kubesched.kube.api import Node
from kubesched.scheduler.cluster import ChangeLog, Groups, Objects, PodView
from kubesched.scheduler.config import Behaviour
from kubesched.scheduler.framework.preemption.preempting import Preempting


class Clock(Protocol):
    """Time."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go backwards."""
        ...

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait."""
        ...


class Writer(Protocol):
    """Writes to the API server. Every call raises an `ApiError` or `Unreachable` if it fails.

    A binding or an update raises only if it was not carried out. If the answer is lost, the call waits until it knows.
    """

    async def bind(self, pod: PodView, node_name: str) -> None:
        """Create the pod's binding."""
        ...

    async def patch_pod_status(self, pod: PodView, status: Mapping[str, Any]) -> None:
        """Patch a pod's status with a strategic merge patch of the status object."""
        ...

    async def patch_status(self, obj: Any, status: Mapping[str, Any]) -> None:
        """Patch the status of any other object in the same way."""
        ...

    async def delete_pod(self, pod: PodView) -> None:
        """Delete a pod with its own grace period."""
        ...

    async def update(self, changed: Any, subresource: str = "") -> Any:
        """Replace an object (a claim, a volume); raise `Conflict` if it changed meanwhile. Return the new version."""
        ...

    async def create(self, obj: Any) -> Any:
        """Create an object and return it as stored."""
        ...

    async def delete(self, obj: Any) -> None:
        """Delete an object."""
        ...


class Recorder(Protocol):
    """Events for people."""

    def event(self, regarding: PodView, kind: str, reason: str, action: str, note: str) -> None:
        """Record that something happened to a pod; `kind` is Normal or Warning. Never blocks and never fails."""
        ...


class Random(Protocol):
    """Chance, seeded."""

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 to stop - 1."""
        ...


class Nominations(Protocol):
    """Who waits for which node's pods to go away."""

    def on_node(self, node_name: str) -> Iterable[PodView]:
        """Return the pods nominated to a node, in the order of their nomination."""
        ...

    def nodes(self) -> Collection[str]:
        """Return the nodes that pods are nominated to."""
        ...

    @property
    def changes(self) -> ChangeLog[str]:
        """Return the log of the nodes whose nominated pods changed."""
        ...


class WaitingAtPermit(Protocol):
    """A pod that is booked and held until plugins allow it."""

    @property
    def pod(self) -> PodView:
        """Return the pod as it is booked."""
        ...

    @property
    def node_name(self) -> str:
        """Return the node that it is booked on."""
        ...

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """Return the plugins that have not allowed it yet."""
        ...

    def allow(self, plugin: str) -> None:
        """Allow the pod for one plugin that asked to wait."""
        ...

    def reject(self, plugin: str, message: str) -> bool:
        """Refuse the pod; False if it was decided already."""
        ...

    def preempt(self, plugin: str, message: str) -> bool:
        """End the pod's attempt in favour of another pod; False if it was decided already."""
        ...


class Waiting(Protocol):
    """All pods that wait at Permit."""

    def __iter__(self) -> Iterator[WaitingAtPermit]: ...

    def get(self, uid: str) -> WaitingAtPermit | None:
        """Return a pod that waits, or None."""
        ...


class Meter(Protocol):
    """The metrics that plugins count themselves; `telemetry.Metrics` has them."""

    def claim_created(self, status: str) -> None:
        """Count a claim created for extended resources: success or failure."""
        ...

    def device_bound(self, profile: str, driver: str, status: str) -> None:
        """Count a device with binding conditions, by how waiting for it ended: success, failure, timeout or error."""
        ...

    def device_waited(self, profile: str, driver: str, status: str, seconds: float) -> None:
        """Take how long a pod waited for an allocated device."""
        ...

    def volume_error(self, operation: str) -> None:
        """Count an error of Filter (predicate), Reserve (assume) or PreBind (bind) about volumes."""
        ...


class FeatureGates(Protocol):
    """Which features are on."""

    def is_enabled(self, gate: str) -> bool:
        """Return whether a gate is on."""
        ...

    @property
    def behaviour(self) -> Behaviour:
        """Return what the emulated release does that no gate switches."""
        ...


class Handle(Protocol):
    """What a plugin is given of the outside when it is built."""

    gates: FeatureGates
    objects: Objects
    """The cluster's objects other than nodes and pods, as they are now."""
    clock: Clock
    writer: Writer
    recorder: Recorder
    random: Random
    nominations: Nominations
    """Who is nominated where."""
    meter: Meter
    """Where plugins count what only they know."""
    waiting: Waiting
    """The pods that wait at Permit."""
    groups: Groups
    """The pods that belong together, for reading."""
    preempting: Preempting
    """The pods whose evictions are still being carried out."""

    @property
    def activate(self) -> Callable[[Iterable[PodView]], None]:
        """Return the function that has waiting pods tried at once."""
        ...

    def node(self, name: str) -> Node | None:
        """Return a node as it is now, or None if it is gone."""
        ...

    def has_pod(self, uid: str) -> bool:
        """Return whether a pod, placed or not, still exists as far as the API has told."""
        ...
