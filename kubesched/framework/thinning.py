"""Many rows at once, with pods of theirs taken away and given back one rank at a time.

In: rows, and for each of them a list of its pods as numbers. Out: a view like any what-if. Preemption takes all pods of
lower priority from five hundred nodes in one step, then gives the most important one of each node back, then the second
of each, and asks the filters after every step: the price is that of the filters, not of the pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kubesched.api.requests import HostPort, ports_conflict
from kubesched.cluster import CPU, MEMORY, Bools, ClusterTables, Codes, Ints, PodView, Snapshot
from kubesched.cluster.pods import PodTemplate
from kubesched.framework.whatif import WhatIf

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

    def _grow(self) -> None:
        def grown(column: Ints) -> Ints:
            return np.concatenate((column, np.zeros(len(column), dtype=np.int64)))

        self.non_zero_cpu, self.non_zero_memory = grown(self.non_zero_cpu), grown(self.non_zero_memory)
        self.class_id = grown(self.class_id)
        self._usage = {resource: grown(column) for resource, column in self._usage.items()}


class Thinned(WhatIf):
    """Rows from which pods were taken. `gone[i, k]` says whether the k-th listed pod of the i-th row is away."""

    __slots__ = ("_book", "_numbers", "_slots_of", "gone")

    def __init__(
        self, whole: ClusterTables, rows: Ints, count: Ints, book: TemplateNumbers, numbers: Codes, slots_of: Codes, gone: Bools
    ) -> None:
        super().__init__(whole, rows, count)
        self._book = book
        self._numbers = numbers
        self._slots_of = slots_of
        self.gone = gone

    @staticmethod
    def without(nodes: Snapshot, rows: Ints, slots: Codes, numbers: Codes, book: TemplateNumbers) -> Thinned:
        """Return a view of some rows with all listed pods away. `slots` and `numbers` hold one line a row: the pods'
        slots in the table of placed pods and their templates' numbers; number 0 fills short lines up."""
        some, gone = nodes.take(rows), numbers != 0
        assert some.rows is not None
        count = some.pod_count - np.count_nonzero(gone, axis=1)
        return Thinned(some.whole, some.rows, count, book, numbers, slots, gone)

    def take(self, rows: Ints | Sequence[int]) -> Thinned:
        """Return some rows of this view, imagined pods included."""
        kept = np.asarray(rows, dtype=np.int64)
        view = Thinned(
            self.whole,
            self._rows_at(kept),
            self._count[kept],
            self._book,
            self._numbers[kept],
            self._slots_of[kept],
            self.gone[kept],
        )
        self._imagine_on(view, kept)
        return view

    def give_back(self, rank: int, here: Bools) -> None:
        """Return the pod of one rank to the rows where `here` is true; all of these must have it away."""
        self._move(rank, here, 1)

    def take_away(self, rank: int, here: Bools) -> None:
        """Take the pod of one rank from the rows where `here` is true; all of these must have it."""
        self._move(rank, here, -1)

    def _move(self, rank: int, here: Bools, sign: int) -> None:
        self.gone[here, rank] = sign < 0
        numbers = self._numbers[:, rank] * here
        for resource, column in self._requested.items():
            column += sign * self._book.usage(resource)[numbers]
        for resource, column in self._non_zero.items():
            column += sign * self._non_zero_usage(resource)[numbers]
        self._count += sign * here

    def requested(self, resource: int) -> Ints:
        """Return what the pods that are left ask for."""
        column = self._requested.get(resource)
        if column is None:
            away = np.where(self.gone, self._book.usage(resource)[self._numbers], 0).sum(axis=1)
            column = self._requested[resource] = super().requested(resource) - away
        return column

    def non_zero_requested(self, resource: int) -> Ints:
        """Return what the pods that are left ask for, with the defaults for those that ask for nothing."""
        if resource > MEMORY:
            return self.requested(resource)
        column = self._non_zero.get(resource)
        if column is None:
            away = np.where(self.gone, self._non_zero_usage(resource)[self._numbers], 0).sum(axis=1)
            column = self._non_zero[resource] = super().non_zero_requested(resource) - away
        return column

    def _non_zero_usage(self, resource: int) -> Ints:
        return self._book.non_zero_cpu if resource == CPU else self._book.non_zero_memory

    def pods_on(self, row: int) -> Iterable[PodView]:
        """Return the pods that are left on the node at a position."""
        away = set(self._slots_of[row][self.gone[row]].tolist())
        return (pod for pod in super().pods_on(row) if pod.slot not in away)

    def port_conflicts(self, ports: Iterable[HostPort]) -> Bools:
        """Return on which nodes one of these host ports is taken by a pod that is left."""
        wanted = tuple(ports)
        taken = Snapshot.port_conflicts(self, wanted)
        for position in self._changed_ports().union(np.flatnonzero(taken).tolist()):
            taken[position] = any(
                ports_conflict(mine, theirs)
                for pod in self.pods_on(position)
                for theirs in pod.template.ports
                for mine in wanted
            )
        return taken
