"""Which plugins refused how many nodes, and why.

`refusals_of` reads it off the columns of one attempt. `RefusalTally` keeps the counts up to date for all pods of an
equivalence class: their cached answers are shared, and from one pod to the next only few rows change:

    1000 nodes; web-1 was refused by NodeResourcesFit on 400 of them         counted once, over all rows
    web-1 is booked on node a, which is full now                             one row changed: 400 -> 401
    web-2 comes                                                              its record has 401 without counting again

What a filter refuses for one pod alone (spread, affinity) comes as a table of topology domains. It is kept as bytes and
counted only when the record is read. More complicated cases are not followed: then the record says that it was not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from kubesched.scheduler.cluster import Snapshot
from kubesched.scheduler.engine.deciding.attempt import Attempt
from kubesched.scheduler.framework import EXAMPLES, CachedAnswer, DomainVerdicts, NodeAnswers, Reason, Rejections

_FEW_ROWS = 64
_FEW_DOMAINS = 64


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason, with the number of nodes that it refused and the names of a few."""

    plugin: str
    reason: str
    count: int
    helps_to_evict: bool
    examples: tuple[str, ...]


def refusals_of(made: Attempt) -> list[Refusal]:
    """Return which plugins refused how many nodes for which reasons, the largest number first. A node that several plugins
    refuse counts for the first one."""
    verdicts = made.verdicts
    if verdicts is None:
        status = made.pre_filtered.status if made.pre_filtered is not None else None
        if status is None:
            return []
        return [Refusal(status.plugin, reason, made.nodes.n, False, ()) for reason in status.reasons]
    found: list[Refusal] = []
    considered = verdicts.considered if verdicts.considered is not None else np.ones(made.nodes.n, dtype=np.bool_)
    for number, (plugin, rejections) in enumerate(verdicts.columns):
        if rejections.bits is None:
            continue
        mine = (verdicts.owner == number) & considered
        for i, reason in enumerate(rejections.reasons):
            rows = np.flatnonzero(mine & rejections.has(i))
            if len(rows):
                names = tuple(made.nodes.name(row) for row in rows[:EXAMPLES].tolist())
                found.append(Refusal(plugin, reason.text, len(rows), reason.resolvable, names))
    left_out = int(np.count_nonzero(~considered))
    if left_out and made.pre_filtered is not None:
        status = made.pre_filtered.absent
        found.append(Refusal("", status.message, left_out, False, ()))
    return sorted(found, key=lambda refusal: -refusal.count)


class RefusalCount(Struct, frozen=True, gc=False):
    """How many nodes a plugin refused for one reason."""

    plugin: str
    reason: str
    count: int


class RefusedDomains(Struct, frozen=True, gc=False):
    """The topology domains that a plugin refused: for each the bits of its reasons, and how many nodes in it no other plugin
    refused."""

    plugin: str
    reasons: tuple[Reason, ...]
    bits: bytes
    left: bytes

    def counts(self) -> list[RefusalCount]:
        """Return how many nodes were refused, by reason."""
        bits, left = np.frombuffer(self.bits, dtype=np.uint64), np.frombuffer(self.left, dtype=np.int64)
        found = ((reason, int(left[(bits >> np.uint64(i)) & np.uint64(1) != 0].sum())) for i, reason in enumerate(self.reasons))
        return [RefusalCount(self.plugin, reason.text, count) for reason, count in found if count]


Refused = tuple["RefusalCount | RefusedDomains", ...]
"""Counts for all pods of an equivalence class, and the domains that were refused for one pod."""


def counted(refused: Refused) -> tuple[RefusalCount, ...]:
    """Return refusals with all domains counted, the largest number first."""
    found: list[RefusalCount] = []
    for each in refused:
        found += each.counts() if isinstance(each, RefusedDomains) else (each,)
    return tuple(sorted(found, key=lambda each: -each.count))


def _refuses_any(verdicts: Rejections | DomainVerdicts) -> bool:
    """Return whether a filter refused any node."""
    bits = verdicts.bits if isinstance(verdicts, Rejections) else verdicts.values
    return bits is not None and bool(bits.any())


