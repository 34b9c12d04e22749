"""The pods of many nodes as numbers, removed and put back one rank at a time.

In: for each of some rows a list of its pods, most important first. Out: the pods that are removed, and the resources they use.
Preemption uses it for hundreds of nodes in one step (framework/preemption/whatif): first all pods of lower priority are removed
everywhere; then the most important one of each node is put back, then the second one of each, and after each step the filters
are called once for all nodes. A pod that still fits is reprieved; one that does not is a victim.

Example with 4 CPUs a node and a preemptor of 2: node a has pods of 1, 1 and 2 CPUs, node b has one pod of 3.

  step            a: free                  b: free
  all removed     4, fits                  4, fits
  rank 1 back     3, fits: reprieved       1, does not fit: removed again, a victim
  rank 2 back     2, fits: reprieved
  rank 3 back     0, does not fit: victim
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kubesched.scheduler.cluster import Bools, Codes, Ints, PodTemplate

_GROWTH = 256

DEFAULTED_CPU, DEFAULTED_MEMORY = -2, -3
"""The numbers under which cpu and memory are counted a second time, with the defaults for pods that ask for nothing. They are
no resource's: those begin with 0, and -1 is one that nobody knows."""


def usage_of(template: PodTemplate) -> Iterable[tuple[int, int]]:
    """Return what a pod uses: (resource, amount), those with the defaults included."""
    return *template.usage, (DEFAULTED_CPU, template.non_zero_cpu), (DEFAULTED_MEMORY, template.non_zero_memory)


class TemplateNumbers:
    """What pods of each template use, as arrays by the templates' number. Number 0 is nobody and uses nothing."""

    def __init__(self) -> None:
        self._serials: Ints = np.zeros(_GROWTH, dtype=np.int64)
        """Which template was read last of those that had a number."""
        self.class_id: Ints = np.zeros(_GROWTH, dtype=np.int64)
        self.usage: defaultdict[int, Ints] = defaultdict(lambda: np.zeros_like(self.class_id))
        """By resource, as in `usage_of`."""

    def __len__(self) -> int:
        """Return how long the arrays are."""
        return len(self.class_id)

    def number(self, template: PodTemplate) -> int:
        """Return the number of a template whose pods are there; it is read if it is new."""
        number = template.number
        while number >= len(self.class_id):
            for resource, column in self.usage.items():
                self.usage[resource] = np.append(column, np.zeros_like(column))
            self._serials = np.append(self._serials, np.zeros_like(self._serials))
            self.class_id = np.append(self.class_id, np.zeros_like(self.class_id))
        if self._serials[number] != template.serial:
            self._serials[number] = template.serial
            self.class_id[number] = template.class_id
            for column in self.usage.values():
                column[number] = 0
            for resource, amount in usage_of(template):
                self.usage[resource][number] = amount
        return number


@dataclass(frozen=True, slots=True)
class ListedPods:
    """One line a row: the pods' templates by number, their slots in the table of placed pods, and which are away."""

    book: TemplateNumbers
    numbers: Codes
    slots: Codes
    gone: Bools

    def take(self, kept: Ints) -> ListedPods:
        """Return the lists of some rows."""
        return ListedPods(self.book, self.numbers[kept], self.slots[kept], self.gone[kept])

    def away(self, used: Ints) -> Ints:
        """Return how much those that are away use, by what a pod of each template does."""
        column: Ints = np.where(self.gone, used[self.numbers], 0).sum(axis=1)
        return column

    def slots_away(self, row: int) -> set[int]:
        """Return the slots of the pods that are away from a row."""
        return set(self.slots[row][self.gone[row]].tolist())

    def move(self, rank: int, here: Bools, sign: int) -> Codes:
        """Give the pods of one rank back (+1) to some rows, or take them away (-1); return their templates' numbers."""
        self.gone[here, rank] = sign < 0
        moved: Codes = self.numbers[:, rank] * here
        return moved
