"""Which of several best nodes is taken.

In: the totals of all nodes, far below zero where a node is refused. Out: one row of the highest total. Any of the best nodes
is a right answer: the reference's own order depends on how its workers interleave.
"""

from __future__ import annotations

from typing import Protocol
from zlib import crc32

import numpy as np

from kubesched.cluster import Ints, PodView, Snapshot
from kubesched.framework.best_rows import BestRows


class Ties(Protocol):
    """How one of several best nodes is chosen."""

    @property
    def chooser(self) -> str:
        """Return in a word what chooses: it goes into the record of a decision."""
        ...

    def best(self, pod: PodView, totals: Ints, nodes: Snapshot, level: BestRows | None = None) -> int:
        """Return a row that has the highest total; `level` knows which they are, where somebody has followed them."""
        ...


class SeededTies:
    """Follows from the seed and the pod's uid alone, so that a replay of the same inbox chooses the same node, whatever other
    pods did in between and whether or not answers are remembered."""

    __slots__ = ("seed",)
    chooser = "seed"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed & 0xFFFFFFFF

    def best(self, pod: PodView, totals: Ints, nodes: Snapshot, level: BestRows | None = None) -> int:
        """Return the first of the best rows from a row on that depends on the pod's uid, going round."""
        start = crc32(pod.uid.encode(), self.seed) % nodes.n
        return first_best(totals, start) if level is None else level.first_from(start)


class FirstByName:
    """The node whose name sorts first: as golden cases and some published experiments have it."""

    __slots__ = ()
    chooser = "name"

    def best(self, pod: PodView, totals: Ints, nodes: Snapshot, level: BestRows | None = None) -> int:
        """Return the best row whose node's name sorts first."""
        return int(min(best_rows(totals), key=nodes.name))


def best_rows(totals: Ints) -> list[int]:
    """Return all rows of the highest total, in rising order."""
    rows: list[int] = np.flatnonzero(totals == totals.max()).tolist()
    return rows


def first_best(totals: Ints, start: int) -> int:
    """Return the first row from `start` on, going round, that has the highest total."""
    row = int(totals.argmax())
    if row < start:  # the first of all lies behind: there may be another like it ahead
        ahead = start + int(totals[start:].argmax())
        if totals.item(ahead) == totals.item(row):
            return ahead
    return row
