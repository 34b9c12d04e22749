"""PodDisruptionBudgets: the eviction of which pods would violate one.

For each node the pods are charged to the budgets that select them, the most important pod first. A pod violates a budget that
has nothing left when it is charged.

    budget web: disruptionsAllowed 1       pods of the node: web-1 (priority 5), db-1, web-2 (priority 1)
    charge web-1: 0 left      db-1: no budget selects it      charge web-2: -1 left, web-2 violates

A budget selects no pod without labels, and nothing with an empty, absent or broken selector. A pod in the budget's
`status.disruptedPods` costs nothing.

Since 1.37 (for groups before, too) kube-scheduler stops charging a pod at its first budget without anything left, and the order
of the budgets is random. Here all budgets are charged, which is its result in one of these orders.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from kubesched.kube.api import PodDisruptionBudget, matching
from kubesched.scheduler.cluster import Bools, Codes, Ints, LabelClass, LabelClasses, ObjectChange, Objects, PodView, Reader


@dataclass(eq=False, slots=True)
class _Budget:
    """One budget: its selector, `disruptionsAllowed`, and the names of its disrupted pods."""

    selector: matching.Selector
    allowed: int = 0
    disrupted: Collection[str] = ()

    def selects(self, labels: dict[str, str]) -> bool:
        return not self.selector.is_everything and self.selector.matches(labels)

    def read(self, budget: PodDisruptionBudget) -> None:
        self.allowed, self.disrupted = budget.status.disruptions_allowed, budget.status.disrupted_pods


class Budgets:
    """All budgets with a valid selector; one object for each store. `meaning` changes when selectors change, `version` with
    every change."""

    @property
    def version(self) -> int:
        """Return the version of the store's budgets."""
        return self._objects.version(PodDisruptionBudget)

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._reader: Reader[ObjectChange] = Reader()
        self.meaning = 0
        self._budgets: dict[str, dict[str, _Budget]] = {}
        """By namespace and name."""
        self._by_class: WeakKeyDictionary[LabelClass, tuple[_Budget, ...]] = WeakKeyDictionary()

    def follow(self) -> None:
        """Read the budgets that changed."""
        changes = self._reader.changed(self._objects.log(PodDisruptionBudget))
        if changes is None:
            self._budgets.clear()
            changes = [ObjectChange(None, budget) for budget in self._objects.all(PodDisruptionBudget)]
            self._renew()
        # disruptionsAllowed changes with every pod that starts or stops; selectors hardly ever do. So a change of the
        # status rewrites one number, and the cached budgets of label classes (`_by_class`) live until a selector
        # changes.
        for old, new in changes:
            if old is None or new is None or old.spec.selector != new.spec.selector:
                self._renew()
                if old is not None:
                    self._of(old).pop(old.metadata.name, None)
                if new is not None:
                    self._put(new)
            elif new.metadata.name in self._of(new):
                self._of(new)[new.metadata.name].read(new)

    def _renew(self) -> None:
        self.meaning += 1
        self._by_class.clear()

    def _of(self, budget: PodDisruptionBudget) -> dict[str, _Budget]:
        return self._budgets.setdefault(budget.metadata.namespace, {})

    def _put(self, budget: PodDisruptionBudget) -> None:
        try:
            made = _Budget(matching.compile_selector(budget.spec.selector))
        except matching.SelectorError:
            # Not an error: kube-scheduler ignores a budget whose selector it cannot parse.
            return
        made.read(budget)
        self._of(budget)[budget.metadata.name] = made

    def selecting(self, pods: LabelClass) -> tuple[_Budget, ...]:
        """Return the budgets that select the pods of a label class."""
        found = self._by_class.get(pods)
        if found is None:
            found = ()
            if pods.labels and pods.namespace in self._budgets:
                labels = dict(pods.labels)
                found = tuple(b for b in self._budgets[pods.namespace].values() if b.selects(labels))
            self._by_class[pods] = found
        return found

    def _is_over(self, pod: PodView, left: dict[_Budget, int]) -> bool:
        """Charge a pod to its budgets; return whether it violates one. `left` is what is left of each budget."""
        # Every budget is charged, also after the first that is violated: `left` must be right for the next pod.
        is_over = False
        for budget in self.selecting(pod.template.label_class):
            if pod.name not in budget.disrupted:
                left[budget] = left.get(budget, budget.allowed) - 1
                is_over = is_over or left[budget] < 0
        return is_over

    def violations(self, groups: Sequence[Sequence[PodView]], *, charges_all: bool = True) -> list[int]:
        """Return how many pods of each unit violate a budget; without `charges_all`, a unit is charged up to its first
        violation."""
        # The order of `groups` decides who violates: with disruptionsAllowed 1 and pods web-1, web-2, the second one
        # does. Callers pass the most important unit first, so the least important ones violate, and those are reprieved
        # first.
        left: dict[_Budget, int] = {}
        found = []
        for pods in groups:
            n = 0
            for pod in pods:
                n += self._is_over(pod, left)
                if n and not charges_all:
                    break
            found.append(n)
        return found

    def charge(
        self, class_ids: Ints, slots: Codes, views: Sequence[PodView | None], classes: LabelClasses
    ) -> tuple[Bools, Bools] | None:
        """Do the same for many nodes at once. `class_ids` and `slots` have one line a node; class 0 fills short lines.

        Return which pods violate a budget, and which nodes have pods that a budget selects; None if no budget selects any.

        Every (line, budget) pair is one account. Its charges are sorted by rank, and the n-th charge of an account violates
        the budget if n > disruptionsAllowed: that is `nth_charge`, a running number that restarts with each account.
        """
        if not any(self._budgets.values()):
            return None
        # From label class to budgets, in three steps, so that no step loops over pods: the classes that occur (a few of
        # thousands), the budgets of each, and a table of budget numbers with a line for each class, filled up with -1:
        #
        #     classes 7, 9       budgets web = 0, all = 1        table    [[0, 1],     class 7: web and all
        #                                                                  [1, -1]]    class 9: all only
        #     class_ids [[7, 9, 0]], one node                   charges  [[[0, 1], [1, -1], [-1, -1]]]
        #
        # `charges` has the axes (line, rank, budget of the pod). Its entries that are not -1 are the single charges.
        present = np.unique(class_ids)
        found = [self.selecting(classes[c]) if c else () for c in present.tolist()]
        budgets = list(dict.fromkeys(budget for selecting in found for budget in selecting))
        if not budgets:
            return None
        numbers = {budget: number for number, budget in enumerate(budgets)}
        table = np.full((len(present), max(map(len, found))), -1, dtype=np.int64)
        for i, selecting in enumerate(found):
            table[i, : len(selecting)] = [numbers[budget] for budget in selecting]
        charges = table[np.searchsorted(present, class_ids)]
        line, rank, nth = np.nonzero(charges >= 0)
        number = charges[line, rank, nth]
        # Pods that are disrupted already cost nothing. Budgets with such pods are rare, so this may be a loop.
        if any(budget.disrupted for budget in budgets):
            at = zip(number.tolist(), slots[line, rank].tolist(), strict=True)
            excused = np.array([(p := views[slot]) is not None and p.name in budgets[n].disrupted for n, slot in at], np.bool_)
            line, rank, number = line[~excused], rank[~excused], number[~excused]
        violating = np.zeros(class_ids.shape, dtype=np.bool_)
        selected: Bools = np.count_nonzero(charges >= 0, axis=(1, 2)) > 0
        # lexsort sorts by its last key first: by line, then by budget, then by rank. Charges of one account are now
        # neighbours, the most important pod first.
        order = np.lexsort((rank, number, line))
        line, rank, number = line[order], rank[order], number[order]
        starts = np.ones(len(line), dtype=np.bool_)
        starts[1:] = (line[1:] != line[:-1]) | (number[1:] != number[:-1])
        here = np.arange(len(line))
        # `here` counts all charges, and the running maximum holds the position where the account began: 0 0 0 3 3 for
        # accounts of 3 and 2 charges. The difference plus one is 1 2 3 1 2.
        nth_charge = here - np.maximum.accumulate(np.where(starts, here, 0)) + 1
        over = nth_charge > np.array([budget.allowed for budget in budgets])[number]
        violating[line[over], rank[over]] = True
        return violating, selected
