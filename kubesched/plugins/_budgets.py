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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.api import matching
from kubesched.api.policy import PodDisruptionBudget
from kubesched.cluster import Bools, Codes, Ints, Objects, PodView
from kubesched.cluster.changelog import Reader
from kubesched.cluster.objects import ObjectChange
from kubesched.cluster.pods import LabelClasses


@dataclass(frozen=True, slots=True)
class _Budget:
    """One budget's selector, and its place in the array of allowances."""

    number: int
    selector: matching.Selector

    def selects(self, labels: dict[str, str]) -> bool:
        return not self.selector.is_everything and self.selector.matches(labels)


class Budgets:
    """The budgets as numbers. One for each store; `meaning` moves when other pods may be selected than before, and
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
        self._allowed: Ints = np.zeros(16, dtype=np.int64)
        self._disrupted: dict[int, frozenset[str]] = {}
        self._free: list[int] = []
        self._n = 0
        self._of_class: dict[int, tuple[int, ...]] = {}

    def follow(self) -> None:
        """Take in what changed."""
        changes = self._reader.changed(self._objects.log(PodDisruptionBudget))
        if changes is None:
            self._budgets, self._disrupted, self._free, self._n = {}, {}, [], 0
            self._renew()
            for budget in self._objects.all(PodDisruptionBudget):
                self._put(budget)
            return
        for old, new in changes:
            if old is not None and new is not None and old.spec.selector == new.spec.selector:
                known = self._budgets.get(new.metadata.namespace, {}).get(new.metadata.name)
                if known is not None:
                    self._write(known.number, new)
                continue
            self._renew()
            if old is not None:
                self._drop(old)
            if new is not None:
                self._put(new)

    def _renew(self) -> None:
        self.meaning += 1
        self._of_class.clear()

    def _put(self, budget: PodDisruptionBudget) -> None:
        try:
            selector = matching.compile_selector(budget.spec.selector)
        except matching.SelectorError:
            return
        number = self._free.pop() if self._free else self._n
        if number == self._n:
            self._n += 1
            if self._n > len(self._allowed):
                self._allowed = np.concatenate((self._allowed, np.zeros_like(self._allowed)))
        meta = budget.metadata
        self._budgets.setdefault(meta.namespace, {})[meta.name] = _Budget(number, selector)
        self._write(number, budget)

    def _write(self, number: int, budget: PodDisruptionBudget) -> None:
        self._allowed[number] = budget.status.disruptions_allowed
        if budget.status.disrupted_pods:
            self._disrupted[number] = frozenset(budget.status.disrupted_pods)
        else:
            self._disrupted.pop(number, None)

    def _drop(self, budget: PodDisruptionBudget) -> None:
        known = self._budgets.get(budget.metadata.namespace, {}).pop(budget.metadata.name, None)
        if known is not None:
            self._disrupted.pop(known.number, None)
            self._free.append(known.number)

    def of_class(self, class_id: int, classes: LabelClasses) -> tuple[int, ...]:
        """Return the budgets that select the pods of a label class."""
        found = self._of_class.get(class_id)
        if found is None:
            pods = classes[class_id]
            found = ()
            if pods.labels and pods.namespace in self._budgets:
                labels = dict(pods.labels)
                found = tuple(b.number for b in self._budgets[pods.namespace].values() if b.selects(labels))
            self._of_class[class_id] = found
        return found

    def split(self, pods: Iterable[PodView]) -> tuple[list[PodView], list[PodView]]:
        """Return the pods of one node that violate a budget and those that do not, each in the order given."""
        left: dict[int, int] = {}
        violating: list[PodView] = []
        others: list[PodView] = []
        for pod in pods:
            (violating if self._is_over(pod, left) else others).append(pod)
        return violating, others

    def _is_over(self, pod: PodView, left: dict[int, int]) -> bool:
        """Charge a pod to its budgets, of which so much is left; return whether it violates one."""
        is_over = False
        for number in self.of_class(pod.template.class_id, pod.template.interners.label_classes):
            if pod.name not in self._disrupted.get(number, ()):
                left[number] = left.get(number, int(self._allowed[number])) - 1
                is_over = is_over or left[number] < 0
        return is_over

    def violations(self, groups: Sequence[Sequence[PodView]], *, charges_all: bool = True) -> list[int]:
        """Return how many pods of each group violate a budget. Unless all are charged, a group is looked at up to the first."""
        left: dict[int, int] = {}
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
        found = [self.of_class(c, classes) if c else () for c in present.tolist()]
        width = max(map(len, found), default=0)
        if not width:
            return None
        table = np.full((len(present), width), -1, dtype=np.int64)
        for i, numbers in enumerate(found):
            table[i, : len(numbers)] = numbers
        charges = table[np.searchsorted(present, class_ids)]
        line, rank, nth = np.nonzero(charges >= 0)
        number = charges[line, rank, nth]
        if self._disrupted:
            at = zip(number.tolist(), slots[line, rank].tolist(), strict=True)
            excused = np.fromiter((self._is_excused(n, views[slot]) for n, slot in at), np.bool_, len(line))
            line, rank, number = line[~excused], rank[~excused], number[~excused]
        violating = np.zeros(class_ids.shape, dtype=np.bool_)
        selected: Bools = np.count_nonzero(charges >= 0, axis=(1, 2)) > 0
        order = np.lexsort((rank, number, line))
        line, rank, number = line[order], rank[order], number[order]
        starts = np.ones(len(line), dtype=np.bool_)
        starts[1:] = (line[1:] != line[:-1]) | (number[1:] != number[:-1])
        here = np.arange(len(line))
        nth_charge = here - np.maximum.accumulate(np.where(starts, here, 0)) + 1
        over = nth_charge > self._allowed[number]
        violating[line[over], rank[over]] = True
        return violating, selected

    def _is_excused(self, number: int, pod: PodView | None) -> bool:
        return pod is not None and pod.name in self._disrupted.get(number, ())
