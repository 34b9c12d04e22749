"""A pod must fit a node together with the pods of equal or higher priority that are nominated to it.

In: verdicts on the nodes as they are. Out: the same verdicts, and refusals for the nodes on which the pod would not fit if the
nominated pods came. A node must pass both ways, with and without them, as in kube-scheduler: a nominated pod may be the one
that another pod's affinity asks for, and it may never come.

Example: node a has 2 free CPUs. `high` (2 CPUs) is nominated there, because its victims have just left. A pod of the same or a
lower priority that needs 1 CPU passes without `high` and is refused with it: a is kept for `high`. A pod of a higher priority
does not count `high` at all, and takes the node.

If all filters read one row alone, the answers of a class are kept. Only rows that changed, or whose nominated pods changed, are
tried again. So with thousands of nominated pods an attempt pays for the few new ones.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from kubesched.scheduler.cluster import Bools, Change, Codes, Ints, PodView, Reader, Snapshot
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.nominated import NominatedAbove, NominatedByRow, nominated_by_row
from kubesched.scheduler.framework.ports import Nominations
from kubesched.scheduler.framework.preemption.whatif import WhatIf
from kubesched.scheduler.framework.preemption.whatif_filters import NodeTrial, Refused, WhatIfFilters
from kubesched.scheduler.framework.runtime.profile import Profile
from kubesched.scheduler.framework.verdicts import Verdicts

UNKNOWN, PASSES = 0, 1
_MOST_CLASSES = 32
_FEW = 4
"""Up to so many rows are tried one by one, which is faster than arrays."""


def filter_with_nominated(
    profile: Profile,
    pod: PodView,
    nodes: Snapshot,
    state: CycleState,
    considered: Bools | None,
    nominations: Nominations | None,
) -> Verdicts:
    """Run the filters. On nodes with nominated pods of equal or higher priority, the pod must fit together with these too."""
    verdicts = profile.filter(pod, nodes, state, considered)
    refuse_for_nominated(profile, pod, nodes, state, nominations, verdicts)
    return verdicts


def refuse_for_nominated(
    profile: Profile, pod: PodView, nodes: Snapshot, state: CycleState, nominations: Nominations | None, verdicts: Verdicts
) -> None:
    """Refuse the considered nodes on which the pod does not fit together with the pods nominated to them.

    Only nodes with nominated pods are tried again. There are three ways, from fast to slow: from the answers kept for the
    class; all nodes in one call of each filter; or node by node, if a nominated pod could change counters.
    """
    coming = nominated_by_row(nodes, nominations) if nominations is not None else None
    if not coming:
        return
    ahead = coming.above(pod.priority)
    if not len(ahead.rows):
        return
    what_if = WhatIfFilters(profile, pod, state, verdicts)
    # A nominated pod does not count against itself, so on its own node the kept answers, which are for the class, do not hold.
    own_row = coming.row_of(pod.uid)
    if nodes.rows is None and what_if.is_remembered(nodes) and not pod.template.ports:
        remembered = _remembered(profile, pod, what_if)
        remembered.find_out(what_if, nodes, coming, ahead)
        remembered.refuse(verdicts, own_row)
        if own_row >= 0 and ahead.here[own_row]:
            _refuse_alone(what_if, nodes, np.array([own_row]), ahead, verdicts)
        return
    positions = ahead.rows if nodes.rows is None else np.flatnonzero(ahead.here[nodes.rows])
    if verdicts.considered is not None:
        positions = positions[verdicts.considered[positions]]
    if not len(positions):
        return
    rows = positions if nodes.rows is None else nodes.rows[positions]
    # Nodes whose nominated pods change counters (spread, affinity) cannot share one imagined cluster: the pods of one node
    # would count in the verdict on another.
    apart = what_if.is_apart(rows, ahead, own_row, nodes)
    _refuse_alone(what_if, nodes, positions[apart], ahead, verdicts)
    together = positions[~apart]
    if len(together):
        imagined = WhatIf.of(nodes, together)
        imagined.arrive(ahead)
        verdicts.overrule(together, what_if.filter(imagined))


def feasible_beside_nominated(
    profile: Profile, pod: PodView, nodes: Snapshot, state: CycleState, nominations: Nominations | None, feasible: Bools
) -> Bools:
    """Return which feasible nodes stay feasible with the pods nominated to them. If all do, the same array is returned."""
    coming = nominated_by_row(nodes, nominations) if nominations is not None else None
    if not coming:
        return feasible
    rows = np.flatnonzero(coming.above(pod.priority).here & feasible)
    if not len(rows):
        return feasible
    # Only the rows that matter are filtered again; a view of them costs nothing.
    some = nodes.take(rows)
    verdicts = Verdicts(some)
    refuse_for_nominated(profile, pod, some, state, nominations, verdicts)
    if (verdicts.owner < 0).all():
        return feasible
    # The given array is the cache's own and must not be changed.
    left = feasible.copy()
    left[rows] = verdicts.owner < 0
    return left


def _refuse_alone(what_if: WhatIfFilters, nodes: Snapshot, positions: Ints, ahead: NominatedAbove, verdicts: Verdicts) -> None:
    """Try nodes one by one, because the pods nominated to them may change counters, and refuse those that do not pass."""
    whole = nodes.everything()
    for position in positions.tolist():
        row = position if nodes.rows is None else int(nodes.rows[position])
        refused = NodeTrial(what_if, whole, row).refusal_beside(ahead.pods[row])
        if refused is not None:
            verdicts.refuse(np.array([position]), *refused)


class _Remembered:
    """The answers of the filters for rows with their nominated pods, for one class: UNKNOWN, PASSES, or the number of a
    refusal."""

    __slots__ = ("_journal", "_nominated", "_numbers", "_versions", "outcome")

    def __init__(self) -> None:
        self.outcome: Codes = np.zeros(0, dtype=np.int32)
        self._numbers: dict[Refused, int] = {}
        self._versions: tuple[int, ...] | None = None
        self._journal: Reader[Change] = Reader()
        self._nominated: Reader[int] = Reader()

    def refuse(self, verdicts: Verdicts, own_row: int) -> None:
        """Refuse the rows that do not pass. The row that the pod itself is nominated to is left out: it does not count against
        itself."""
        if own_row >= 0:
            self.outcome[own_row] = UNKNOWN
        for (plugin, reasons), number in self._numbers.items():
            verdicts.refuse(self.outcome == number, plugin, reasons)

    def find_out(self, what_if: WhatIfFilters, nodes: Snapshot, coming: NominatedByRow, ahead: NominatedAbove) -> None:
        """Compute the answers that are unknown: for rows that changed, or whose nominated pods changed."""
        versions = what_if.versions(nodes)
        changes, nominated = self._journal.changed(nodes.journal), self._nominated.changed(coming.changes)
        # None: the journal no longer reaches back to where we stopped reading. `versions` covers what filters read besides the
        # row, such as volumes. In either case nothing that is kept can be trusted.
        if changes is None or nominated is None or versions != self._versions:
            self._versions = versions
            self.outcome = np.zeros(nodes.n, dtype=np.int32)
            self._numbers = {}
        else:
            for row in (*(change.row for change in changes), *nominated):
                self.outcome[row] = UNKNOWN
        unknown = ahead.rows[self.outcome[ahead.rows] == UNKNOWN]
        if len(unknown):
            self._ask(what_if, nodes, unknown, ahead)

    def _ask(self, what_if: WhatIfFilters, nodes: Snapshot, rows: Ints, ahead: NominatedAbove) -> None:
        if len(rows) <= _FEW:
            for row in rows.tolist():
                refused = NodeTrial(what_if, nodes, row).refusal_beside(ahead.pods[row])
                self.outcome[row] = PASSES if refused is None else self._number(refused)
            return
        imagined = WhatIf.of(nodes, rows)
        imagined.arrive(ahead)
        verdicts = what_if.filter(imagined)  # it may raise: the rows are as unknown as before then
        self.outcome[rows] = PASSES
        for plugin, reasons, alike in verdicts.refusals():
            self.outcome[rows[alike]] = self._number((plugin, reasons))

    def _number(self, refused: Refused) -> int:
        return self._numbers.setdefault(refused, len(self._numbers) + PASSES + 1)


def _remembered(profile: Profile, pod: PodView, what_if: WhatIfFilters) -> _Remembered:
    """Return the answers kept for the class of a pod."""
    # In order of use: `pop` and insert move a class to the end, and the first one goes when there are too many.
    memory: OrderedDict[tuple[bytes, frozenset[str]], _Remembered] = profile.kept.setdefault(__name__, OrderedDict())
    key = (pod.template.signature, what_if.skipped)
    found = memory.pop(key, None) or _Remembered()
    memory[key] = found
    if len(memory) > _MOST_CLASSES:
        memory.popitem(last=False)
    return found
