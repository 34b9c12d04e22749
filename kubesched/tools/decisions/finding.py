"""Find decisions: ask a running scheduler for them, read a decision log, or decide an inbox log again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kubesched.errors import SchedulerError, newer_format
from kubesched.kube.client import SchedulerAddress, ask_for_decisions, ask_for_decisions_about
from kubesched.kube.values import lines_of
from kubesched.scheduler.engine import DECISION_LOG_FORMAT, DecisionFilter, document
from kubesched.tools.simulation.replay import decide_again
from kubesched.tools.snapshots.sources import Policy

_FIELDS = {"sequence", "at", "pod", "outcome", "node", "sentence", "refusals"}


def ask(address: SchedulerAddress, wanted: DecisionFilter, limit: int) -> list[dict[str, Any]]:
    """Return decisions from a running scheduler, newest first; those of one pod are complete with scores."""
    if wanted.pod:
        found = asyncio.run(ask_for_decisions_about(address, wanted.namespace, wanted.pod.rpartition("/")[2]))
        return [each for each in found if wanted.takes(each)][:limit]
    words = {"namespace": wanted.namespace, "node": wanted.node, "outcome": wanted.outcome, "plugin": wanted.plugin}
    times = {"since": wanted.since, "until": wanted.until}
    query = {name: text for name, text in words.items() if text} | {k: repr(v) for k, v in times.items() if v is not None}
    return asyncio.run(ask_for_decisions(address, query, limit))


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the decisions of a decision log and of its rotated files, oldest first."""
    older: list[Path] = []
    while (before := path.with_name(f"{path.name}.{len(older) + 1}")).exists():
        older.append(before)
    for file in (*reversed(older), path):
        for number, line in enumerate(lines_of(file, may_be_cut_off=True), 1):
            if not line.strip():
                continue
            try:
                decision = msgspec.json.decode(line, type=dict[str, Any])
            except (msgspec.DecodeError, msgspec.ValidationError) as error:
                raise SchedulerError(f"{file}, line {number}: {error}") from error
            if not decision.keys() >= _FIELDS:
                raise SchedulerError(f"{file}, line {number}: this is not a decision; was it written by `run --decision-log`?")
            if (written := decision.pop("format", 1)) != DECISION_LOG_FORMAT:
                raise SchedulerError(newer_format(f"{file}, line {number}", written, DECISION_LOG_FORMAT))
            yield decision


def decided_again(lines: Iterable[bytes], policy: Policy) -> list[dict[str, Any]]:
    """Return the decisions of an inbox log, made again, oldest first."""
    return [document(record) for record in decide_again(lines, policy.configuration, policy.gates, policy.registry)]


def newest_placement(decisions: list[dict[str, Any]]) -> Mapping[str, Any] | None:
    """Return the newest decision that placed a pod, or the newest one if none did. `decisions` are newest first."""
    placed = next((each for each in decisions if each["outcome"] == "placed"), None)
    return placed or (decisions[0] if decisions else None)
