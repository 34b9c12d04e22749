"""The cluster's journal: one entry for each change to a node's row. Cached answers are updated from it, not computed anew.

Adding or removing a node renumbers rows. So it restarts the journal, and every reader starts again.
"""

from __future__ import annotations

from msgspec import Struct

from kubesched.scheduler.cluster.changelog import ChangeLog
from kubesched.scheduler.cluster.pods import PodView

USAGE = 1
"""Pods came to the node or left it."""
ALLOCATABLE = 2
"""What the node offers changed."""
NODE = 4
"""The node object changed in any other way that a decision may read: labels, taints, images, features, cordon."""
SPEC = 16
"""The node's spec changed, which has its taints and the cordon. NODE is set too."""
STARTED = 8
"""A pod of the node has another start time than before; preemption ranks pods by it."""


class Change(Struct, frozen=True, gc=False):
    """One change to one row; `pod` and `sign` say which pod came (+1) or left (-1), `labels` which labels of the node came,
    left or have another value."""

    row: int
    what: int
    pod: PodView | None = None
    sign: int = 0
    labels: frozenset[str] = frozenset()


class Journal(ChangeLog[Change]):
    """The changes to rows, in order."""

    __slots__ = ()

    longest = 1 << 13
    """No cached answer is updated for more changes than that, and each entry may keep a pod alive that is gone."""
