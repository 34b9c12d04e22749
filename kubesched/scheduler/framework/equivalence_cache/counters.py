"""Pods counted per topology domain, updated when pods come and go.

In: a plugin's declaration of the pods that count, and where. Out: counters that are up to date whenever they are read.

Example: a Deployment spreads pods with app=web over zones. All its replicas make the same declaration, so they share one
counter. It is counted once from the table of placed pods: zone a 3, zone b 2. Then replica 6 is booked in zone b. The journal
has one entry for it, (row 17, pod, +1), and the next refresh adds 1 to the zone of row 17: 3 and 3. If the zone label of a node
changes, its pods move to another domain, and everything is counted anew.

A plugin that depends on COUNTED_PODS gets its counters from `CycleState.counted` and from nowhere else. So the cache knows when
they changed, and does not ask a plugin again that answered SKIP before. A what-if works on a copy (`clone`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

from kubesched.scheduler.cluster import NODE, Bools, Change, Ints, PodView, Reader, Snapshot

BUDGET_BYTES = 64 << 20
_BYTES_A_NODE, _BYTES_APART, _FEWEST = 128, 1 << 15, 16
FEWEST_CHANGES, PODS_A_CHANGE = 64, 128
"""To count all pods anew costs as much as 64 changes, and one more for every 128 placed pods (measured)."""


class PodCounts:
    """The counters of one declaration; a plugin derives its own class. `version` changes when a count does."""

    def __init__(self) -> None:
        self.version = 0
        self._reader: Reader[Change] = Reader()

    def refresh(self, nodes: Snapshot) -> None:
        """Take in the pods that came and went since the last call. Count all pods anew the first time, if a node changed so
        that counts may be wrong (`is_outdated_by`), or if that is faster."""
        changes = self._reader.changed(nodes.journal)
        many = FEWEST_CHANGES + len(nodes.pod_rows()) // PODS_A_CHANGE
        # Look at all changes before any pod is taken in: a pod that came before its node moved to another domain would be
        # counted in the new one. (A generator in `any` costs more than this loop, which mostly runs once.)
        is_outdated = changes is None or len(changes) > many
        for change in changes or ():
            if change.what & NODE and self.is_outdated_by(change):
                is_outdated = True
        if changes is None or is_outdated:
            self.version += 1
            self.recount(nodes.everything())
            return
        for change in changes:
            if change.pod is not None and self.count(change.pod, change.row, change.sign, nodes):
                self.version += 1

    def is_outdated_by(self, change: Change) -> bool:
        """Return whether a changed node could move its pods to another domain, or change whether they count. True is always
        right, but then all pods are counted anew even if a node gets an image."""
        return True

    def skips_by(self) -> object:
        """Return a value on which it depends whether the plugin answers SKIP. While it stays the same, the plugin's answer at
        PreFilter and its SKIP at PreScore stand."""
        return self.version

    def is_for(self, pod: PodView, nodes: Snapshot) -> bool:
        """Return whether a pod still makes this declaration. Called when a pod with new terms about other pods appears."""
        return True

    def is_moved_by(self, other: PodView, nodes: Snapshot) -> bool:
        """Return whether `add_pod` or `remove_pod` of such a pod in a what-if could change the verdict on any node. The answer
        is taken for all pods of its template."""
        return True

    def recount(self, whole: Snapshot) -> None:
        """Count all placed pods."""
        raise NotImplementedError

    def count(self, other: PodView, row: int, sign: int, nodes: Snapshot) -> bool:
        """Add a pod that came to a row of the whole cluster (+1) or left it (-1); return whether it counts at all."""
        raise NotImplementedError


C = TypeVar("C", bound=PodCounts)


class CounterTable:
    """Counters by declaration. When there are too many, those that were not used for the longest time are dropped."""

    def __init__(self) -> None:
        self._counts: OrderedDict[Hashable, Any] = OrderedDict()

    def find(self, declaration: Hashable, nodes: Snapshot, make: Callable[[], C]) -> C:
        """Return the counters of a declaration, as the pods are now."""
        counts: C | None = self._counts.get(declaration)
        if counts is None:
            counts = self._counts[declaration] = make()
            most = max(_FEWEST, BUDGET_BYTES // (_BYTES_A_NODE * nodes.total + _BYTES_APART))
            while len(self._counts) > most:
                self._counts.popitem(last=False)
        else:
            self._counts.move_to_end(declaration)
        counts.refresh(nodes)
        return counts


class DomainCounts:
    """Amounts by label key and value, and the number of entries that they are made of: a sum of zero is not "nothing".

    For each label key there is one array, indexed by the number of the label's value. Its last element stays zero: nodes
    without the label have the number -1, belong to no domain, and so read zero.
    """

    __slots__ = ("_amounts", "_entries")

    def __init__(self) -> None:
        self._amounts: dict[str, Ints] = {}
        self._entries = 0

    def clone(self) -> DomainCounts:
        """Return a copy that can be changed on its own."""
        copy = DomainCounts()
        copy._amounts = {key: amounts.copy() for key, amounts in self._amounts.items()}
        copy._entries = self._entries
        return copy

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was ever counted, or all of it was taken back."""
        return self._entries == 0

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the label keys."""
        return tuple(self._amounts)

    def count(self, key: str, nodes: Snapshot, rows: Ints, amounts: Ints, times: Ints) -> None:
        """Add amounts, each consisting of `times` entries, for pods on rows of the whole cluster."""
        codes = nodes.codes(key)[rows]
        held = codes >= 0
        counted = self.by_code(key, nodes)
        # bincount sums in floating point, which is exact far beyond any weight times any number of pods.
        counted += np.bincount(codes[held], weights=amounts[held], minlength=len(counted)).astype(np.int64)
        self._entries += int(times[held].sum())

    def add(self, key: str, nodes: Snapshot, row: int, amount: int, times: int) -> tuple[int, int, int] | None:
        """Add an amount for one pod on a row of the whole cluster. `times` is -1 if an entry is taken back. Return the domain,
        and its count before and after; None if the node is in no domain."""
        code = nodes.code_at(key, row)
        if code < 0:
            return None
        amounts = self._amounts.get(key)
        if amounts is None or code >= len(amounts) - 1:  # the node's label has a value that is new
            amounts = self.by_code(key, nodes)
        before: int = amounts.item(code)
        amounts[code] = before + amount
        self._entries += times
        return code, before, before + amount

    def at(self, key: str, code: int) -> int:
        """Return the count of one domain."""
        amounts = self._amounts.get(key)
        return int(amounts.item(code)) if amounts is not None and code < len(amounts) else 0

    def on(self, key: str, nodes: Snapshot) -> Ints:
        """Return the count of each node's domain; zero where the node lacks the label."""
        if key not in self._amounts:
            return np.zeros(nodes.n, dtype=np.int64)
        column: Ints = self.by_code(key, nodes)[nodes.codes(key)]
        return column

    def any_positive(self, nodes: Snapshot) -> Bools:
        """Return which nodes lie in a domain with a count above zero."""
        found = np.zeros(nodes.n, dtype=np.bool_)
        for key in self._amounts:
            found |= self.on(key, nodes) > 0
        return found

    def by_code(self, key: str, nodes: Snapshot) -> Ints:
        """Return the counts of a key: one for every value of the label, and the zero at the end."""
        size = nodes.n_values(key) + 1
        amounts = self._amounts.get(key)
        if amounts is None or len(amounts) < size:
            grown = np.zeros(size, dtype=np.int64)
            if amounts is not None:
                grown[: len(amounts) - 1] = amounts[:-1]
            amounts = self._amounts[key] = grown
        return amounts
