"""Counters per topology domain: for each label key one array, indexed by the number of the label's value.

In: pods on rows, with amounts. Out: a node's count looked up by its own label value, as one column. Nodes without the
label belong to no domain: nothing is counted for them and they read zero.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster import Ints, Snapshot


class DomainCounts:
    """Amounts by (label key, value); remembers how many entries it was made of, as a sum of zero is not "nothing"."""

    __slots__ = ("_amounts", "_entries")

    def __init__(self) -> None:
        self._amounts: dict[str, Ints] = {}
        self._entries = 0

    def clone(self) -> DomainCounts:
        """Return a copy that can be adjusted on its own."""
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

    @staticmethod
    def size(key: str, nodes: Snapshot) -> int:
        """Return how many values of a label there are, and one more for the nodes that lack it."""
        return nodes.n_values(key) + 1

    def count(self, key: str, nodes: Snapshot, rows: Ints, amounts: Ints, times: Ints) -> None:
        """Add amounts, each consisting of `times` entries, for pods on rows of the whole cluster."""
        codes = nodes.codes(key)[rows]
        held = codes >= 0
        codes, amounts = codes[held], amounts[held]
        counted = self._of(key, nodes)
        # bincount sums in floating point, which is exact far beyond any weight times any number of pods.
        counted[:-1] += np.bincount(codes, weights=amounts, minlength=len(counted) - 1).astype(np.int64)
        self._entries += int(times[held].sum())

    def add(self, key: str, nodes: Snapshot, row: int, amount: int, times: int) -> tuple[int, int, int] | None:
        """Add an amount for one pod on a row of the whole cluster; `times` is -1 where an entry is taken back. Return the
        domain, and what it had before and has now; None if the node is in none."""
        code = nodes.code_at(key, row)
        if code < 0:
            return None
        amounts = self._amounts.get(key)
        if amounts is None or code >= len(amounts) - 1:  # a value that came after the others were counted
            amounts = self._of(key, nodes)
        before = amounts.item(code)
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
        column: Ints = self._of(key, nodes)[nodes.codes(key)]
        return column

    def by_code(self, key: str, nodes: Snapshot) -> Ints:
        """Return the count of each domain by the number of its value, and a zero at the end for nodes in none."""
        return self._of(key, nodes)

    def _of(self, key: str, nodes: Snapshot) -> Ints:
        """Return the amounts of a key: one for every value, and a zero at the end that code -1 (absent) finds."""
        size = self.size(key, nodes)
        amounts = self._amounts.get(key)
        if amounts is None or len(amounts) < size:
            grown = np.zeros(size, dtype=np.int64)
            if amounts is not None:
                grown[: len(amounts) - 1] = amounts[:-1]
            amounts = self._amounts[key] = grown
        return amounts
