"""Decide again: an inbox log played to a new engine in virtual time.

In: the lines that `engine/arrivals/inbox_log.py` wrote. Out: what the engine decided, one line a decision. The same log,
the same configuration and the same seed give the same bytes; another configuration shows what it would have done with the
same cluster at the same times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Required, TypedDict

import msgspec

from kubesched.errors import MalformedObject, SchedulerError, ServerFault
from kubesched.kube.api import codec
from kubesched.scheduler import config
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine.arrivals.inbox import Changed
from kubesched.scheduler.engine.assembly import Ports, assemble, default_configuration
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.engine.records.decision_record import DecisionRecord
from kubesched.scheduler.engine.records.decision_recorder import DecisionRecorder
from kubesched.scheduler.framework.runtime.registry import Registry
from kubesched.tools.simulation.clock import VirtualClock, run_virtually

_AFTERWARDS_SECONDS = 60.0


class Decisions:
    """Takes the engine's events and turns them into lines."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.clock: VirtualClock | None = None

    def event(self, regarding: PodView, kind: str, reason: str, action: str, note: str) -> None:
        """Keep what people would be told."""
        assert self.clock is not None
        self.lines.append({"at": round(self.clock.now(), 6), "pod": regarding.key, "event": reason, "note": note})


class RecordedOutcomes:
    """A writer that knows how every binding ended, and when; what it does not know succeeds at once."""

    def __init__(self, outcomes: Mapping[str, list[tuple[float, str]]], clock: VirtualClock) -> None:
        self._outcomes = {uid: list(ends) for uid, ends in outcomes.items()}
        self._clock = clock

    async def bind(self, pod: PodView, node_name: str) -> None:
        """Wait until the recorded end, and end that way."""
        ends = self._outcomes.get(pod.uid)
        if not ends:
            return
        at, why = ends.pop(0)
        await self._clock.sleep(max(at - self._clock.now(), 0.0))
        if why:
            raise ServerFault(500, "Recorded", why.removeprefix('running Bind plugin "DefaultBinder": '))

    async def patch_pod_status(self, pod: PodView, status: Mapping[str, Any]) -> None:
        """Do nothing: if it was written, the log has it."""

    async def patch_status(self, obj: Any, status: Mapping[str, Any]) -> None:
        """Do nothing: if it was written, the log has it."""

    async def delete_pod(self, pod: PodView) -> None:
        """Do nothing: if it was deleted, the log has it."""

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


def entries_of(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return the entries of an inbox log; raise SchedulerError for lines that are not of one."""
    entries = list(_read(lines))
    if not entries or "seed" not in entries[0] or "at" not in entries[0]:
        raise SchedulerError("not an inbox log: the first line has no seed")
    return entries


class _Meta(TypedDict, total=False):
    name: str
    namespace: str


class _Object(TypedDict, total=False):
    kind: str
    metadata: Required[_Meta]


class _Entry(TypedDict, total=False):
    """What is read of a line."""

    at: float
    seed: int
    kind: str
    object: _Object
    gone: _Meta
    bound: str
    unbound: str
    node: str
    why: str


def _read(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                entry = msgspec.json.decode(line, type=dict[str, Any])
                told = msgspec.convert(entry, _Entry)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise SchedulerError(f"inbox log, line {number}: {error}") from error
            kind = told.get("kind")
            if kind is not None and "gone" not in told:
                if "object" not in told:
                    raise SchedulerError(f"inbox log, line {number}: there is no {kind} in it")
                found = told["object"].get("kind", "something without a kind")
                if found != kind and (kind in ("Pod", "Node") or "kind" not in told["object"]):
                    raise SchedulerError(f"inbox log, line {number}: there is no {kind} in it, but {found}")
            if number > 1 and "at" not in told:
                raise SchedulerError(f"inbox log, line {number}: it does not say when")
            yield entry


async def _play(
    entries: list[dict[str, Any]],
    configuration: config.Configuration | None,
    gates: config.Gates,
    seed: int | None,
    registry: Registry | None,
    recorder: DecisionRecorder | None = None,
) -> list[dict[str, Any]]:
    loop = asyncio.get_running_loop()
    clock = VirtualClock(loop, epoch=entries[0]["at"] - loop.time())
    outcomes: dict[str, list[tuple[float, str]]] = {}
    for entry in entries:
        uid = entry.get("bound") or entry.get("unbound")
        if uid:
            outcomes.setdefault(uid, []).append((entry["at"], entry.get("why", "")))
    decisions = Decisions()
    decisions.clock = clock
    ports = Ports(
        clock=clock,
        writer=RecordedOutcomes(outcomes, clock),
        recorder=decisions,
        decisions=recorder,
        seed=entries[0]["seed"] if seed is None else seed,
    )
    engine = assemble(configuration or default_configuration(gates), gates, ports, registry=registry)
    engine.is_leading = not any("leading" in entry for entry in entries)
    running = asyncio.create_task(engine.run())
    await _feed(engine, clock, entries)
    await clock.sleep(_AFTERWARDS_SECONDS)
    engine.stop()
    await running
    return decisions.lines


async def _feed(engine: Engine, clock: VirtualClock, entries: list[dict[str, Any]]) -> None:
    known: dict[tuple[str, str, str], Any] = {}
    for entry in entries:
        kind = entry.get("kind")
        if kind is None and "leading" not in entry:
            continue
        delay = entry["at"] - clock.now()
        if delay > 0:
            await clock.sleep(delay)
        if kind is None:
            engine.lead()
            continue
        new = _decoded(entry["object"]) if "object" in entry else None
        meta = entry["object"]["metadata"] if "object" in entry else entry["gone"]
        key = (kind, meta.get("namespace") or "", meta.get("name") or "")
        old = known.pop(key, None)
        if new is not None:
            known[key] = new
        if new is not None or old is not None:
            engine.inbox.post(Changed(kind, old, new))


def _decoded(raw: dict[str, Any]) -> Any:
    try:
        return codec.decode(raw)
    except MalformedObject as error:
        raise SchedulerError(f"inbox log: {error}") from error
