"""The dry run: which pods would have to go from a node so that a pod fits.

In: a pod that fits nowhere, the rows on which evictions may help. Out: the results for these rows. On each node all pods
of lower priority are taken away. If the pod fits then, they are given back one by one as far as it still does: first
those whose eviction would break a disruption budget, then the others, the most important ones first. Who cannot be
given back is a victim. The pod must fit with and without the pods that are nominated to the node.

Nodes are independent of each other, so the k-th pod of every node is given back in one step, as long as filters look at
one node only or at counters that these pods do not move. The other nodes are taken one by one, with their own counters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.errors import PluginRaised, SchedulerError
from kubesched.scheduler.cluster import Bools, Change, Codes, Ints, PodView, Reader, Snapshot
from kubesched.scheduler.framework import NodeTrial, NominatedAbove, NominatedByRow, WhatIf, WhatIfFilters
from kubesched.scheduler.plugins.default_preemption.budgets import Budgets
from kubesched.scheduler.plugins.default_preemption.groups import Unit
from kubesched.scheduler.plugins.default_preemption.importance import MOST_PODS, Floats, Importance, Lines, started_at

NO_VICTIMS = "No preemption victims found for incoming pod"
_FEW = 4
"""Rows up to which one after the other is cheaper than all at once: arrays have a price of their own."""


def no_victim(node_name: str) -> str:
    """Return the complaint about a node where nobody would have to go, although the pod does not fit it."""
    return f'expected at least one victim pod on node "{node_name}"'


@dataclass(slots=True)
class DryRun:
    """What all nodes of one attempt have in common."""

    pod: PodView
    nodes: Snapshot
    what_if: WhatIfFilters
    coming: NominatedByRow
    importance: Importance
    budgets: Budgets
    results: DryRunResults

    def look_at(self, rows: Ints) -> None:
        """Find out about those of the rows that nothing is known about."""
        rows = rows[self.results.outcome[rows] == UNKNOWN]
        if not len(rows):
            return
        if len(rows) <= _FEW:
            self._look_at_each(rows)
            return
        ahead = self.coming.above(self.pod.priority)
        apart = self._is_apart(rows, ahead)
        together = rows[~apart]
        if len(together):
            try:
                self._look_at_many(together, ahead)
            except SchedulerError:
                # A filter that fails on one node must not take the others with it: find out which one it is.
                self._look_at_each(together)
        self._look_at_each(rows[apart])

    # Many nodes in one step

    def _is_apart(self, rows: Ints, ahead: NominatedAbove) -> Bools:
        """Return which rows cannot be imagined together with others."""
        apart = self.what_if.is_apart(rows, ahead, self.coming.row_of(self.pod.uid), self.nodes)
        if self.what_if.by_row:
            return apart
        self.importance.order(rows, self.nodes)
        apart |= self.importance.is_crowded(rows)
        if self.pod.template.ports:
            # Where a pod holds one of the ports, what is left of the others' ports depends on the order of things.
            apart |= self.nodes.port_conflicts(self.pod.template.ports)[rows]
        if self.what_if.counting:
            apart[~apart] = self._moves_counters(rows[~apart])
        return apart

    def _moves_counters(self, rows: Ints) -> Bools:
        """Return on which rows pods of lower priority would move counters."""
        lines = self.importance.below(rows, self.pod.priority)
        views = self.nodes.slots.views
        moves = np.zeros(len(self.importance.book), dtype=np.bool_)
        numbers, first = np.unique(lines.numbers, return_index=True)
        for number, at in zip(numbers.tolist(), first.tolist(), strict=True):
            if number:
                other = views[lines.slots.flat[at]]
                assert other is not None
                moves[number] = self.what_if.is_moved_by(other, self.nodes)
        moving: Bools = np.count_nonzero(moves[lines.numbers], axis=1) > 0
        return moving

    def _look_at_many(self, rows: Ints, ahead: NominatedAbove) -> None:
        results = self.results
        lines = self.importance.below(rows, self.pod.priority)
        without = lines.count == 0
        if without.any():
            results.refuse(rows[without], (NO_VICTIMS,))
            rows = rows[~without]
            if not len(rows):
                return
            lines = self.importance.below(rows, self.pod.priority)
        emptied = WhatIf.without(self.nodes, rows, lines.slots, lines.numbers, self.importance.book)
        fitting = self._fits_when_empty(emptied, rows, ahead)
        if not fitting.any():
            return
        if not fitting.all():
            rows = rows[fitting]
            lines = self.importance.below(rows, self.pod.priority)
        self._reprieve_many(rows, lines, ahead)

    def _fits_when_empty(self, emptied: WhatIf, rows: Ints, ahead: NominatedAbove) -> Bools:
        """Return which rows the pod fits with all pods of lower priority away; write down why not the others."""
        verdicts = self.what_if.filter(emptied)
        awaited = np.flatnonzero(ahead.here[rows])
        if len(awaited):
            crowded = emptied.take(awaited)
            crowded.arrive(ahead)
            verdicts.overrule(awaited, self.what_if.filter(crowded))
        for _, reasons, alike in verdicts.refusals():
            self.results.refuse(rows[alike], tuple(reason.text for reason in reasons))
        return verdicts.feasible

    def _reprieve_many(self, rows: Ints, lines: Lines, ahead: NominatedAbove) -> None:
        """Give pods back rank by rank as long as the pod fits; write down who could not be given back."""
        book = self.importance.book
        charged = self.budgets.charge(
            book.class_id[lines.numbers], lines.slots, self.nodes.slots.views, self.nodes.templates.label_classes
        )
        slots, numbers, turn = lines.slots, lines.numbers, None
        if charged is not None:
            # Those that break a budget come first, then the others; both stay in order. Short lines end in nobody.
            turn = np.argsort(np.where(numbers == 0, 2, ~charged[0]), axis=1, kind="stable")
            slots, numbers = np.take_along_axis(slots, turn, axis=1), np.take_along_axis(numbers, turn, axis=1)
        thinned = WhatIf.without(self.nodes, rows, slots, numbers, book)
        assert thinned.listed is not None
        awaited = np.flatnonzero(ahead.here[rows])
        for rank in range(numbers.shape[1]):
            here = numbers[:, rank] != 0
            thinned.move_listed(rank, here, 1)
            fits = self.what_if.fits(thinned)
            if len(awaited):
                crowded = thinned.take(awaited)
                crowded.arrive(ahead)
                fits[awaited] &= self.what_if.fits(crowded)
            thinned.move_listed(rank, here & ~fits, -1)
        gone = thinned.listed.gone
        if turn is not None:
            gone = np.empty_like(gone)
            np.put_along_axis(gone, turn, thinned.listed.gone, axis=1)
        self.results.accept(rows, gone, lines.priority, lines.started, charged)
        for row in rows[~gone.any(axis=1)].tolist():
            self.results.fail(row, no_victim(self.nodes.name(row)))

    # One node after the other

    def _look_at_each(self, rows: Ints) -> None:
        for row in rows.tolist():
            self._look_at_one(row)

    def _look_at_one(self, row: int) -> None:
        lower = self.importance.pods(row, self.pod.priority, self.nodes)
        found = self._not_spared(row, [[(other, row)] for other in lower])
        if found is None:
            return
        victims, violations = found
        gone = np.zeros((1, len(lower)), dtype=np.bool_)
        gone[0, victims] = True
        priority = np.array([[other.priority for other in lower]])
        started = np.array([[started_at(other) for other in lower]])
        charged = np.array([violations], dtype=np.bool_), np.array([True])
        self.results.accept(np.array([row]), gone, priority, started, charged)

    def look_at_units(self, row: int, lower: Sequence[Unit]) -> tuple[tuple[PodView, ...], int] | None:
        """Return who would have to go from a node, with everybody who goes with them, and how many of them break a budget;
        None with the reason in the results. `lower` are the units of lower priority, most important first."""
        # Pods of a unit on other nodes are told to the counters; those nodes are not looked at.
        found = self._not_spared(row, [[(pod, self.nodes.row(pod.node_name)) for pod in unit.pods] for unit in lower])
        if found is None:
            return None
        victims, violations = found
        victims.sort(key=lambda i: lower[i].order)
        return tuple(pod for i in victims for pod in lower[i].pods), sum(violations[i] for i in victims)

    def _not_spared(self, row: int, lower: Sequence[Sequence[tuple[PodView, int]]]) -> tuple[list[int], list[int]] | None:
        """Take everybody away from a node, each with who goes with it and where that is, and give them back as far as the pod
        still fits. Return the numbers of those who have to go, and of all of them how many pods break a budget; None with the
        reason in the results."""
        if not lower:
            self.results.refuse(row, (NO_VICTIMS,))
            return None
        try:
            return self._reprieve(row, lower)
        except PluginRaised:
            raise  # a filter that breaks, as opposed to fails, costs the attempt and is named
        except SchedulerError as error:
            self.results.fail(row, str(error))
            return None

    def _reprieve(self, row: int, lower: Sequence[Sequence[tuple[PodView, int]]]) -> tuple[list[int], list[int]] | None:
        nominated = self.coming.above(self.pod.priority).pods.get(row, ())
        trial = NodeTrial(self.what_if, self.nodes, row)
        for pods in lower:
            _move(pods, -1, trial)
        refused = trial.refusal_beside(nominated) or trial.refusal()
        if refused is not None:
            self.results.refuse(row, tuple(reason.text for reason in refused[1]))
            return None
        violations = self.budgets.violations([[pod for pod, _ in pods] for pods in lower])
        victims = []
        for i in sorted(range(len(lower)), key=lambda i: not violations[i]):
            _move(lower[i], 1, trial)
            if trial.refusal_beside(nominated) or trial.refusal():
                _move(lower[i], -1, trial)
                victims.append(i)
        if not victims:
            raise SchedulerError(no_victim(self.nodes.name(row)))
        return victims, violations


def _move(pods: Iterable[tuple[PodView, int]], sign: int, trial: NodeTrial) -> None:
    for pod, row in pods:
        trial.move(pod, sign, row)


UNKNOWN, CANDIDATE, ERROR = 0, -1, -2
PRIORITY_OFFSET = 1 << 31
"""Added to every victim's priority, so that fewer victims are better even where priorities are negative."""


