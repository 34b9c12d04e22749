"""The choice among several best nodes.

In: the totals of all nodes, far below zero where a node is refused. Out: one row with the highest total. Any of the best
nodes is a right answer: kube-scheduler's own order depends on how its goroutines run.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Protocol
from zlib import crc32

import numpy as np

from kubesched.scheduler.cluster import Ints, PodView, Snapshot
from kubesched.scheduler.framework import LevelRows


class Ties(Protocol):
    """How one of several best nodes is chosen."""

    @property
    def chooser(self) -> str:
        """Return one word for the record of a decision: what chose among equal nodes."""
        ...

    def best(self, pod: PodView, totals: Ints, nodes: Snapshot, level: LevelRows | None = None) -> int:
        """Return a row with the highest total. `level` has found these rows already, if it is given."""
        ...


class SeededTies:
    """Chooses by the seed and the pod's uid alone. So a replay of the same inbox chooses the same node, with or without the
    cache.

    The uid gives a row to start from, and the first best row from there on wins. Example with totals 90, 95, 80, 95 and 70: a
    pod whose uid gives row 2 goes to row 3, one that gives row 4 goes round and to row 1. It costs one search for the
    maximum, where a fair draw would have to list all best rows first.
    """

    __slots__ = ("seed",)
    chooser = "seed"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed & 0xFFFFFFFF

    def best(self, pod: PodView, totals: Ints, nodes: Snapshot, level: LevelRows | None = None) -> int:
        """Return the first of the best rows from a row on that depends on the pod's uid, going round."""
        start = crc32(pod.uid.encode(), self.seed) % nodes.n
        return (LevelRows(totals) if level is None else level).first_from(start)


class UniformTies:
    """Each of the best nodes is as likely as the others, as in kube-scheduler; it follows from the seed and the pod's uid.

    `SeededTies` is faster and less even: a best node after a long run of lesser nodes is chosen more often.
    """

    __slots__ = ("_key",)
    chooser = "uniform"

    def __init__(self, seed: int = 0) -> None:
        self._key = _key_of(seed)

    def best(self, pod: PodView, totals: Ints, nodes: Snapshot, level: LevelRows | None = None) -> int:
        """Return one of the best rows."""
        rows = np.flatnonzero(totals == totals.max())
        return int(rows[_drawn(pod.uid, self._key) % len(rows)])


class FirstByName:
    """The node whose name sorts first: as golden cases have it."""

    __slots__ = ("_names", "_ranks")
    chooser = "name"

    def __init__(self) -> None:
        self._names: list[str] | None = None
        self._ranks: Ints = np.zeros(0, dtype=np.int64)

    def best(self, pod: PodView, totals: Ints, nodes: Snapshot, level: LevelRows | None = None) -> int:
        """Return the best row whose node comes first."""
        rows, ranks = np.flatnonzero(totals == totals.max()), self._of(nodes)
        return int(rows[ranks[rows if nodes.rows is None else nodes.rows[rows]].argmin()])

    def _of(self, nodes: Snapshot) -> Ints:
        """Return the place of every node of the cluster in the order, by row."""
        visited = nodes.order.names
        if visited is not self._names:  # a new list whenever a node came, went, or moved to another zone
            names = nodes.everything().names
            self._ranks = np.empty(len(names), dtype=np.int64)
            # The rank of each row, so that the choice among any best rows is one `argmin`; sorted once for each list of nodes
            # and not for each pod.
            self._ranks[sorted(range(len(names)), key=lambda row: self._place(names[row]))] = np.arange(len(names))
            self._names = visited
        return self._ranks

    def _place(self, name: str) -> tuple[int, str]:
        return 0, name


class FirstShuffled(FirstByName):
    """The node that comes first in an order of all nodes that the seed shuffled once, as some published experiments have it:
    they give every node a number by chance, and take the smallest of the best."""

    __slots__ = ("_key",)
    chooser = "shuffled"

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._key = _key_of(seed)

    def _place(self, name: str) -> tuple[int, str]:
        return _drawn(name, self._key), name


def _key_of(seed: int) -> bytes:
    return (seed & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")


def _drawn(text: str, key: bytes) -> int:
    """Return a number that looks drawn by chance. A checksum would not do: two seeds shuffle its values almost alike."""
    return int.from_bytes(blake2b(text.encode(), key=key, digest_size=8).digest(), "little")


def best_rows(totals: Ints) -> list[int]:
    """Return all rows of the highest total, in rising order."""
    rows: list[int] = np.flatnonzero(totals == totals.max()).tolist()
    return rows
