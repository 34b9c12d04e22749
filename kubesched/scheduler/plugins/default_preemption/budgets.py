"""Disruption budgets: which pods cannot be evicted without breaking one.

In: the cluster's PodDisruptionBudgets, pods in order of importance. Out: which of them violate. Every budget that
selects a pod is charged for it, most important pod first, each node for itself; the pods that find a budget used up
violate it. A pod without labels is selected by none, nor is anybody by an empty, absent or broken selector, and a pod
that the budget already counts as disrupted costs nothing.

Since 1.37, and for groups before, the reference charges a pod to its budgets only up to the first that is used up, in an order
that is chance. To charge all of them is what it does in one of these orders: that in which a budget comes before those that
are used up earlier.
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
    """One budget: whom it selects, how many of them may go, and who is counted as gone already, by name."""

    selector: matching.Selector
    allowed: int = 0
    disrupted: Collection[str] = ()

    def selects(self, labels: dict[str, str]) -> bool:
        return not self.selector.is_everything and self.selector.matches(labels)

    def read(self, budget: PodDisruptionBudget) -> None:
        self.allowed, self.disrupted = budget.status.disruptions_allowed, budget.status.disrupted_pods


class Budgets:
    """The budgets that can be charged. One for each store; `meaning` moves when other pods may be selected than before, and
    `version` whenever anything changed."""

    @property
    def version(self) -> int:
        """Return a number that moves with every change to a budget."""
        return self._objects.version(PodDisruptionBudget)

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._reader: Reader[ObjectChange] = Reader()
        self.meaning = 0
        self._budgets: dict[str, dict[str, _Budget]] = {}
        """By namespace and name."""
        self._of_class: WeakKeyDictionary[LabelClass, tuple[_Budget, ...]] = WeakKeyDictionary()

    def follow(self) -> None:
        """Take in what changed."""
        changes = self._reader.changed(self._objects.log(PodDisruptionBudget))
        if changes is None:
            self._budgets.clear()
            changes = [ObjectChange(None, budget) for budget in self._objects.all(PodDisruptionBudget)]
            self._renew()
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
        self._of_class.clear()

    def _of(self, budget: PodDisruptionBudget) -> dict[str, _Budget]:
        return self._budgets.setdefault(budget.metadata.namespace, {})

    def _put(self, budget: PodDisruptionBudget) -> None:
        try:
            known = _Budget(matching.compile_selector(budget.spec.selector))
        except matching.SelectorError:
            return
        known.read(budget)
        self._of(budget)[budget.metadata.name] = known

    def of_class(self, pods: LabelClass) -> tuple[_Budget, ...]:
        """Return the budgets that select the pods of a label class."""
        found = self._of_class.get(pods)
        if found is None:
            found = ()
            if pods.labels and pods.namespace in self._budgets:
                labels = dict(pods.labels)
                found = tuple(b for b in self._budgets[pods.namespace].values() if b.selects(labels))
            self._of_class[pods] = found
        return found

    def _is_over(self, pod: PodView, left: dict[_Budget, int]) -> bool:
        """Charge a pod to its budgets, of which so much is left; return whether it violates one."""
        is_over = False
        for budget in self.of_class(pod.template.label_class):
            if pod.name not in budget.disrupted:
                left[budget] = left.get(budget, budget.allowed) - 1
                is_over = is_over or left[budget] < 0
        return is_over

    def violations(self, groups: Sequence[Sequence[PodView]], *, charges_all: bool = True) -> list[int]:
        """Return how many pods of each group violate a budget. Unless all are charged, a group is looked at up to the first."""
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
        """Do the same for many nodes, one line a node: return which pods violate a budget and which nodes have pods
        that are selected by any; None if there are none. Class 0 fills short lines up."""
        if not any(self._budgets.values()):
            return None
        present = np.unique(class_ids)
        found = [self.of_class(classes[c]) if c else () for c in present.tolist()]
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
        if any(budget.disrupted for budget in budgets):
            at = zip(number.tolist(), slots[line, rank].tolist(), strict=True)
            excused = np.array([(p := views[slot]) is not None and p.name in budgets[n].disrupted for n, slot in at], np.bool_)
            line, rank, number = line[~excused], rank[~excused], number[~excused]
        violating = np.zeros(class_ids.shape, dtype=np.bool_)
        selected: Bools = np.count_nonzero(charges >= 0, axis=(1, 2)) > 0
        order = np.lexsort((rank, number, line))
        line, rank, number = line[order], rank[order], number[order]
        starts = np.ones(len(line), dtype=np.bool_)
        starts[1:] = (line[1:] != line[:-1]) | (number[1:] != number[:-1])
        here = np.arange(len(line))
        nth_charge = here - np.maximum.accumulate(np.where(starts, here, 0)) + 1
        over = nth_charge > np.array([budget.allowed for budget in budgets])[number]
        violating[line[over], rank[over]] = True
        return violating, selected
