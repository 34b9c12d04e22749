"""The handle: what plugins may use of the scheduler and the outside. The defaults are for runs that only decide and write
nothing."""

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
    """The time of this machine."""

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
    """Refuses every write: for runs that only decide."""

    async def _refuse(self, *given: Any, **more: Any) -> Any:
        raise SchedulerError("nothing is written in this run")

    bind = patch_pod_status = patch_status = delete_pod = update = create = delete = _refuse


class NoRecorder:
    """Drops every event."""

    def event(self, regarding: PodView, kind: str, reason: str, action: str, note: str) -> None:
        """Drop the event."""


class NoNominations:
    """No pod is nominated."""

    def __init__(self) -> None:
        self.changes: ChangeLog[str] = ChangeLog()

    def on_node(self, node_name: str) -> Iterable[PodView]:
        """Return nothing."""
        return ()

    def nodes(self) -> Collection[str]:
        """Return no node."""
        return ()


class NoMeter:
    """Measures nothing."""

    def _ignore(self, *given: Any, **more: Any) -> None:
        pass

    claim_created = device_bound = device_waited = volume_error = _ignore


class NobodyWaits:
    """No pod waits at Permit."""

    def __iter__(self) -> Iterator[WaitingAtPermit]:
        return iter(())

    def get(self, uid: str) -> WaitingAtPermit | None:
        """Return nothing."""
        return None


@dataclass(slots=True)
class EngineHandle:
    """What plugins may use, as kube-scheduler's framework.Handle."""

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
        """Give plugins the nominations, the pods at Permit and the queue of an engine. These parts need the plugins, so they
        are built after the handle. After a reload those of the new engine replace them."""
        self.nominations, self.waiting, self.activate = nominations, waiting, activate

    def node(self, name: str) -> Node | None:
        """Return a node, or None if it is gone."""
        return self.find_node(name)

    def has_pod(self, uid: str) -> bool:
        """Return whether a pod exists, as far as the watch has reported."""
        return self.knows_pod(uid)
