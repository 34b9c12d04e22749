"""Decide among the few nodes that PreFilter named, as if there were no others. Pods of a DaemonSet name one node each.

In: a question, and what PreFilter left. Out: an attempt that found a node; or None if the pod needs more than that, or none of
these nodes is feasible. Then `all_nodes` decides, for the reasons of all nodes. The cost does not grow with the cluster.
"""

from __future__ import annotations

import numpy as np

from kubesched.scheduler.engine.deciding.attempt import Attempt, Question, Ranking
from kubesched.scheduler.framework import CycleState, LevelRows, Placed, PreFiltered, filter_with_nominated

FEW_NODES = 64
"""Up to so many nodes named by PreFilter are looked at on their own."""


def decide(asked: Question, state: CycleState, before: PreFiltered) -> Attempt | None:
    """Return the attempt if one of the few nodes takes the pod."""
    pod, nodes, profile, rules, rows = asked.pod, asked.nodes, asked.profile, asked.rules, before.rows
    # A nominated pod is left to `all_nodes`, which tries its node alone and names what refuses it.
    if rows is None or len(rows) > FEW_NODES or asked.within is not None or pod.pod.status.nominated_node_name:
        return None
    if rules.scores_single or rules.extenders or rules.percentage_for(profile):
        return None
    # A view of these rows: columns of 1 row instead of 10,000. Filters cannot tell the difference.
    some = nodes.take(rows)
    feasible = filter_with_nominated(profile, pod, some, state, None, rules.nominations).feasible
    n_feasible = int(np.count_nonzero(feasible))
    if not n_feasible:
        return None
    row, ranking = int(rows[int(feasible.argmax())]), None
    if n_feasible > 1:
        profile.pre_score(pod, some, feasible, state)
        # Ties are broken over all rows, with -1 for nodes that are out. On the few rows alone the seed would choose another one
        # of several best nodes than `all_nodes` does.
        totals = np.full(nodes.n, -1, dtype=np.int64)
        totals[rows] = profile.score(pod, some, feasible, state).total
        level = LevelRows(totals)
        row = rules.ties.best(pod, totals, nodes, level)
        ranking = Ranking(totals, level, row)
    return Attempt(asked, Placed(pod, nodes.name(row), len(rows), n_feasible), state, before, ranking=ranking)
