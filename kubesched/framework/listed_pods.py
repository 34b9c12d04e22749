"""Pods of many rows as numbers, taken away and given back one rank at a time.

In: for each of some rows a list of its pods, most important first. Out: who is away, and what those would use. Preemption takes
all pods of lower priority from five hundred nodes in one step, then gives the most important one of each node back, then the
second of each, and asks the filters after every step (framework/whatif).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kubesched.cluster import CPU, Bools, Codes, Ints
from kubesched.cluster.pods import PodTemplate

_GROWTH = 256


class TemplateNumbers:
    """Templates by number, and what pods of each use as arrays by that number. Number 0 is nobody and uses nothing."""

    def __init__(self) -> None:
        self._ids: dict[PodTemplate, int] = {}
        self.templates: list[PodTemplate | None] = [None]
        self._usage: dict[int, Ints] = {}
        self.non_zero_cpu: Ints = np.zeros(_GROWTH, dtype=np.int64)
        self.non_zero_memory: Ints = np.zeros(_GROWTH, dtype=np.int64)
        self.class_id: Ints = np.zeros(_GROWTH, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.templates)

    def number(self, template: PodTemplate) -> int:
        """Return the number of a template, giving it one if it is new."""
        number = self._ids.get(template)
        if number is None:
            number = self._ids[template] = len(self.templates)
            self.templates.append(template)
            if number == len(self.class_id):
                self._grow()
            self.non_zero_cpu[number] = template.non_zero_cpu
            self.non_zero_memory[number] = template.non_zero_memory
            self.class_id[number] = template.class_id
            for resource, amount in template.usage:
                self.usage(resource)[number] = amount
        return number

    def usage(self, resource: int) -> Ints:
        """Return what a pod of each template uses of a resource."""
        column = self._usage.get(resource)
        if column is None:
            column = self._usage[resource] = np.zeros(len(self.class_id), dtype=np.int64)
        return column

    def non_zero(self, resource: int) -> Ints:
        """Return what a pod of each template uses of cpu or memory, with the defaults for one that asks for nothing."""
        return self.non_zero_cpu if resource == CPU else self.non_zero_memory

    def _grow(self) -> None:
        def grown(column: Ints) -> Ints:
            return np.concatenate((column, np.zeros(len(column), dtype=np.int64)))

        self.non_zero_cpu, self.non_zero_memory = grown(self.non_zero_cpu), grown(self.non_zero_memory)
        self.class_id = grown(self.class_id)
        self._usage = {resource: grown(column) for resource, column in self._usage.items()}


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
