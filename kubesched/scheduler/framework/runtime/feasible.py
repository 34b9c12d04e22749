"""The feasible nodes of an attempt, seen node by node or domain by domain, and what they total.

In: the nodes that pass what is remembered with their totals, tables of verdicts and scores of whole domains, and a mask
where some filter answered node by node. Out: how many nodes are left, which, in which domains, and the totals of all.

They are kept from one pod of a class to the next for as long as the same tables speak, and follow the logs of changes: a node
that began or ceased to pass, and a domain whose answer changed, are looked at alone, and only their nodes get new totals,
unless there are many. Everything else is worked out when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubesched.scheduler import kernels
from kubesched.scheduler.cluster import Bools, Ints, Reader, Snapshot
from kubesched.scheduler.framework.equivalence_cache.tracked import Tracked
from kubesched.scheduler.framework.verdicts import FEW, DomainScores, DomainTable, DomainVerdicts

REFUSED = -(1 << 40)
"""The total of a node that is refused: whatever is added to it, it stays below every other."""
MAX_SCORE = 100

Weighted = tuple[DomainScores, int]


class NotCacheable(Exception):
    """This pod needs the plain path. Never leaves the cache."""


class NodeTotals:
    """Which nodes pass and what they total, with logs of what changed; at first all pass, with a total of zero."""

    def __init__(self, nodes: Snapshot) -> None:
        self.passing = Tracked(np.ones(nodes.n, dtype=np.bool_))
        self.n_passing = nodes.n
        self.totals = Tracked(np.zeros(nodes.n, dtype=np.int64))
        self._by_key: dict[str, Ints] = {}

    def put(self, row: int, passes: bool, total: int, nodes: Snapshot) -> None:
        """Change one node."""
        if passes != self.passing.values.item(row):
            more = 1 if passes else -1
            self.n_passing += more
            self.passing.put(row, passes)
            for key, counts in self._by_key.items():
                counts[nodes.code_at(key, row)] += more  # the last is for nodes that lack the label, whose code is -1
        self.totals.put(row, total if passes else REFUSED)

    def replace(self, passing: Bools, totals: Ints) -> None:
        """Change all nodes."""
        self.passing.replace(passing)
        self.n_passing = int(np.count_nonzero(passing))
        self.totals.replace(np.where(passing, totals, REFUSED))
        self._by_key.clear()

    def passing_by(self, key: str, nodes: Snapshot) -> Ints:
        """Return how many passing nodes are in each domain of a label key, and at the end how many lack the label."""
        counts = self._by_key.get(key)
        if counts is None:
            found = np.bincount(nodes.codes(key)[self.passing.values] + 1, minlength=nodes.n_values(key) + 1)
            counts = self._by_key[key] = np.append(found[1:], found[0])
        return counts


class FeasibleNodes:
    """Those that pass, are in no refused domain, and in the mask if there is one."""

    __slots__ = (
        "_added",
        "_base",
        "_combined",
        "_count",
        "_domains",
        "_feasible",
        "_nodes",
        "_passing_read",
        "_refused",
        "_rows_by_domain",
        "_scores",
        "_scores_read",
        "_switched",
        "_totals_read",
        "_verdicts_read",
        "mask",
        "verdicts",
    )

    def __init__(
        self, base: NodeTotals, nodes: Snapshot, verdicts: tuple[DomainVerdicts, ...] = (), mask: Bools | None = None
    ) -> None:
        self._base = base
        self._nodes = nodes
        self.mask = mask
        self.verdicts = verdicts
        self._feasible: Bools | None = None
        self._count = -1
        self._domains: dict[str, Bools] = {}
        self._refused: dict[str, Bools] = {}
        self._switched: list[tuple[str, int]] = []
        """Domains that were refused or let in since the totals were last added up."""
        self._scores: tuple[Weighted, ...] = ()
        self._added: dict[str, Ints] = {}
        self._combined: Ints | None = None
        self._rows_by_domain: dict[str, tuple[Ints, Ints]] = {}
        """By label key the rows sorted by domain, and where each domain begins and ends among them."""
        self._passing_read = Reader(base.passing.changes)
        self._totals_read: Reader[int] = Reader()
        self._verdicts_read = [Reader(table.changes) for table in verdicts]
        self._scores_read: list[Reader[int]] = []
        for table in verdicts:
            refused = table.values != 0
            so_far = self._refused.get(table.key)
            self._refused[table.key] = refused if so_far is None else so_far | refused

    # Which nodes

    def feasible(self) -> Bools:
        """Return which nodes are feasible."""
        if self._feasible is None:
            passing: Bools = self._base.passing.values
            feasible = passing if self.mask is None else passing & self.mask
            for key, refused in self._refused.items():
                feasible = feasible & ~refused.take(self._nodes.codes(key))
            self._feasible = feasible
        return self._feasible

    def count(self) -> int:
        """Return how many nodes are feasible."""
        if self._count < 0:
            if self.mask is None and not self._refused:
                return self._base.n_passing
            if self.mask is None and len(self._refused) == 1:
                (key,) = self._refused
                self._count = int(self._by_domain(key).sum())
            else:
                self._count = int(np.count_nonzero(self.feasible()))
        return self._count

    def domains(self, key: str) -> Bools:
        """Return in which domains of a label key there are feasible nodes, and at the end whether any lacks the label; the same
        array for as long as that does not change."""
        found = self._domains.get(key)
        if found is None:
            found = self._domains[key] = self._in_domains(key)
        return found

    def _in_domains(self, key: str) -> Bools:
        if self._is_split_by(key):
            return self._by_domain(key) > 0
        found = np.zeros(self._nodes.n_values(key) + 1, dtype=np.bool_)
        found[self._nodes.codes(key)[self.feasible()]] = True
        return found

    def _is_split_by(self, key: str) -> bool:
        """Return whether domains of a key are feasible or refused as a whole, as far as their nodes pass."""
        return self.mask is None and (not self._refused or (len(self._refused) == 1 and key in self._refused))

    def _by_domain(self, key: str) -> Ints:
        """Return how many feasible nodes are in each domain of a key that splits them."""
        counts = self._base.passing_by(key, self._nodes)
        return np.where(self._refused[key], 0, counts) if key in self._refused else counts

    # What changed

    def refresh(self) -> bool:
        """Take in which nodes began or ceased to pass, and which domains have other verdicts; False if that is too much."""
        rows = self._passing_read.changed(self._base.passing.changes)
        if rows is None:
            return False
        for row in rows if len(rows) < 2 else {row for row in rows if rows.count(row) % 2}:  # twice is as before
            self._switch_node(row, self._base.passing.values.item(row))
        for table, reader in zip(self.verdicts, self._verdicts_read, strict=True):
            codes = reader.changed(table.changes)
            if codes is None:
                return False
            for code in set(codes):
                self._switch_domain(table.key, code)
        return True

    def _switch_node(self, row: int, passes: bool) -> None:
        """Take in that one node began or ceased to pass."""
        code_at, self._feasible = self._nodes.code_at, None
        if self.mask is not None:
            self._count = -1
            self._domains.clear()
            return
        is_refused = any(refused.item(code_at(key, row)) for key, refused in self._refused.items())
        if self._count >= 0 and not is_refused:
            self._count += 1 if passes else -1
        for key in list(self._domains):
            if self._is_split_by(key):
                code = code_at(key, row)
                self._put_domain(key, code, not is_refused and self._base.passing_by(key, self._nodes).item(code) > 0)
            else:
                del self._domains[key]

    def _switch_domain(self, key: str, code: int) -> None:
        """Take in that a domain may be refused, or let in, otherwise than before."""
        refused = self._refused[key]
        is_refused = any(table.values.item(code) for table in self.verdicts if table.key == key)
        if refused.item(code) == is_refused:
            return
        refused[code] = is_refused
        self._switched.append((key, code))
        self._feasible = None
        if len(self._refused) > 1 or self.mask is not None:
            self._count = -1
            self._domains.clear()
            return
        here = self._base.passing_by(key, self._nodes).item(code)
        if self._count >= 0:
            self._count += -here if is_refused else here
        self._domains = {key: self._domains[key]} if key in self._domains else {}
        if self._domains:
            self._put_domain(key, code, here > 0 and not is_refused)

    def _put_domain(self, key: str, code: int, is_feasible: bool) -> None:
        mine = self._domains[key]
        if mine.item(code) != is_feasible:
            mine = self._domains[key] = mine.copy()  # whoever has the old one can tell that it is not the same any more
            mine[code] = is_feasible

    # What they total

    def totals(self, scores: tuple[Weighted, ...] = ()) -> Ints:
        """Return the totals of all nodes with these scores of domains, far below zero where a node is not feasible."""
        totals = self._base.totals
        if not scores and not self._refused and self.mask is None:
            return totals.values
        rows = self._totals_read.changed(totals.changes)
        try:
            if self._combined is None or rows is None or not self._update_totals(scores, rows):
                self._add_up(scores)
        except NotCacheable:
            self._combined = None  # a score is out of range, and what was added up is half updated: the next call begins anew
            raise
        assert self._combined is not None
        self._switched.clear()
        return self._combined

    def _add_up(self, scores: tuple[Weighted, ...]) -> None:
        self._scores = scores
        self._scores_read = [Reader(table.changes) for table, _ in scores]
        self._added = {
            key: self._worth_of_all(key, scores) for key in dict.fromkeys([*self._refused, *(table.key for table, _ in scores)])
        }
        self._combine()

    def _worth_of_all(self, key: str, scores: tuple[Weighted, ...]) -> Ints:
        """Return what is added to the totals of the nodes of each domain."""
        refused = self._refused.get(key)
        worth = np.where(refused, REFUSED, 0) if refused is not None else None
        for table, weight in scores:
            if table.key == key:
                if not table.is_checked:
                    self._check(table)
                worth = table.values * weight if worth is None else worth + table.values * weight
        assert worth is not None  # the key is that of a table
        return worth

    def _combine(self) -> None:
        combined: Ints = self._base.totals.values
        for key, added in self._added.items():
            combined = kernels.add_by_domain(combined, added, self._nodes.codes(key))
        self._combined = combined if self.mask is None else np.where(self.mask, combined, REFUSED)

    def _update_totals(self, scores: tuple[Weighted, ...], changed: Sequence[int]) -> bool:
        """Take in rows whose totals changed, and domains; False if everything must be added up again."""
        if self.mask is not None or scores != self._scores:  # tables are compared by identity
            return False
        domains: dict[str, set[int]] = {}
        for key, code in self._switched:
            domains.setdefault(key, set()).add(code)
        for (table, _), reader in zip(scores, self._scores_read, strict=True):
            changes = reader.changed(table.changes)
            if changes is None:
                return False
            if changes:
                domains.setdefault(table.key, set()).update(changes)
        rows, are_many = set(changed), False
        for key, codes in domains.items():
            if len(codes) > FEW or len(self._added[key]) <= self._nodes.n // FEW:  # many domains, or of many nodes each
                self._added[key], are_many = self._worth_of_all(key, scores), True
                continue
            for code in codes:
                self._added[key][code] = self._worth(key, code, scores)
                rows.update(self._rows_with(key, code))
        if are_many or len(rows) > FEW:
            self._combine()
            return True
        combined, totals, code_at = self._combined, self._base.totals.values, self._nodes.code_at
        assert combined is not None
        for row in rows:
            total = totals.item(row)
            for key, added in self._added.items():
                total += added.item(code_at(key, row))
            combined[row] = total
        return True

    def _worth(self, key: str, code: int, scores: tuple[Weighted, ...]) -> int:
        """Return what is added to the totals of a domain's nodes."""
        worth = REFUSED if key in self._refused and self._refused[key].item(code) else 0
        for table, weight in scores:
            if table.key == key:
                score = table.values.item(code)
                if not (table.is_checked or 0 <= score <= MAX_SCORE):
                    self._check(table)
                worth += score * weight
        return worth

    def _rows_with(self, key: str, code: int) -> Sequence[int]:
        """Return the rows of a domain; of a large one, so many of them that nobody goes on one by one."""
        index = self._rows_by_domain.get(key)
        if index is None:
            codes = self._nodes.codes(key)
            order = np.argsort(codes, kind="stable")
            starts = np.searchsorted(codes[order], np.arange(-1, len(self._added[key])))
            index = self._rows_by_domain[key] = order, starts
        order, starts = index
        place = code + 1 if code < len(starts) - 2 else 0  # the last code stands for nodes without the label, which come first
        rows: list[int] = order[starts.item(place) : starts.item(place + 1)][: FEW + 1].tolist()
        return rows

    def _check(self, table: DomainTable) -> None:
        """Make sure that all domains with feasible nodes have scores that are in range."""
        outside = (table.values < 0) | (table.values > MAX_SCORE)
        if (outside & self.domains(table.key)).any():
            raise NotCacheable
