"""The core: what all parts of an engine share. `assembly` makes it and hands it to every part.

The parts know the core, and not the loop or the parts that come after them. A task that wants to use the store or the queue
posts a function to the inbox (`LoopCall`), and the loop calls it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kubesched.scheduler.cluster import Store
from kubesched.scheduler.engine.arrivals.inbox import Inbox
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.engine.observer import EngineObserver, NoObserver
from kubesched.scheduler.engine.records.decision_recorder import DecisionRecorder
from kubesched.scheduler.framework import Profile
from kubesched.scheduler.queue import Queue

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Core:
    """Store, queue, profiles, the outside and the inbox of one engine."""

    store: Store
    profiles: Mapping[str, Profile]
    queue: Queue
    handle: EngineHandle
    inbox: Inbox = field(default_factory=Inbox)
    observer: EngineObserver = field(default_factory=NoObserver)
    decisions: DecisionRecorder | None = None
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    """Bindings, evictions and status writes under way."""
    successor: Core | None = None
    """The core of the engine that took over at a reload."""

    @property
    def latest(self) -> Core:
        """Return the core of the newest engine. After reloads its queue has the pods, and this one's is closed."""
        core = self
        while core.successor is not None:
            core = core.successor
        return core

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine beside the loop. If it raises, that is logged."""
        task = asyncio.get_running_loop().create_task(coroutine)
        # asyncio keeps only weak references to tasks. Without this set a binding under way could be collected as garbage, and
        # its pod would stay assumed for ever. `drain`, `settle` and `abandon` use the set too.
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a background task failed: %s", task.exception(), exc_info=task.exception())


class EngineState(Protocol):
    """What explanations and dumps read of an engine. They run in its loop and change nothing."""

    store: Store
    profiles: Mapping[str, Profile]
    queue: Queue
    inbox: Inbox
