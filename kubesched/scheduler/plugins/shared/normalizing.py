"""The normalisation that several scorers share: the best node gets 100, the others their share of it."""

from __future__ import annotations

from kubesched.scheduler.cluster import Bools, Ints, Snapshot, is_uniform

MAX_SCORE = 100


def scale_to_best(scores: Ints, feasible: Bools, nodes: Snapshot, *, reverse: bool = False) -> Ints:
    """Scale scores by the highest feasible one; reversed, the lowest raw score becomes the highest."""
    are_level = is_uniform(scores)
    best = max(scores.item(0), 0) if are_level else int(scores[feasible].max(initial=0))
    if best == 0:
        return nodes.uniform(MAX_SCORE) if reverse else scores
    if are_level:
        return nodes.uniform(0 if reverse else MAX_SCORE)
    scaled: Ints = scores * MAX_SCORE // best
    return MAX_SCORE - scaled if reverse else scaled
