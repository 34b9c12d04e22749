"""The dry run of preemption: which pods must be evicted from a node so that a pod fits, for many nodes at once.

On each node all pods of lower priority are removed. If the pod fits then, they are reprieved (put back) one by one while it
still fits: first those whose eviction would violate a PodDisruptionBudget, then the others, in both parts the most important
first. Pods that cannot be put back are the victims. The pod must fit with and without the pods that are nominated to the node.

    node: 4 cpu    placed: A (priority 5, 1 cpu), B (priority 3, 2 cpu), C (priority 1, 1 cpu)
    incoming: 2 cpu, priority 9

    remove A, B, C    4 cpu free    it fits
    put A back        3 cpu free    it fits, A stays
    put B back        1 cpu free    it does not fit, B is a victim and is removed again
    put C back        2 cpu free    it fits, C stays

    If a budget allows no eviction of C, the order is C, A, B. The victims are the same here, but often they are not.

Nodes do not depend on each other. So step k puts the k-th pod of *every* node back and filters all nodes at once: as many
filter runs as the fullest node has pods, instead of one for each pod. That works while the filters look at one node, or at
counters that these pods do not move. Other nodes ("apart") are taken one by one, each with a copy of the counters.
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
"""Up to this many rows, one by one is faster than all at once: each NumPy call has a fixed cost."""


def no_victim(node_name: str) -> str:
    """Return the error about a node that needs no victim although the filters refused it."""
    return f'expected at least one victim pod on node "{node_name}"'


@dataclass(slots=True)
class DryRun:
    """The dry run of one attempt: what its nodes have in common."""

    pod: PodView
    nodes: Snapshot
    what_if: WhatIfFilters
    coming: NominatedByRow
    importance: Importance
    budgets: Budgets
    results: DryRunResults

    def look_at(self, rows: Ints) -> None:
        """Fill in the results of those rows that are UNKNOWN."""
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
                # A filter fails on some node. One by one, only that node gets the error.
                self._look_at_each(together)
        self._look_at_each(rows[apart])

    # Many nodes in one step

    def _is_apart(self, rows: Ints, ahead: NominatedAbove) -> Bools:
        """Return which rows cannot be tried together with others."""
        apart = self.what_if.is_apart(rows, ahead, self.coming.row_of(self.pod.uid), self.nodes)
        # All filters look at one node only, and nothing about pods depends on their order: no row is apart for other
        # reasons.
        if self.what_if.by_row:
            return apart
        self.importance.order(rows, self.nodes)
        apart |= self.importance.is_crowded(rows)
        if self.pod.template.ports:
            # If a placed pod holds one of the ports, the free ports depend on the order in which pods are put back.
            apart |= self.nodes.port_conflicts(self.pod.template.ports)[rows]
        if self.what_if.counting:
            apart[~apart] = self._moves_counters(rows[~apart])
        return apart

    def _moves_counters(self, rows: Ints) -> Bools:
        """Return on which rows the pods of lower priority move counters that the filters read."""
        # Asked once for each template number, not for each pod: replicas of a Deployment have the same effect on the
        # counters. Number 0 is the padding of short lines. `first` finds one pod of each number to ask about.
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
        """Try rows together: remove the pods of lower priority on all of them, filter once, and put pods back where the pod
        fits."""
        results = self.results
        # Rows drop out in three steps, each with its own reason: without pods of lower priority, too full even without
        # them, and those where all pods could be put back. `lines` is made again for the rows that are left, because
        # its width is that of the fullest of them.
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
        """Return which rows the pod fits without the pods of lower priority; store the reasons against the others."""
        # kube-scheduler filters a node twice if pods of the same or a higher priority are nominated to it: with them, because
        # they will take their room, and without them, because they may never come (a required affinity to one of them must
        # not count). The pod must pass both times, and a refusal beside the nominated pods is the one that is reported.
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
        """Put pods back, rank by rank, while the incoming pod fits; store the victims."""
        book = self.importance.book
        charged = self.budgets.charge(
            book.class_id[lines.numbers], lines.slots, self.nodes.slots.views, self.nodes.templates.label_classes
        )
        slots, numbers, turn = lines.slots, lines.numbers, None
        if charged is not None:
            # A stable sort: pods that violate a budget first, then the others, then the empty places of short lines.
            turn = np.argsort(np.where(numbers == 0, 2, ~charged[0]), axis=1, kind="stable")
            slots, numbers = np.take_along_axis(slots, turn, axis=1), np.take_along_axis(numbers, turn, axis=1)
        thinned = WhatIf.without(self.nodes, rows, slots, numbers, book)
        assert thinned.listed is not None
        awaited = np.flatnonzero(ahead.here[rows])
        # Step `rank` on all rows at once: put the pod with this rank back, filter, and take it away again where the pod
        # no longer fits. Later ranks see what earlier ones decided, as in the loop over one node. `here` is False on
        # rows with fewer pods.
        for rank in range(numbers.shape[1]):
            here = numbers[:, rank] != 0
            thinned.move_listed(rank, here, 1)
            fits = self.what_if.fits(thinned)
            if len(awaited):
                crowded = thinned.take(awaited)
                crowded.arrive(ahead)
                fits[awaited] &= self.what_if.fits(crowded)
            thinned.move_listed(rank, here & ~fits, -1)
        # `gone` has the axes (row, rank) in the order in which pods were put back. Results want them by importance, so
        # the sort is undone.
        gone = thinned.listed.gone
        if turn is not None:
            gone = np.empty_like(gone)
            np.put_along_axis(gone, turn, thinned.listed.gone, axis=1)
        self.results.accept(rows, gone, lines.priority, lines.started, charged)
        # Kept quirk: a node that needs no victim is an error. The filters refused it before, and accept it now with all pods in
        # place.
        for row in rows[~gone.any(axis=1)].tolist():
            self.results.fail(row, no_victim(self.nodes.name(row)))

    # One node after the other

    def _look_at_each(self, rows: Ints) -> None:
        """Try rows one by one, and store the results in the same form as for many rows."""
        # The same as `_look_at_many` in the form of a loop: for rows that are apart, and where a few rows do not pay
        # for the arrays. `accept` gets arrays with one line.
        for row in rows.tolist():
            lower = self.importance.pods(row, self.pod.priority, self.nodes)
            found = self._reprieve(row, [[(other, row)] for other in lower])
            if found is None:
                continue
            victims, violations = found
            gone = np.zeros((1, len(lower)), dtype=np.bool_)
            gone[0, victims] = True
            priority = np.array([[other.priority for other in lower]])
            started = np.array([[started_at(other) for other in lower]])
            charged = np.array([violations], dtype=np.bool_), np.array([True])
            self.results.accept(np.array([row]), gone, priority, started, charged)

    def look_at_units(self, row: int, lower: Sequence[Unit]) -> tuple[tuple[PodView, ...], int] | None:
        """Return the victims on a node, with the pods of their groups, and how many of them violate a budget; None if there are
        none, with the reason in the results. `lower` are the units of lower priority, most important first."""
        # The pods of a unit that are on other nodes only change the counters. Those nodes are not filtered.
        found = self._reprieve(row, [[(pod, self.nodes.row(pod.node_name)) for pod in unit.pods] for unit in lower])
        if found is None:
            return None
        victims, violations = found
        victims.sort(key=lambda i: lower[i].order)
        return tuple(pod for i in victims for pod in lower[i].pods), sum(violations[i] for i in victims)

    def _reprieve(self, row: int, lower: Sequence[Sequence[tuple[PodView, int]]]) -> tuple[list[int], list[int]] | None:
        """Try one node. `lower` are the units of lower priority: each pod with its row.

        Return the indexes of the units that are victims, and for each unit how many of its pods violate a budget; None if
        there is no answer, with the reason in the results.
        """
        if not lower:
            self.results.refuse(row, (NO_VICTIMS,))
            return None
        try:
            nominated = self.coming.above(self.pod.priority).pods.get(row, ())
            trial = NodeTrial(self.what_if, self.nodes, row)
            # Remove first, then ask: the pod must fit without all of them, or evictions cannot help here at all.
            for pods in lower:
                _move(pods, -1, trial)
            refused = trial.refusal_beside(nominated) or trial.refusal()
            if refused is not None:
                self.results.refuse(row, tuple(reason.text for reason in refused[1]))
                return None
            violations = self.budgets.violations([[pod for pod, _ in pods] for pods in lower])
            victims = []
            # sorted is stable: units that violate a budget first, and within both parts the order of importance in
            # which `lower` came.
            for i in sorted(range(len(lower)), key=lambda i: not violations[i]):
                _move(lower[i], 1, trial)
                if trial.refusal_beside(nominated) or trial.refusal():
                    _move(lower[i], -1, trial)
                    victims.append(i)
        except PluginRaised:
            raise  # a bug in a plugin fails the attempt, and is reported with the plugin's name
        except SchedulerError as error:
            self.results.fail(row, str(error))
            return None
        if not victims:
            self.results.fail(row, no_victim(self.nodes.name(row)))
            return None
        return victims, violations


def _move(pods: Iterable[tuple[PodView, int]], sign: int, trial: NodeTrial) -> None:
    for pod, row in pods:
        trial.move(pod, sign, row)


UNKNOWN, CANDIDATE, ERROR = 0, -1, -2
PRIORITY_OFFSET = 1 << 31
"""Added to each victim's priority in the sum, so that one more victim costs more even if its priority is negative."""


