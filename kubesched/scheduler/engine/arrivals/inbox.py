"""The inbox: everything that happens outside the engine's loop arrives here, in order.

Watches, binding tasks, timers and other parts of the program post arrivals. Only the engine's loop takes them out, one after
another, so the store and the queue have a single writer and need no locks. `on_arrival` sees each arrival as it is taken out
(`inbox_log.py` writes them to a file, from which a run can be repeated).
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from kubesched.kube.api import ResourceClaim
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.framework import CycleState, Profile, Status
from kubesched.scheduler.queue import QueuedPod


@dataclass(frozen=True, slots=True)
class Changed:
    """An API object changed: it was added if `old` is None, and deleted if `new` is None."""

    kind: str
    old: Any | None
    new: Any | None


class AssumedBinding(Struct, eq=False):
    """A pod that is assumed on a node and not bound yet."""

    queued: QueuedPod
    booked: PodView
    node_name: str
    state: CycleState
    profile: Profile
    started: float
    is_released: bool = False
    """Whether the attempt is over for the queue (`PastPermit`). From then on a failed binding names no plugin that refused the
    pod."""
    promised: Sequence[ResourceClaim] = ()
    """The claims, with their devices, that DynamicResources allocated to it and has not written yet."""
    decision: int | None = None
    """The sequence number of the decision, if decisions are recorded."""


@dataclass(frozen=True, slots=True)
class PastPermit:
    """A pod was allowed at Permit. Whatever happens to its binding now, no plugin refused it."""

    binding: AssumedBinding


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding was written to the API server."""

    binding: AssumedBinding


@dataclass(frozen=True, slots=True)
class BindFailed:
    """A binding failed: at Permit, PreBind or Bind, or at the API server."""

    binding: AssumedBinding
    status: Status


@dataclass(frozen=True, slots=True)
class LoopCall:
    """A function for the engine's loop to call, which may use the store and the queue. After a reload of the configuration
    that is the loop of the new engine."""

    run: Callable[[], None]
    begins_lead: bool = False
    """Whether this replica leads from here on. Only the inbox's log reads it."""


Arrival = Changed | PastPermit | Bound | BindFailed | LoopCall


class Inbox:
    """First in, first out."""

    __slots__ = ("_arrivals", "_bell", "n_emptied", "on_arrival")

    def __init__(self) -> None:
        self._arrivals: deque[Arrival] = deque()
        self._bell: asyncio.Event = asyncio.Event()
        self.on_arrival: Callable[[Arrival], None] | None = None
        self.n_emptied = 0

    def __len__(self) -> int:
        return len(self._arrivals)

    def n_changes(self) -> Counter[str]:
        """Return how many changed objects wait, by kind."""
        return Counter(arrival.kind for arrival in self._arrivals if isinstance(arrival, Changed))

    def post(self, arrival: Arrival) -> None:
        """Add an arrival and wake the loop."""
        self._arrivals.append(arrival)
        self._bell.set()

    def take(self) -> Iterator[Arrival]:
        """Yield the arrivals, oldest first, until none is left."""
        arrivals, noted = self._arrivals, self.on_arrival
        # Arrivals that are posted while the caller works on one are yielded too. The inbox log gives all arrivals of one `take`
        # the same time.
        self.n_emptied += 1
        while arrivals:
            arrival = arrivals.popleft()
            if noted is not None:
                noted(arrival)
            yield arrival
        self._bell.clear()

    async def wait(self, seconds: float | None = None) -> None:
        """Wait until something arrives, for at most so many seconds."""
        if self._arrivals:
            return
        self._bell.clear()
        try:
            await asyncio.wait_for(self._bell.wait(), seconds)
        except TimeoutError:
            return
