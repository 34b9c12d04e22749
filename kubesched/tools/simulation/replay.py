"""Replay: play an inbox log to a new engine in virtual time.

In: the lines that `engine/arrivals/inbox_log.py` wrote. Out: what the engine decided, one line a decision. The same log,
the same configuration and the same seed give the same bytes; another configuration shows what it would have done with the
same cluster at the same times.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from math import isnan, nan
from typing import Any

import msgspec

from kubesched.errors import MalformedObject, SchedulerError, ServerFault, newer_format
from kubesched.kube.api import codec
from kubesched.scheduler import config
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.config import NEWEST, OLDEST_EMULATED, Version
from kubesched.scheduler.engine import (
    INBOX_LOG_FORMAT,
    Changed,
    DecisionRecord,
    DecisionRecorder,
    Engine,
    Ports,
    assemble,
    default_configuration,
)
from kubesched.scheduler.framework import Registry
from kubesched.tools.simulation.clock import VirtualClock, run_virtually

_AFTERWARDS_SECONDS = 60.0


class Decisions:
    """The Recorder port: keeps each event of the engine as a line."""

    def __init__(self, clock: VirtualClock) -> None:
        self.lines: list[dict[str, Any]] = []
        self._clock = clock

    def event(self, regarding: PodView, kind: str, reason: str, action: str, note: str) -> None:
        """Keep an event."""
        self.lines.append({"at": round(self._clock.now(), 6), "pod": regarding.key, "event": reason, "note": note})


class RecordedOutcomes:
    """The Writer port: each binding ends as it was recorded, and when. Other writes succeed at once."""

    def __init__(self, outcomes: Mapping[str, list[tuple[float, str]]], clock: VirtualClock) -> None:
        self._outcomes = {uid: list(ends) for uid, ends in outcomes.items()}
        self._clock = clock

    async def bind(self, pod: PodView, node_name: str) -> None:
        """Wait until the recorded end, and raise the recorded error if there is one."""
        ends = self._outcomes.get(pod.uid)
        if not ends:
            return
        at, why = ends.pop(0)
        await self._clock.sleep(max(at - self._clock.now(), 0.0))
        if why:
            raise ServerFault(500, "Recorded", why.removeprefix('running Bind plugin "DefaultBinder": '))

    async def patch_pod_status(self, pod: PodView, status: Mapping[str, Any]) -> None:
        """Do nothing: the log has the change that followed."""

    async def patch_status(self, obj: Any, status: Mapping[str, Any]) -> None:
        """Do nothing: the log has the change that followed."""

    async def delete_pod(self, pod: PodView) -> None:
        """Do nothing: the log has the deletion that followed."""

    async def update(self, changed: Any, subresource: str = "") -> Any:
        """Return the object as if it were stored."""
        return changed

    async def create(self, obj: Any) -> Any:
        """Return the object as if it were stored."""
        return obj

    async def delete(self, obj: Any) -> None:
        """Do nothing."""


def replay(
    lines: Iterable[bytes],
    configuration: config.Configuration | None = None,
    gates: config.Gates | None = None,
    seed: int | None = None,
    registry: Registry | None = None,
) -> list[dict[str, Any]]:
    """Play a log to a new engine and return its decisions; `registry` knows the plugins that a configuration names."""
    return run_virtually(_play(entries_of(lines), configuration, gates or config.Gates.defaults(), seed, registry))


def decide_again(
    lines: Iterable[bytes],
    configuration: config.Configuration | None = None,
    gates: config.Gates | None = None,
    registry: Registry | None = None,
) -> list[DecisionRecord]:
    """Play a log to a new engine and return the records of its decisions, oldest first, every one in full."""
    recorder, records = DecisionRecorder(1, share=1.0), list[DecisionRecord]()
    recorder.listeners.append(records.append)
    run_virtually(_play(entries_of(lines), configuration, gates or config.Gates.defaults(), None, registry, recorder))
    return records


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Head(msgspec.Struct, frozen=True):
    """The fields that are read before an object is decoded."""

    metadata: _Meta
    kind: str = ""


class LogEntry(msgspec.Struct, frozen=True):
    """One line of an inbox log: a change of an object, the end of a binding, or the begin of leadership."""

    at: float = nan
    format: Any = 1
    seed: int | None = None
    kind: str = ""
    object: msgspec.Raw = msgspec.Raw()
    gone: _Meta | None = None
    bound: str = ""
    unbound: str = ""
    node: str = ""
    why: str = ""
    leading: bool = False
    objects: Any = 0
    """In the first line of a snapshot, the number of objects; an inbox log has none."""
    release: Any = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the kind, namespace and name of the object that changed."""
        meta = _head_of(self.object).metadata if self.object else self.gone or _Meta()
        return self.kind, meta.namespace, meta.name

    def decoded(self) -> Any | None:
        """Return the decoded object; None for a deletion."""
        try:
            return codec.decode(bytes(self.object)) if self.object else None
        except MalformedObject as error:
            raise SchedulerError(f"inbox log: {error}") from error

    @property
    def emulated_release(self) -> Version | None:
        """Return the release in the first line of a log, or the nearest one that can be emulated."""
        found = re.fullmatch(r"1\.([0-9]{1,4})", str(self.release))
        return min(max((1, int(found[1])), OLDEST_EMULATED), NEWEST) if found is not None else None


