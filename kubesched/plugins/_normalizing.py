"""The normalisation that several scorers share: the best node gets 100, the others their share of it."""

from __future__ import annotations

import numpy as np

from kubesched.cluster import Bools, Ints

MAX_SCORE = 100


def scale_to_best(scores: Ints, feasible: Bools, *, reverse: bool = False) -> Ints:
    """Scale scores by the highest feasible one; reversed, the lowest raw score becomes the highest."""
    best = int(scores[feasible].max(initial=0))
    if best == 0:
        return np.full(len(scores), MAX_SCORE, dtype=np.int64) if reverse else scores
    scaled: Ints = scores * MAX_SCORE // best
    return MAX_SCORE - scaled if reverse else scaled
