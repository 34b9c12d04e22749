"""The normalisation that several plugins share (kube-scheduler's DefaultNormalizeScore).

scores 0, 2, 5  ->  0, 40, 100      reversed  ->  100, 60, 0
"""

from __future__ import annotations

from kubesched.scheduler.cluster import Bools, Ints, Snapshot, is_uniform

MAX_SCORE = 100


def scale_to_best(scores: Ints, feasible: Bools, nodes: Snapshot, *, reverse: bool = False) -> Ints:
    """Scale the scores so that the highest feasible one becomes 100; with `reverse`, a score of 0 becomes 100.

    Division rounds down, as in Go. If the highest score is 0, all nodes get 0, or 100 with `reverse`.
    """
    # One value for all nodes (`uniform`), as TaintToleration's 0 without taints, needs no pass over the column. The
    # highest score is taken among feasible nodes; others may come out above 100, but are not read.
    are_equal = is_uniform(scores)
    best = max(scores.item(0), 0) if are_equal else int(scores[feasible].max(initial=0))
    if best == 0:
        return nodes.uniform(MAX_SCORE) if reverse else scores
    if are_equal:
        return nodes.uniform(0 if reverse else MAX_SCORE)
    scaled: Ints = scores * MAX_SCORE // best
    return MAX_SCORE - scaled if reverse else scaled
