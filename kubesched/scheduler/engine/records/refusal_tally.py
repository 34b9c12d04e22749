"""Counts of refused nodes that are kept up to date from one pod of an equivalence class to the next.

The cached answers of a class are shared (framework/equivalence_cache/node_answers), and between two pods only few rows change:

    web-1 comes                      NodeResourcesFit refuses 400 of 1000 nodes    counted once, over all rows
    web-1 is booked on node a        node a is full now                            one row: 400 -> 401
    web-2 comes                      its record has 401, and nothing was counted

What a filter refuses for one pod alone (spread, affinity) is a table of topology domains. It is kept as bytes, and counted
when the record is read. More complicated cases are not followed; then the record says that nothing was counted.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from kubesched.scheduler.cluster import Snapshot
from kubesched.scheduler.framework import CachedAnswer, NodeAnswers, Reason

_FEW_ROWS = 64
_FEW_DOMAINS = 64


class RefusalCount(Struct, frozen=True, gc=False):
    """How many nodes a plugin refused for one reason."""

    plugin: str
    reason: str
    count: int


class RefusedDomains(Struct, frozen=True, gc=False):
    """The domains that a plugin refused: for each the bits of its reasons, and how many nodes the filters before left in it."""

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


class RefusalTally:
    """Counts what cached answers refuse. Each row has the number of a case: a plugin and the bits of its reasons."""

    __slots__ = ("_after", "_cases", "_counts", "_for_class", "_number", "_position", "_versions", "answers")

    def __init__(self, answers: NodeAnswers, nodes: Snapshot, filters: Iterable[str]) -> None:
        self.answers = answers
        order, names = list(filters), {column.plugin.name for column in answers.columns}
        self._after = frozenset(order[max((i + 1 for i, name in enumerate(order) if name in names), default=0) :])
        """The filters that run after all filters that are counted here."""
        self._cases: dict[tuple[int, int], int] = {}
        self._counts: list[int] = []
        self._position = 0
        self._versions: tuple[int, ...] = ()
        self._for_class: tuple[RefusalCount, ...] = ()
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
        refusing = {plugin: rejections for plugin, rejections in recalled.live.items() if rejections.refuses_any}
        if not refusing:
            return self._for_class
        if not self._after.issuperset(refusing):
            return None  # a node that both refuse belongs to the earlier one
        if recalled.n_feasible == answers.n_passing:
            return self._for_class
        if len(refusing) > 1:
            return None
        ((plugin, rejections),) = refusing.items()
        if rejections.domains is None or len(rejections.domains[1]) > _FEW_DOMAINS:
            return None
        key, bits = rejections.domains
        return (
            *self._for_class,
            RefusedDomains(plugin, rejections.reasons, bits.tobytes(), answers.passing_by(key, nodes).tobytes()),
        )

    def _refresh(self, nodes: Snapshot) -> None:
        """Take in the rows that the answers have taken in: a pod that was booked since is not in them yet."""
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
        self._add_up()

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
        self._add_up()

    def _add_up(self) -> None:
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
        self._for_class = tuple(RefusalCount(plugin, reason, n) for (plugin, reason), n in counts.items())