_entry_of = msgspec.json.Decoder(LogEntry).decode
_head_of = msgspec.json.Decoder(_Head).decode


def entries_of(lines: Iterable[bytes]) -> list[Any]:
    """Return the entries of an inbox log, each a `LogEntry`; raise SchedulerError for lines that are not of one."""
    entries: list[LogEntry] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = _entry_of(line)
            found = _head_of(entry.object).kind if entry.object else ""
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SchedulerError(f"inbox log, line {number}: {error}") from error
        if entry.kind and entry.gone is None:
            if not entry.object:
                raise SchedulerError(f"inbox log, line {number}: there is no {entry.kind} in it")
            if not found or (found != entry.kind and entry.kind in ("Pod", "Node")):
                what = found or "something without a kind"
                raise SchedulerError(f"inbox log, line {number}: there is no {entry.kind} in it, but {what}")
        if number > 1 and isnan(entry.at):
            raise SchedulerError(f"inbox log, line {number}: it does not say when")
        entries.append(entry)
    if entries and entries[0].format != INBOX_LOG_FORMAT:
        raise SchedulerError(newer_format("inbox log", entries[0].format, INBOX_LOG_FORMAT))
    if not entries or entries[0].seed is None or isnan(entries[0].at):
        raise SchedulerError("not an inbox log: the first line has no seed")
    return entries


async def _play(
    entries: list[LogEntry],
    configuration: config.Configuration | None,
    gates: config.Gates,
    seed: int | None,
    registry: Registry | None,
    recorder: DecisionRecorder | None = None,
) -> list[dict[str, Any]]:
    loop = asyncio.get_running_loop()
    clock = VirtualClock(loop, epoch=entries[0].at - loop.time())
    outcomes: dict[str, list[tuple[float, str]]] = {}
    for entry in entries:
        if uid := entry.bound or entry.unbound:
            outcomes.setdefault(uid, []).append((entry.at, entry.why))
    decisions = Decisions(clock)
    ports = Ports(
        clock=clock,
        writer=RecordedOutcomes(outcomes, clock),
        recorder=decisions,
        decisions=recorder,
        seed=(entries[0].seed or 0) if seed is None else seed,
    )
    engine = assemble(configuration or default_configuration(gates), gates, ports, registry=registry)
    engine.is_leading = not any(entry.leading for entry in entries)
    running = asyncio.create_task(engine.run())
    await _feed(engine, clock, entries)
    await clock.sleep(_AFTERWARDS_SECONDS)
    engine.stop()
    await running
    return decisions.lines


async def _feed(engine: Engine, clock: VirtualClock, entries: list[LogEntry]) -> None:
    known: dict[tuple[str, str, str], Any] = {}
    for entry in entries:
        if not entry.kind and not entry.leading:
            continue
        delay = entry.at - clock.now()
        if delay > 0:
            await clock.sleep(delay)
        if not entry.kind:
            engine.lead()
            continue
        new, old = entry.decoded(), known.pop(entry.key, None)
        if new is not None:
            known[entry.key] = new
        if new is not None or old is not None:
            engine.inbox.post(Changed(entry.kind, old, new))
