"""What all priorities have in common: map and reduce, over a range of 0 to 10 or 0 to 100.

Map gives every node a number of its own, reduce brings the numbers of the feasible nodes into the range. They are the
contract's `score` and `normalize`; here stand the two reductions that several priorities share.
"""

from __future__ import annotations

import numpy as np

from kubesched.scheduler.cluster import Bools, Ints
from kubesched.scheduler.framework import Handle, Plugin
from kubesched.scheduler.legacy.releases import LegacyContext


class Priority(Plugin):
    """The base of priorities."""

    def __init__(self, context: LegacyContext, handle: Handle) -> None:
        super().__init__(context, handle)
        self.context = context
        self.release = context.release
        self.most = context.release.max_score


def scaled(scores: Ints, feasible: Bools, most: int, *, reverse: bool = False) -> Ints:
    """Return each node's share of the largest feasible score, out of `most`; reversed, what is missing to `most`."""
    largest = int(scores[feasible].max(initial=0))
    if largest == 0:
        return np.full(len(scores), most, dtype=np.int64) if reverse else np.zeros(len(scores), dtype=np.int64)
    share: Ints = scores * most // largest
    return most - share if reverse else share
