"""What changed, in order, so that a remembered answer can be repaired instead of computed again.

In: one entry for every change to a node's row. Out: the entries since a position somebody remembered, or None if that
is too long ago. Adding or removing nodes renumbers rows, so it empties the journal: everybody starts afresh.
"""

from __future__ import annotations

from typing import NamedTuple

from kubesched.cluster.pods import PodView

USAGE = 1
"""Pods came to the node or left it."""
ALLOCATABLE = 2
"""What the node offers changed."""
NODE = 4
"""The node object changed in any other way that a decision may read: labels, taints, images, features, cordon."""
STARTED = 8
"""A pod of the node has another start time than before: of interest to those who rank pods for eviction."""

_LONGEST = 1 << 16


class Change(NamedTuple):
    """One change to one row; `pod` and `sign` say which pod came (+1) or left (-1)."""

    row: int
    what: int
    pod: PodView | None = None
    sign: int = 0


class Journal:
    """The changes, with a bounded memory."""

    __slots__ = ("changes", "start")

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.start = 0

    @property
    def end(self) -> int:
        """Return the position after the last change."""
        return self.start + len(self.changes)

    def append(self, change: Change) -> None:
        """Write down a change."""
        self.changes.append(change)
        if len(self.changes) > _LONGEST:
            del self.changes[: _LONGEST // 2]
            self.start += _LONGEST // 2

    def since(self, position: int) -> list[Change] | None:
        """Return the changes from a position on; None if some of them are forgotten."""
        if position < self.start:
            return None
        return self.changes[position - self.start :]

    def restart(self) -> None:
        """Forget everything: positions handed out before now are too old."""
        self.start = self.end + 1
        self.changes.clear()


def concern_nodes(changes: list[Change]) -> bool:
    """Return whether any of the changes is to a node object: its labels, taints, images, features or cordon."""
    for change in changes:  # noqa: SIM110  asked for every pod about the one change there is: a generator costs more
        if change.what & NODE:
            return True
    return False
