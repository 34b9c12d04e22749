"""The base of priorities. A priority's map function is `score`, its reduce function is `normalize`. The highest score is 10, in
1.17 100."""

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
    """Scale the scores so that the highest feasible one becomes `most`; with `reverse`, a score of 0 becomes `most`."""
    largest = int(scores[feasible].max(initial=0))
    if largest == 0:
        return np.full(len(scores), most, dtype=np.int64) if reverse else np.zeros(len(scores), dtype=np.int64)
    share: Ints = scores * most // largest
    return most - share if reverse else share
