"""What plugins are given of the outside, filled in by whoever builds the engine; defaults for those who only decide."""

from __future__ import annotations

import asyncio
import random as chance
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kubesched.errors import SchedulerError
from kubesched.kube.api import Node
from kubesched.scheduler.cluster import ChangeLog, Groups, Objects, PodView
from kubesched.scheduler.config import Gates
from kubesched.scheduler.framework import (
    Clock,
    FeatureGates,
    Meter,
    Nominations,
    Preempting,
    Random,
    Recorder,
    Waiting,
    WaitingAtPermit,
    Writer,
)


class SystemClock:
    """The machine's own time."""

    now = staticmethod(time.time)
    """Seconds since the epoch."""
    monotonic = staticmethod(time.monotonic)
    """Seconds that never go backwards."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class StillClock:
    """The Clock port where no time passes: for decisions about one moment."""

    def __init__(self, now: float = 0.0) -> None:
        self._now = now

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self._now

    def monotonic(self) -> float:
        """Return the same: nothing takes any time."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Let others run."""
        await asyncio.sleep(0)


class NoWriter:
    """For runs that only decide: every write is refused."""

    async def _refuse(self, *given: Any, **more: Any) -> Any:
        raise SchedulerError("nothing is written in this run")

    bind = patch_pod_status = patch_status = delete_pod = update = create = delete = _refuse


class NoRecorder:
    """For runs that nobody watches."""

    def event(self, regarding: PodView, kind: str, reason: str, action: str, note: str) -> None:
        """Drop the event."""


class NoNominations:
    """Nobody is nominated anywhere."""

    def __init__(self) -> None:
        self.changes: ChangeLog[str] = ChangeLog()

    def on_node(self, node_name: str) -> Iterable[PodView]:
        """Return nobody."""
        return ()

    def nodes(self) -> Collection[str]:
        """Return no node."""
        return ()


class NoMeter:
    """For runs that nobody measures."""

    def _ignore(self, *given: Any, **more: Any) -> None:
        pass

    claim_created = device_bound = device_waited = volume_error = _ignore


class NobodyWaits:
    """Nobody waits at Permit."""

    def __iter__(self) -> Iterator[WaitingAtPermit]:
        return iter(())

    def get(self, uid: str) -> WaitingAtPermit | None:
        """Return nobody."""
        return None


@dataclass(slots=True)
class EngineHandle:
    """The outside, as plugins see it."""

    objects: Objects
    gates: FeatureGates = field(default_factory=Gates.defaults)
    clock: Clock = field(default_factory=SystemClock)
    writer: Writer = field(default_factory=NoWriter)
    recorder: Recorder = field(default_factory=NoRecorder)
    random: Random = field(default_factory=lambda: chance.Random(0))
    nominations: Nominations = field(default_factory=NoNominations)
    preempting: Preempting = field(default_factory=Preempting)
    waiting: Waiting = field(default_factory=NobodyWaits)
    activate: Callable[[Iterable[PodView]], None] = lambda pods: None
    find_node: Callable[[str], Node | None] = lambda name: None
    knows_pod: Callable[[str], bool] = lambda uid: True
    meter: Meter = field(default_factory=NoMeter)
    groups: Groups = field(default_factory=Groups)

    def attach(self, nominations: Nominations, waiting: Waiting, activate: Callable[[Iterable[PodView]], None]) -> None:
        """Let plugins reach an engine's queue, and who waits at Permit there. Those parts know the plugins, so they come after
        the handle; and after a reload those of the new engine take the place of the old one's."""
        self.nominations, self.waiting, self.activate = nominations, waiting, activate

    def node(self, name: str) -> Node | None:
        """Return a node as it is now, or None if it is gone."""
        return self.find_node(name)

    def has_pod(self, uid: str) -> bool:
        """Return whether a pod still exists as far as the API has told."""
        return self.knows_pod(uid)
