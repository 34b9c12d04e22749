"""The decision record: which node a pod got and by how much, or which plugins refused it; and the ring of the newest records.

A record holds names and numbers, and no object of the cluster, so it takes about 550 bytes; 1,450 more if it has the best
nodes' scores by plugin. It becomes text and JSON only when somebody reads it (`sentence`, `document`):

    "node-7 won by 12 over node-3: NodeResourcesFit +8, ImageLocality +4; 5 were level, the seed chose"
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
"""Why a node was chosen: it had the highest total, was the only feasible one, or was nominated. Otherwise the way ties are
broken."""
_CHOOSERS = {"seed": "the seed chose", "name": "the first by name was taken", "turn": "they are taken in turn"}


class ScoreTable(Struct, frozen=True, gc=False):
    """The best nodes' scores by plugin; `values` is (raw, normalised, weighted) by node by plugin."""

    plugins: tuple[str, ...]
    nodes: tuple[str, ...]
    totals: tuple[int, ...]
    values: npt.NDArray[np.int64]


class PreemptionRecord(Struct, frozen=True, gc=False):
    """The pods that a pod evicts from a node, and how many of them violate a disruption budget."""

    node: str
    victims: tuple[str, ...]
    budget_violations: int


class DecisionRecord(Struct, gc=False):
    """One attempt for one pod: the decision, and what it followed from."""

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
    """How many nodes had the highest total, with the chosen one. 0 if nothing was scored; None if there were others that were
    not counted, to save time."""
    total: int = 0
    margin: int = 0
    runner_up: str = ""
    """The first of the other nodes with the next best total."""
    refused: Refused | None = ()
    """Which plugins refused nodes. None if that was not counted, to save time; a replay of the inbox log counts it."""
    at: float = 0.0
    attempt: int = 0
    bound_seconds: float | None = None
    """Seconds from when the pod could first be tried until it was bound; None if it is not bound."""
    sequence: int = -1
    message: str = ""
    group: str = ""
    preemption: PreemptionRecord | None = None
    scores: ScoreTable | None = None
    """The best nodes' scores; None if nothing was scored or the time for records was used up."""

    @property
    def refusals(self) -> tuple[RefusalCount, ...] | None:
        """Return which plugins refused how many nodes for which reasons, the largest number first; None if not counted."""
        return None if self.refused is None else counted(self.refused)


def sentence(record: DecisionRecord) -> str:
    """Return a decision as a sentence."""
    if record.outcome == PREEMPTED and record.preemption is not None:
        evicted = record.preemption
        broken = f", {evicted.budget_violations} of them against a disruption budget" if evicted.budget_violations else ""
        return f"no node took it; it evicts {len(evicted.victims)} from {evicted.node}{broken}"
    if record.outcome != PLACED:
        return record.message
    if record.message:  # another scheduler chose it, and we would not have
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
    """Return how far the node is ahead of the best node with a lower total, that node, and the difference by plugin."""
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
    """Return a record as a JSON document."""
    fields: dict[str, Any] = {
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
        fields["chosenBy"] = record.chosen_by
    if record.level != 0:
        fields |= {"total": record.total, "runnerUp": record.runner_up, "margin": record.margin, "levelCount": record.level}
    if record.message:
        fields["message"] = record.message
    if record.group:
        fields["group"] = record.group
    if record.bound_seconds is not None:
        fields["boundSeconds"] = record.bound_seconds
    if record.preemption is not None:
        evicted = record.preemption
        fields["preemption"] = {
            "node": evicted.node,
            "victims": list(evicted.victims),
            "budgetViolations": evicted.budget_violations,
        }
    if record.scores is not None:
        fields["ranking"] = list(_ranking(record.scores))
    return fields


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
    """Selects decisions. Fields that are empty or None select all."""

    namespace: str = ""
    pod: str = ""
    """A name, or namespace/name."""
    node: str = ""
    """The node that the pod got, or that it evicts from."""
    outcome: str = ""
    plugin: str = ""
    """A plugin that refused some node."""
    since: float | None = None
    until: float | None = None
    after: int = -1
    """Only records after this sequence number."""

    def takes(self, fields: Mapping[str, Any]) -> bool:
        """Return whether a record's document is selected."""
        namespace, _, name = fields["pod"].partition("/")
        evicts = fields.get("preemption")
        return (
            fields["sequence"] > self.after
            and (not self.namespace or namespace == self.namespace)
            and (not self.pod or self.pod in (name, fields["pod"]))
            and (not self.node or fields["node"] == self.node or (evicts is not None and evicts["node"] == self.node))
            and (not self.outcome or fields["outcome"] == self.outcome)
            and (not self.plugin or any(each["plugin"] == self.plugin for each in fields["refusals"] or ()))
            and (self.since is None or fields["at"] >= self.since)
            and (self.until is None or fields["at"] <= self.until)
        )


class DecisionRing:
    """The newest records, up to a number."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.next_sequence = 0
        self._kept: deque[DecisionRecord] = deque(maxlen=size)

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def oldest(self) -> int:
        """Return the sequence number of the oldest record that is kept."""
        return self.next_sequence - len(self._kept)

    def append(self, record: DecisionRecord) -> int:
        """Keep a record, drop the oldest one if full; give it the next sequence number and return that."""
        record.sequence = self.next_sequence
        self.next_sequence += 1
        self._kept.append(record)
        return record.sequence

    def bound(self, sequence: int, seconds: float) -> None:
        """Note when the pod of a record was bound; nothing if the record is gone."""
        place = sequence - self.next_sequence
        if place >= -len(self._kept):
            self._kept[place].bound_seconds = seconds

    def newest_first(self) -> Iterator[DecisionRecord]:
        """Yield the records, newest first. Append nothing meanwhile."""
        return reversed(self._kept)

    def of_pod(self, key: str) -> list[DecisionRecord]:
        """Return the records of a pod, named namespace/name, newest first."""
        return [record for record in reversed(self._kept) if record.pod == key]