class DryRunResults:
    """What evictions would do on each node, as columns; shared by the pods of a class.

    `outcome` is UNKNOWN, CANDIDATE, ERROR, or the number of the reasons why evictions do not help. A row becomes UNKNOWN again
    when something changes on it, so thousands of equal preemptors try each node once.
    """

    def __init__(self, n: int) -> None:
        # Columns over all rows of the cluster, so choosing the cheapest of 5,000 candidates is a few comparisons of
        # arrays. The five after `outcome` are the costs of a candidate (`_costs_of_rows` in the plugin) and mean
        # nothing on other rows.
        self.outcome: Codes = np.zeros(n, dtype=np.int64)
        self.violations: Ints = np.zeros(n, dtype=np.int64)
        self.top_priority: Ints = np.zeros(n, dtype=np.int64)
        self.total_priority: Ints = np.zeros(n, dtype=np.int64)
        self.n_victims: Ints = np.zeros(n, dtype=np.int64)
        self.started: Floats = np.zeros(n)
        # The victims: bits by rank, eight to a byte. It is made wider when a row needs it, and never gets wider than
        # MOST_PODS bits.
        self._gone = np.zeros((n, 1), dtype=np.uint8)
        self._crowds: dict[int, Bools] = {}
        # The rows with pods that a budget selects: the only ones that depend on disruptionsAllowed.
        self._selected: Bools = np.zeros(n, dtype=np.bool_)
        self.reasons: dict[tuple[str, ...], int] = {}
        """The number of each list of reasons, from 1 on."""
        self.errors: dict[int, str] = {}
        self._seen: tuple[int, tuple[int, ...]] | None = None
        self._journal: Reader[Change] = Reader()
        self._reordered: Reader[int] = Reader()
        self._nominated: Reader[int] = Reader()
        self._version = 0

    # Filling in

    def refuse(self, rows: Ints | int, reasons: tuple[str, ...]) -> None:
        """Store why evictions do not help on some rows."""
        self.outcome[rows] = self.reasons.setdefault(reasons, len(self.reasons) + 1)

    def fail(self, row: int, text: str) -> None:
        """Store an error for a row."""
        self.outcome[row] = ERROR
        self.errors[row] = text

    def accept(self, rows: Ints, gone: Bools, priority: Ints, started: Floats, charged: tuple[Bools, Bools] | None) -> None:
        """Store the victims of some rows, one line a row over the pods below the preemptor's priority, most important first.
        `charged` says which of these pods violate a budget, and which rows have pods that a budget selects."""
        # Ranks go by importance, so the first victim (`argmax` of a row of booleans finds the first True) has the
        # highest priority.
        line, first = np.arange(len(rows)), gone.argmax(axis=1)
        self.outcome[rows] = CANDIDATE
        self.violations[rows] = 0 if charged is None else np.count_nonzero(gone & charged[0], axis=1)
        self.top_priority[rows] = priority[line, first]
        # kube-scheduler adds 2**31 to each priority: a sum of 2 victims with priority -5 must cost more than that of 1
        # victim with -5.
        self.total_priority[rows] = np.where(gone, priority + PRIORITY_OFFSET, 0).sum(axis=1)
        self.started[rows] = started[line, first]
        self.n_victims[rows] = np.count_nonzero(gone, axis=1)
        if charged is not None:
            self._selected[rows] = charged[1]
        if gone.shape[1] > MOST_PODS:
            self._crowds.update(zip(rows.tolist(), gone, strict=True))
            return
        # Which pods are victims, as bits: 10,000 rows with up to 64 pods below the priority take 80 kB. A row with more
        # than MOST_PODS pods is kept apart, or it would widen all rows.
        packed = np.packbits(gone, axis=1)
        width = packed.shape[1]
        if width > self._gone.shape[1]:
            wider = np.zeros((len(self._gone), width), dtype=np.uint8)
            wider[:, : self._gone.shape[1]] = self._gone
            self._gone = wider
        self._gone[rows, :width] = packed
        self._gone[rows, width:] = 0

    def victims(self, row: int) -> list[int]:
        """Return the victims of a candidate as ranks among the pods below the preemptor's priority."""
        gone = self._crowds.get(row)
        if gone is None:
            gone = np.unpackbits(self._gone[row]).astype(np.bool_)
        ranks: list[int] = np.flatnonzero(gone).tolist()
        return ranks

    # Staying true

    def follow(self, nodes: Snapshot, coming: NominatedByRow, budgets: Budgets, versions: tuple[int, ...]) -> bool:
        """Make the rows unknown that changed since the last call; return False if the whole object is outdated.

        `versions` are those of the other objects that the filters read.
        """
        seen = budgets.meaning, versions
        changes, nominated = self._journal.changed(nodes.journal), self._nominated.changed(coming.changes)
        reordered = self._reordered.changed(nodes.slots.reordered)
        if seen != self._seen or changes is None or nominated is None or reordered is None:
            self._seen, self._version = seen, budgets.version
            return False
        # What may change the result of a row: its node or pods changed (journal), a pod was nominated to it or no
        # longer is, or the order of its pods changed (`reordered`: a start time, which decides who is put back first).
        for row in (*(change.row for change in changes), *nominated, *reordered):
            self.forget(row)
        # Only disruptionsAllowed changed, else `meaning` had. It concerns the rows with pods that a budget selects.
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
