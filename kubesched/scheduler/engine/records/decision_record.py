"""What is kept of a decision: where a pod went and by how much, or who refused it; and the ring that the last ones are kept in.

In: records, from `engine/records/decision_recorder.py`. Out: the same by sequence number, by pod or by what they say, and
as values that go to JSON. A record is about 550 bytes, and 1,450 more where it holds the best nodes by plugin; it keeps
names and numbers and no object of the cluster. Nothing here looks at a cluster.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from kubesched.scheduler.engine.records.refusal_tally import RefusalCount, Refused, counted

PLACED, UNSCHEDULABLE, PREEMPTED, ERROR = "placed", "unschedulable", "preempted", "error"
OUTCOMES = (PLACED, UNSCHEDULABLE, PREEMPTED, ERROR)
SCORE, ONLY, NOMINATED = "score", "only", "nominated"
"""What a node was chosen by: the highest total, being the only feasible one, having been nominated; or what breaks ties."""
_CHOOSERS = {"seed": "the seed chose", "name": "the first by name was taken", "turn": "they are taken in turn"}


class ScoreTable(Struct, frozen=True, gc=False):
    """What the best nodes scored with each plugin; `values` is (raw, normalised, weighted) by node by plugin."""

    plugins: tuple[str, ...]
    nodes: tuple[str, ...]
    totals: tuple[int, ...]
    values: npt.NDArray[np.int64]


class PreemptionRecord(Struct, frozen=True, gc=False):
    """Whom a pod evicts where; of so many victims, each of them beyond what a disruption budget allows."""

    node: str
    victims: tuple[str, ...]
    budget_violations: int


class DecisionRecord(Struct, gc=False):
    """One attempt for one pod: what was decided, and the facts that it was decided by."""

    pod: str
    uid: str
    scheduler: str
    latency_seconds: float = 0.0
    outcome: str = ERROR
    node: str = ""
    node_count: int = 0
    evaluated: int = 0
    feasible: int = 0
    chosen_by: str = ""
    level: int | None = 0
    """How many nodes had the highest total, the chosen one among them; 0 where nothing was scored, None where there were others
    and counting them would have taken too long."""
    total: int = 0
    margin: int = 0
    runner_up: str = ""
    """The first other node of the highest total that any other has."""
    refused: Refused | None = ()
    """Who refused nodes, as far as it was counted then; None where it would have taken too long: a replay of the inbox log
    counts it."""
    at: float = 0.0
    attempt: int = 0
    bound_seconds: float | None = None
    """How long after it could first be tried the pod was bound; None as long as it is not."""
    sequence: int = -1
    message: str = ""
    group: str = ""
    preemption: PreemptionRecord | None = None
    scores: ScoreTable | None = None
    """The best nodes by plugin; None beyond the budget, and where nothing was scored."""

    @property
    def refusals(self) -> tuple[RefusalCount, ...] | None:
        """Return who refused how many nodes for which reason, the largest number first; None where it was not counted."""
        return None if self.refused is None else counted(self.refused)


def sentence(record: DecisionRecord) -> str:
    """Return a decision in a sentence."""
    if record.outcome == PREEMPTED and record.preemption is not None:
        evicted = record.preemption
        broken = f", {evicted.budget_violations} of them against a disruption budget" if evicted.budget_violations else ""
        return f"no node took it; it evicts {len(evicted.victims)} from {evicted.node}{broken}"
    if record.outcome != PLACED:
        return record.message
    if record.chosen_by == NOMINATED:
        return f"{record.node} was nominated, and took it"
    if record.chosen_by == ONLY:
        return f"{record.node} was the only one of {record.node_count} nodes that took it"
    level = ""
    if record.level is None or record.level > 1:
        level = f"{record.level or 'several'} were level, {_CHOOSERS.get(record.chosen_by, record.chosen_by)}"
    by, behind, parts = _lead(record)
    if not by:
        return f"{record.node} won: {level}" if level else f"{record.node} won"
    won = f"{record.node} won by {by} over {behind}{': ' if parts else ''}{', '.join(parts)}"
    return f"{won}; {level}" if level else won


def _lead(record: DecisionRecord) -> tuple[int, str, list[str]]:
    """Return by how much the node won over the best one that was not level with it, which that is, and by which plugins."""
    table = record.scores
    if table is None:
        return record.margin, record.runner_up, []
    behind = next((i for i, total in enumerate(table.totals) if total < table.totals[0]), None)
    if behind is None:
        return 0, "", []
    ahead = (table.values[2, 0] - table.values[2, behind]).tolist()
    differing = sorted(
        ((by, name) for by, name in zip(ahead, table.plugins, strict=True) if by), key=lambda each: -abs(each[0])
    )
    return table.totals[0] - table.totals[behind], table.nodes[behind], [f"{name} {by:+d}" for by, name in differing]


def document(record: DecisionRecord) -> dict[str, Any]:
    """Return a record as values that JSON knows."""
    told: dict[str, Any] = {
        "sequence": record.sequence,
        "at": record.at,
        "pod": record.pod,
        "uid": record.uid,
        "scheduler": record.scheduler,
        "outcome": record.outcome,
        "sentence": sentence(record),
        "node": record.node,
        "attempt": record.attempt,
        "latencySeconds": record.latency_seconds,
        "nodeCount": record.node_count,
        "evaluatedCount": record.evaluated,
        "feasibleCount": record.feasible,
        "refusals": None
        if record.refused is None
        else [{"plugin": each.plugin, "reason": each.reason, "count": each.count} for each in counted(record.refused)],
    }
    if record.chosen_by:
        told["chosenBy"] = record.chosen_by
    if record.level != 0:
        told |= {"total": record.total, "runnerUp": record.runner_up, "margin": record.margin, "levelCount": record.level}
    if record.message:
        told["message"] = record.message
    if record.group:
        told["group"] = record.group
    if record.bound_seconds is not None:
        told["boundSeconds"] = record.bound_seconds
    if record.preemption is not None:
        evicted = record.preemption
        told["preemption"] = {
            "node": evicted.node,
            "victims": list(evicted.victims),
            "budgetViolations": evicted.budget_violations,
        }
    if record.scores is not None:
        told["ranking"] = list(_ranking(record.scores))
    return told


def _ranking(table: ScoreTable) -> Iterator[dict[str, Any]]:
    raw, normalized, weighted = table.values.tolist()
    for i, (node, total) in enumerate(zip(table.nodes, table.totals, strict=True)):
        by_plugin = {
            plugin: {"raw": raw[i][j], "normalized": normalized[i][j], "weighted": weighted[i][j]}
            for j, plugin in enumerate(table.plugins)
        }
        yield {"node": node, "total": total, "byPlugin": by_plugin}


@dataclass(frozen=True, slots=True)
class DecisionFilter:
    """Which decisions are asked for; what is empty or None asks for nothing."""

    namespace: str = ""
    pod: str = ""
    """A name, or namespace/name."""
    node: str = ""
    """Where the pod went, or where it evicts."""
    outcome: str = ""
    plugin: str = ""
    """Who refused some node."""
    since: float | None = None
    until: float | None = None
    after: int = -1
    """The sequence number that they come after."""

    def takes(self, told: Mapping[str, Any]) -> bool:
        """Return whether a record's document is asked for."""
        namespace, _, name = told["pod"].partition("/")
        evicts = told.get("preemption")
        return (
            told["sequence"] > self.after
            and (not self.namespace or namespace == self.namespace)
            and (not self.pod or self.pod in (name, told["pod"]))
            and (not self.node or told["node"] == self.node or (evicts is not None and evicts["node"] == self.node))
            and (not self.outcome or told["outcome"] == self.outcome)
            and (not self.plugin or any(each["plugin"] == self.plugin for each in told["refusals"] or ()))
            and (self.since is None or told["at"] >= self.since)
            and (self.until is None or told["at"] <= self.until)
        )


class DecisionRing:
    """The last so many records."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.next_sequence = 0
        self._kept: deque[DecisionRecord] = deque(maxlen=size)

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def oldest(self) -> int:
        """Return the sequence number of the oldest record that is still there."""
        return self.next_sequence - len(self._kept)

    def append(self, record: DecisionRecord) -> int:
        """Keep a record in the place of the oldest; return its sequence number, which it is told."""
        record.sequence = self.next_sequence
        self.next_sequence += 1
        self._kept.append(record)
        return record.sequence

    def bound(self, sequence: int, seconds: float) -> None:
        """Note how long after it could first be tried a pod was bound; of decisions that are gone nothing is noted."""
        place = sequence - self.next_sequence
        if place >= -len(self._kept):
            self._kept[place].bound_seconds = seconds

    def newest_first(self) -> Iterator[DecisionRecord]:
        """Yield the records; nothing may be appended meanwhile."""
        return reversed(self._kept)

    def of_pod(self, key: str) -> list[DecisionRecord]:
        """Return the records of a pod, named namespace/name, newest first."""
        return [record for record in reversed(self._kept) if record.pod == key]
