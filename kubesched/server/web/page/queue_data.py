"""What waits, for the page: the queue pod by pod, and the pods that were refused grouped by what would help them.

In: an engine, and a way to ask it something in its own turn. Out: values that go to JSON as they are. A queue may hold a
hundred thousand pods: it is looked through in slices, with time for the scheduler between them, and what goes out is bounded.
Reports are made one a turn, once for all replicas of a template, and kept for some seconds for all who look.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine import Engine, PendingGroups, alike, condition_of, pod_report, requests_of
from kubesched.scheduler.queue import QueuedPod

PARTS = ("active", "backoff", "unschedulable", "gated")
MOST_PODS = 200
"""Pods that are told of each part of the queue."""
MOST_GROUPED = 5000
MOST_REPORTS = 24
"""Reports that are made for one answer; each keeps the scheduler from its work for some milliseconds."""
MOST_NAMES = 12
REPORT_SECONDS = 5.0
_MOST_KEPT = 500
_SLICE = 2000

InTurn = Callable[[Callable[[Engine], dict[str, Any]]], Awaitable[dict[str, Any]]]


class KeptReport(NamedTuple):
    """A report, and when it was made."""

    made: float
    report: dict[str, Any]


class QueueData:
    """Looks through the queue of whichever engine runs."""

    def __init__(self, in_turn: InTurn) -> None:
        self._in_turn = in_turn
        self._reports: dict[tuple[Any, ...], KeptReport] = {}

    async def pods(self, engine: Engine, part: str = "", search: str = "") -> dict[str, Any]:
        """Return the pods of all parts of the queue, or of one, whose name, labels or reason hold the words searched for."""
        words = search.lower().split()
        found: dict[str, list[QueuedPod]] = {name: [] for name in PARTS if part in ("", name)}
        matching = dict.fromkeys(found, 0)
        everything = list(engine.queue)
        for start in range(0, len(everything), _SLICE):
            for entry in everything[start : start + _SLICE]:
                place = engine.queue.place_of(entry.key)
                if place in found and (not words or _matches(entry, words)):
                    matching[place] += 1
                    if len(found[place]) < MOST_PODS:
                        found[place].append(entry)
            await asyncio.sleep(0)
        return {
            "queue": counts_of(engine),
            "parts": {
                name: {"matching": matching[name], "pods": [_told(entry, name) for entry in found[name]]} for name in found
            },
        }

    async def groups(self, engine: Engine) -> dict[str, Any]:
        """Return the pods that are held back, grouped by what would help them now; with those that were not looked at."""
        groups, queue = PendingGroups(), engine.queue
        held = _held_back(engine)
        if len(self._reports) > _MOST_KEPT:
            old = time.monotonic() - REPORT_SECONDS
            self._reports = {key: kept for key, kept in self._reports.items() if kept.made >= old}
        n_made = n_skipped = 0
        for entry in held:
            key = alike(entry.view)
            kept = self._reports.get(key)
            if kept is None or time.monotonic() - kept.made > REPORT_SECONDS:
                if n_made == MOST_REPORTS:
                    n_skipped += 1
                    continue
                n_made += 1
                kept = self._reports[key] = KeptReport(time.monotonic(), await self._report(entry.view))
            groups.add(entry.view, kept.report)
        document = groups.document()
        for group in document["groups"]:
            group["pods"] = [_told_briefly(engine, key) for key in group["pods"][:MOST_NAMES]]
        total = queue.n_backoff + queue.n_unschedulable + queue.n_gated
        return document | {"queue": counts_of(engine), "notLookedAt": max(total - len(held), 0) + n_skipped}

    async def _report(self, pod: PodView) -> dict[str, Any]:
        return await self._in_turn(lambda engine: pod_report(engine, pod, top=1))


def counts_of(engine: Engine) -> dict[str, int]:
    """Return how many of our pods have no node yet, by where they are; the parts add up to `waiting`."""
    queue = engine.queue
    counts = {
        "active": queue.n_active,
        "backoff": queue.n_backoff,
        "unschedulable": queue.n_unschedulable,
        "gated": queue.n_gated,
    }
    waiting = max(engine.intake.n_pending, sum(counts.values()))
    return counts | {"inFlight": waiting - sum(counts.values()), "waiting": waiting}


def gate_text(entry: QueuedPod) -> str:
    """Return what keeps a pod from being tried: the plugin, and the gates of its spec."""
    gates = ", ".join(gate.name for gate in entry.view.pod.spec.scheduling_gates)
    return f"gated by {entry.gating_plugin}" + (f": {gates}" if gates else "")


def message_of(entry: QueuedPod) -> str:
    """Return what a pod was told when it was last refused, or what keeps it from being tried."""
    return gate_text(entry) if entry.is_gated else condition_of(entry.view)


def _held_back(engine: Engine) -> list[QueuedPod]:
    """Return pods that are held back, not too many: those that pause are not hidden by thousands that wait."""
    held = list(engine.queue.held_back())
    waiting, pausing = held[: len(held) - engine.queue.n_backoff], held[len(held) - engine.queue.n_backoff :]
    first = pausing[: MOST_GROUPED // 2]
    return first + waiting[: MOST_GROUPED - len(first)]


def _matches(entry: QueuedPod, words: list[str]) -> bool:
    labels = " ".join(f"{key}={value}" for key, value in entry.view.labels.items())
    text = f"{entry.key} {labels} {message_of(entry)} {' '.join(entry.rejectors)}".lower()
    return all(word in text for word in words)


def _told(entry: QueuedPod, place: str) -> dict[str, Any]:
    told: dict[str, Any] = {
        "pod": entry.key,
        "place": place,
        "priority": entry.view.priority,
        "attempts": entry.attempts,
        "since": entry.initial_attempt or entry.timestamp,
        "message": message_of(entry),
        "plugins": sorted(entry.rejectors),
        "requests": requests_of(entry.view),
    }
    if place == "backoff" and entry.backoff_expiry is not None:
        told["backoffUntil"] = entry.backoff_expiry
    if place == "gated":
        told["gates"] = [gate.name for gate in entry.view.pod.spec.scheduling_gates]
        told["gatedBy"] = entry.gating_plugin
    return told


def _told_briefly(engine: Engine, key: str) -> dict[str, Any]:
    entry = engine.queue.find(key)
    return {"pod": key, "place": engine.queue.place_of(key), "attempts": entry.attempts if entry is not None else 0}