class DryRunResults:
    """The columns. `outcome` is UNKNOWN, CANDIDATE, ERROR, or the number of the reasons against the node."""

    def __init__(self, n: int) -> None:
        self.outcome: Codes = np.zeros(n, dtype=np.int64)
        self.violations: Ints = np.zeros(n, dtype=np.int64)
        self.top_priority: Ints = np.zeros(n, dtype=np.int64)
        self.total_priority: Ints = np.zeros(n, dtype=np.int64)
        self.n_victims: Ints = np.zeros(n, dtype=np.int64)
        self.started: Floats = np.zeros(n)
        self._gone = np.zeros((n, 1), dtype=np.uint8)
        self._crowds: dict[int, Bools] = {}
        self._selected: Bools = np.zeros(n, dtype=np.bool_)
        self.reasons: dict[tuple[str, ...], int] = {}
        """The numbers of reasons, from 1 on."""
        self.errors: dict[int, str] = {}
        self._seen: tuple[int, tuple[int, ...]] | None = None
        self._journal: Reader[Change] = Reader()
        self._reordered: Reader[int] = Reader()
        self._nominated: Reader[int] = Reader()
        self._version = 0

    # Filling in

    def refuse(self, rows: Ints | int, reasons: tuple[str, ...]) -> None:
        """Write down why evictions would not help on some rows."""
        self.outcome[rows] = self.reasons.setdefault(reasons, len(self.reasons) + 1)

    def fail(self, row: int, text: str) -> None:
        """Write down that it could not be found out what an eviction would bring."""
        self.outcome[row] = ERROR
        self.errors[row] = text

    def accept(self, rows: Ints, gone: Bools, priority: Ints, started: Floats, charged: tuple[Bools, Bools] | None) -> None:
        """Write down who would have to go from some rows, of the pods below the preemptor's priority, most important first:
        one line a row. `charged` says who of them violates a budget, and which rows have pods that any selects."""
        line, first = np.arange(len(rows)), gone.argmax(axis=1)
        self.outcome[rows] = CANDIDATE
        self.violations[rows] = 0 if charged is None else np.count_nonzero(gone & charged[0], axis=1)
        self.top_priority[rows] = priority[line, first]
        self.total_priority[rows] = np.where(gone, priority + PRIORITY_OFFSET, 0).sum(axis=1)
        self.started[rows] = started[line, first]
        self.n_victims[rows] = np.count_nonzero(gone, axis=1)
        if charged is not None:
            self._selected[rows] = charged[1]
        if gone.shape[1] > MOST_PODS:
            self._crowds.update(zip(rows.tolist(), gone, strict=True))
            return
        packed = np.packbits(gone, axis=1)
        width = packed.shape[1]
        if width > self._gone.shape[1]:
            wider = np.zeros((len(self._gone), width), dtype=np.uint8)
            wider[:, : self._gone.shape[1]] = self._gone
            self._gone = wider
        self._gone[rows, :width] = packed
        self._gone[rows, width:] = 0

    def victims(self, row: int) -> list[int]:
        """Return the ranks of a candidate's victims among the pods below the preemptor's priority."""
        gone = self._crowds.get(row)
        if gone is None:
            gone = np.unpackbits(self._gone[row]).astype(np.bool_)
        ranks: list[int] = np.flatnonzero(gone).tolist()
        return ranks

    # Staying true

    def follow(self, nodes: Snapshot, coming: NominatedByRow, budgets: Budgets, versions: tuple[int, ...]) -> bool:
        """Forget the rows that something happened to since the last time; False if that is all of them and more.

        `versions` are those of the other objects that the filters read.
        """
        seen = budgets.meaning, versions
        changes, nominated = self._journal.changed(nodes.journal), self._nominated.changed(coming.changes)
        reordered = self._reordered.changed(nodes.slots.reordered)
        if seen != self._seen or changes is None or nominated is None or reordered is None:
            self._seen, self._version = seen, budgets.version
            return False
        for row in (*(change.row for change in changes), *nominated, *reordered):
            self.forget(row)
        if budgets.version != self._version:
            self.outcome[self._selected] = UNKNOWN
            self._selected[:] = False
            self._version = budgets.version
        return True

    def forget(self, row: int) -> None:
        """Make a row unknown again."""
        self.outcome[row] = UNKNOWN
        self.errors.pop(row, None)
        self._crowds.pop(row, None)
