"""The one door: everything that happens arrives here, in order.

In: arrivals from anywhere, at any time of the event loop's turn. Out: the same, in the order in which they came, when the
loop asks. Nothing is decided here. Whoever wants a recording sets `on_arrival` and writes down what passes.
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
    """An API object was seen to change: `old` None means it came, `new` None that it went."""

    kind: str
    old: Any | None
    new: Any | None


class AssumedBinding(Struct, eq=False):
    """A booked pod on its way to being bound."""

    queued: QueuedPod
    booked: PodView
    node_name: str
    state: CycleState
    profile: Profile
    started: float
    is_released: bool = False
    """Whether the queue was told that the attempt is over: from then on a failure names no plugin."""
    promised: Sequence[ResourceClaim] = ()
    """The claims, with their devices, that it was promised."""
    decision: int | None = None
    """The sequence number of the decision, where decisions are recorded."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding was written to the API server."""

    binding: AssumedBinding


@dataclass(frozen=True, slots=True)
class BindFailed:
    """A binding could not be carried out."""

    binding: AssumedBinding
    status: Status


@dataclass(frozen=True, slots=True)
class LoopCall:
    """Something to do in the loop's own turn, where the store and the queue may be touched; after a reload, in the turn of
    another loop than had it posted."""

    run: Callable[[], None]
    begins_lead: bool = False
    """Whether pods are tried from here on, and none was before."""


Arrival = Changed | Bound | BindFailed | LoopCall


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
        """Put something in; it is looked at in the loop's next turn."""
        self._arrivals.append(arrival)
        self._bell.set()

    def take(self) -> Iterator[Arrival]:
        """Yield what has arrived, oldest first, until nothing is left."""
        arrivals, noted = self._arrivals, self.on_arrival
        self.n_emptied += 1
        while arrivals:
            arrival = arrivals.popleft()
            if noted is not None:
                noted(arrival)
            yield arrival
        self._bell.clear()

    async def wait(self, seconds: float | None = None) -> None:
        """Wait until something arrives, at most so many seconds."""
        if self._arrivals:
            return
        self._bell.clear()
        try:
            await asyncio.wait_for(self._bell.wait(), seconds)
        except TimeoutError:
            return
