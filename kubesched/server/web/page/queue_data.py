"""The queue for the page: pod by pod, and the rejected pods grouped by what would help them.

In: an engine, and a function that runs a question in the engine's turn. Out: values that can be encoded as JSON. A queue may
hold 100,000 pods, so it is read in slices, with time for the scheduler between them, and the answer is bounded. An explanation
is computed once for all replicas of a template, one a turn, and kept for some seconds for all clients.
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
"""The most pods that are returned of each part of the queue."""
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
    """Reads the queue of the engine that runs."""

    def __init__(self, in_turn: InTurn) -> None:
        self._in_turn = in_turn
        self._reports: dict[tuple[Any, ...], KeptReport] = {}

    async def pods(self, engine: Engine, part: str = "", search: str = "") -> dict[str, Any]:
        """Return the pods of one part of the queue, or of all, whose name, labels or reason contain the words."""
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
                name: {"matching": matching[name], "pods": [_pod_entry(entry, name) for entry in found[name]]} for name in found
            },
        }

    async def groups(self, engine: Engine) -> dict[str, Any]:
        """Return the rejected pods, grouped by what would help them now, and how many were not examined."""
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
            group["pods"] = [_pod_place(engine, key) for key in group["pods"][:MOST_NAMES]]
        total = queue.n_backoff + queue.n_unschedulable + queue.n_gated
        return document | {"queue": counts_of(engine), "notLookedAt": max(total - len(held), 0) + n_skipped}

    async def _report(self, pod: PodView) -> dict[str, Any]:
        return await self._in_turn(lambda engine: pod_report(engine, pod, top=1))


def counts_of(engine: Engine) -> dict[str, int]:
    """Return how many pods have no node yet, by part of the queue. The parts add up to `waiting`."""
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
    """Return the message of a pod's last rejection, or what keeps it from being tried."""
    return gate_text(entry) if entry.is_gated else condition_of(entry.view)


def _held_back(engine: Engine) -> list[QueuedPod]:
    """Return a bounded number of pods that are not active.

    Pods in backoff are not hidden by thousands of unschedulable ones.
    """
    held = list(engine.queue.held_back())
    waiting, pausing = held[: len(held) - engine.queue.n_backoff], held[len(held) - engine.queue.n_backoff :]
    first = pausing[: MOST_GROUPED // 2]
    return first + waiting[: MOST_GROUPED - len(first)]


def _matches(entry: QueuedPod, words: list[str]) -> bool:
    labels = " ".join(f"{key}={value}" for key, value in entry.view.labels.items())
    text = f"{entry.key} {labels} {message_of(entry)} {' '.join(entry.rejectors)}".lower()
    return all(word in text for word in words)


def _pod_entry(entry: QueuedPod, place: str) -> dict[str, Any]:
    shown: dict[str, Any] = {
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
        shown["backoffUntil"] = entry.backoff_expiry
    if place == "gated":
        shown["gates"] = [gate.name for gate in entry.view.pod.spec.scheduling_gates]
        shown["gatedBy"] = entry.gating_plugin
    return shown


def _pod_place(engine: Engine, key: str) -> dict[str, Any]:
    entry = engine.queue.find(key)
    return {"pod": key, "place": engine.queue.place_of(key), "attempts": entry.attempts if entry is not None else 0}