class RefusalTally:
    """Counts what cached answers refuse. Each row has the number of a case: a plugin and the bits of its reasons."""

    __slots__ = ("_after", "_by_reason", "_cases", "_counts", "_number", "_position", "_versions", "answers")

    def __init__(self, answers: NodeAnswers, nodes: Snapshot, filters: Iterable[str]) -> None:
        self.answers = answers
        order, names = list(filters), {column.plugin.name for column in answers.columns}
        self._after = frozenset(order[max((i + 1 for i, name in enumerate(order) if name in names), default=0) :])
        """The filters that run after all filters that are counted here."""
        self._cases: dict[tuple[int, int], int] = {}
        self._counts: list[int] = []
        self._position = 0
        self._versions: tuple[int, ...] = ()
        self._by_reason: tuple[RefusalCount, ...] = ()
        self._count_all(nodes)

    def of(self, recalled: CachedAnswer, nodes: Snapshot) -> Refused | None:
        """Return the refusals for a pod of this equivalence class; None if they cannot be known without counting."""
        answers = self.answers
        if recalled.pre_filtered is not answers.pre_filtered:
            return None
        versions = answers.versions()
        if versions != self._versions:
            self._refresh(nodes)
            self._versions = versions
        refusing = {plugin: verdicts for plugin, verdicts in recalled.live.items() if _refuses_any(verdicts)}
        if not refusing:
            return self._by_reason
        if not self._after.issuperset(refusing):
            return None  # a node that both refuse would count for the earlier filter
        if recalled.n_feasible == answers.n_passing:
            return self._by_reason
        if len(refusing) > 1 or recalled.feasible_nodes.mask is not None:
            return None
        ((plugin, table),) = refusing.items()
        if not isinstance(table, DomainVerdicts) or len(table.values) > _FEW_DOMAINS:
            return None
        left = answers.passing_by(table.key, nodes)
        return (*self._by_reason, RefusedDomains(plugin, table.reasons, table.values.tobytes(), left.tobytes()))

    def _refresh(self, nodes: Snapshot) -> None:
        """Take in the rows that changed, as far as the cached answers have: a pod that was booked since is not in them yet."""
        journal, until = nodes.journal, self.answers.read_until
        changes = journal.since(self._position)
        if changes is None or until - self._position > _FEW_ROWS:
            self._count_all(nodes)
            return
        for row in {change.row for change in changes[: until - self._position]}:
            old, new = self._number.item(row), self._number_of(row)
            if old != new:
                self._number[row] = new
                self._counts[old] -= 1
                self._counts[new] += 1
        self._position = until
        self._sum_up()

    def _number_of(self, row: int) -> int:
        if self.answers.pre_filtered.considered is not None and not self.answers.pre_filtered.considered[row]:
            return self._case(-1, 0)
        for i, column in enumerate(self.answers.columns):
            bits = column.bits.item(row) if column.bits is not None else 0
            if bits:
                return self._case(i, bits)
        return self._case(-1, 1)

    def _case(self, column: int, bits: int) -> int:
        number = self._cases.setdefault((column, bits), len(self._counts))
        if number == len(self._counts):
            self._counts.append(0)
        return number

    def _count_all(self, nodes: Snapshot) -> None:
        self._position = self.answers.read_until
        self._cases.clear()
        self._counts.clear()
        self._number: npt.NDArray[np.int32] = np.full(nodes.n, self._case(-1, 1), dtype=np.int32)
        considered = self.answers.pre_filtered.considered
        if considered is not None:
            self._number[~considered] = self._case(-1, 0)
        for i, column in enumerate(self.answers.columns):
            if column.bits is None:
                continue
            rows = np.flatnonzero((column.bits != 0) & (self._number == self._cases[-1, 1]))
            for bits in np.unique(column.bits[rows]).tolist():
                self._number[rows[column.bits[rows] == bits]] = self._case(i, bits)
        self._counts[:] = np.bincount(self._number, minlength=len(self._counts)).tolist()
        self._versions = self.answers.versions()
        self._sum_up()

    def _sum_up(self) -> None:
        """Add up the cases by plugin and reason."""
        counts: dict[tuple[str, str], int] = {}
        for (i, bits), number in self._cases.items():
            n = self._counts[number]
            if i < 0:
                if not bits and n:
                    counts["", self.answers.pre_filtered.absent.message] = n
                continue
            column = self.answers.columns[i]
            for bit, reason in enumerate(column.reasons):
                if n and bits >> bit & 1:
                    key = column.plugin.name, reason.text
                    counts[key] = counts.get(key, 0) + n
        self._by_reason = tuple(RefusalCount(plugin, reason, n) for (plugin, reason), n in counts.items())
