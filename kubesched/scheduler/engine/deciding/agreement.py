"""Agreement: another scheduler's choice for a pod, judged by our own decision on the same state. A pure function.

In: the pod as it waited, a snapshot, its profile, and the node that the other scheduler chose. Out: a `Comparison`: the same
node; another of our best nodes; the best of a sample of the nodes, where the other scheduler looks at some of them only; or
a real difference: a lower score, by how much and by whose scores, or a node that we refuse, and who refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from kubesched.errors import PluginError
from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot
from kubesched.scheduler.engine.deciding.attempt import Attempt, Rules
from kubesched.scheduler.engine.deciding.cycle import attempt
from kubesched.scheduler.engine.deciding.sampling import adaptive_percentage, n_wanted
from kubesched.scheduler.engine.deciding.ties import best_rows
from kubesched.scheduler.framework import Failed, Placed, Profile

UNKNOWN_NODE = "the node is not known"
_WORKERS = 16
"""How many nodes the reference looks at side by side, by default."""


class Agreement(StrEnum):
    """How another scheduler's choice compares with ours."""

    SAME = "same"
    TIE = "tie"
    SAMPLED = "sampled"
    WORSE = "worse"
    INFEASIBLE = "infeasible"
    FAILED = "failed"
    """Our own attempt broke, which says nothing about the other's choice."""

    @property
    def is_agreement(self) -> bool:
        """Return whether a scheduler of our configuration could have chosen so."""
        return self in (Agreement.SAME, Agreement.TIE, Agreement.SAMPLED)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was chosen, what we would have chosen, and how far apart that is."""

    kind: Agreement
    chosen: str
    ours: str = ""
    """Our node; empty if none would do."""
    behind: int = 0
    """By how much the chosen node's total is below the best."""
    by_plugin: dict[str, int] = field(default_factory=dict)
    """Where that comes from: our node's weighted score less the chosen node's, where they differ. Its sum is `behind`."""
    refused_by: str = ""
    reasons: tuple[str, ...] = ()
    n_feasible: int = 0
    n_best: int = 0


def compare(pod: PodView, nodes: Snapshot, profile: Profile, rules: Rules, chosen: str, *, percentage: int = 100) -> Comparison:
    """Judge the choice of a node for a pod that has none. `rules` say how ties are broken and who is nominated; nobody is
    evicted, extenders are not asked. `percentage` is the other scheduler's percentageOfNodesToScore: 100 for all nodes, 0
    for what kube-scheduler takes where nobody says."""
    plain = Rules(rules.ties, rules.nominations, preempts=False, scores_single=True)
    try:
        return _judged(attempt(pod, nodes, profile, plain), profile, chosen, percentage)
    except PluginError as error:
        return Comparison(Agreement.FAILED, chosen, reasons=(str(error),))


def _judged(made: Attempt, profile: Profile, chosen: str, percentage: int) -> Comparison:
    decision, feasible, row = made.decision, made.feasible, made.nodes.row(chosen)
    if isinstance(decision, Failed):
        return Comparison(Agreement.FAILED, chosen, reasons=(decision.message,))
    ours = decision.node_name if isinstance(decision, Placed) else ""
    n_feasible = 0 if feasible is None else int(np.count_nonzero(feasible))
    if row < 0 or feasible is None or not feasible[row]:
        refused_by, reasons = _refusal(made, row)
        return Comparison(Agreement.INFEASIBLE, chosen, ours, refused_by=refused_by, reasons=reasons, n_feasible=n_feasible)
    assert made.scores is not None
    total = made.scores.total
    best, ours_row = best_rows(total), made.nodes.row(ours)
    behind = int(total[ours_row] - total[row])
    kind = Agreement.SAME if row == ours_row else Agreement.TIE if row in best else Agreement.WORSE
    if kind is Agreement.WORSE and _is_best_of_a_sample(made, profile, row, percentage):
        kind = Agreement.SAMPLED
    apart = {name: int(column[ours_row] - column[row]) for name, column in made.scores.by_plugin.items()}
    by_plugin = {name: points for name, points in apart.items() if points} if behind else {}
    return Comparison(kind, chosen, ours, behind, by_plugin, n_feasible=n_feasible, n_best=len(best))


def _refusal(made: Attempt, row: int) -> tuple[str, tuple[str, ...]]:
    """Return who refuses a row, and why."""
    if row < 0:
        return "", (UNKNOWN_NODE,)
    before = made.pre_filtered
    if before is not None and before.status is not None:
        return before.status.plugin, before.status.reasons
    if made.verdicts is not None and made.verdicts.owner[row] >= 0:
        status = made.verdicts.status(row)
        return status.plugin, status.reasons
    if before is not None and before.considered is not None and not before.considered[row]:
        return ", ".join(sorted(before.narrowed_by)), before.absent.reasons
    return "", (f"the pod is nominated to {made.pod.pod.status.nominated_node_name}, which takes it",)


def _is_best_of_a_sample(made: Attempt, profile: Profile, row: int, percentage: int) -> bool:
    """Return whether a row is the best of some nodes that a search for a part of them could have found.

    The reference goes round the nodes from anywhere, with several workers that each take a run of them at a time, and stops
    when enough feasible nodes are found. Which ones these were is chance; that they lie close together is not. Scores are
    relative to the nodes that were found, so the sample is scored on its own.
    """
    nodes, feasible, scores = made.nodes, made.feasible, made.scores
    assert feasible is not None and scores is not None
    # The steps, for 1,000 nodes of which 420 feasible ones were wanted:
    #   order        the nodes in the order in which kube-scheduler goes round them
    #   no_better    feasible, with a total not above the chosen node's
    #   reach        how long a run it takes to find 420 feasible nodes, and what its workers look at beyond that
    #   run          the run with the chosen node in it that has most such nodes
    # If the run has 420 of them, a search could have found just these, and the chosen node would be the best of them. They are
    # scored once more on their own, because normalising depends on which nodes are there.
    order = np.array([nodes.row(name) for name in nodes.order.names], dtype=np.int64)
    if made.pre_filtered is not None and made.pre_filtered.considered is not None:
        order = order[made.pre_filtered.considered[order]]
    n = len(order)
    wanted = n_wanted(n, percentage or adaptive_percentage(n))
    n_feasible = int(np.count_nonzero(feasible))
    if wanted >= n_feasible:
        return False
    no_better: Bools = feasible[order] & (scores.total[order] <= scores.total[row])
    reach = min(n, -(-wanted * n // n_feasible) + _WORKERS * min(int(n**0.5), n // _WORKERS + 1))
    run = _best_run(no_better, int(np.flatnonzero(order == row)[0]), reach)
    found = order[run[no_better[run]]]
    if len(found) < wanted:
        return False
    sample: Bools = np.zeros(nodes.n, dtype=np.bool_)
    sample[found[found != row][: wanted - 1]] = True
    sample[row] = True
    state = made.state.clone()
    profile.pre_score(made.pod, nodes, sample, state)
    return row in best_rows(profile.score(made.pod, nodes, sample, state).total)


def _best_run(wanted: Bools, place: int, length: int) -> Ints:
    """Return the places of the run of a length, going round, that has a place in it and most of what is wanted."""
    n = len(wanted)
    sums = np.concatenate(([0], np.cumsum(np.tile(wanted, 3))))
    starts = n + place - np.arange(length)
    start = int(starts[int(np.argmax(sums[starts + length] - sums[starts]))])
    return np.arange(start, start + length) % n
