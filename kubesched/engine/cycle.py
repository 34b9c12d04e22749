"""One attempt for one pod: a pure function from pod, snapshot and profile to a decision.

In: the pod, a snapshot, its profile, who is nominated where, how to break ties. Out: an `Attempt`, which holds the
decision and everything it was made of, so that the scheduler, the dry run, the explanation and the golden cases read the
same thing. Nothing is booked, written or remembered here; what acts on a decision is elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kubesched.cluster import Bools, Ints, PodView, Snapshot
from kubesched.errors import SchedulerError
from kubesched.framework.plugin import PostFiltered
from kubesched.framework.ports import Nominations
from kubesched.framework.profile import PreFiltered, Profile, Scores
from kubesched.framework.state import State
from kubesched.framework.verdicts import CLEAR, Decision, Diagnosis, Failed, Placed, Unschedulable, Verdicts
from kubesched.framework.whatif import filter_with_nominated

NO_NODES = "no nodes available to schedule pods"

Ties = Callable[[Ints, Snapshot], int]
"""(rows with the highest total, snapshot) -> the row to take"""


@dataclass(slots=True)
class Attempt:
    """A decision and how it came about."""

    pod: PodView
    nodes: Snapshot
    state: State
    decision: Decision | None = None
    pre_filtered: PreFiltered | None = None
    verdicts: Verdicts | None = None
    feasible: Bools | None = None
    scores: Scores | None = None
    diagnosis: Diagnosis | None = None
    post_filtered: PostFiltered | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """How an attempt is made, apart from what is decided: the same for all pods of a run."""

    ties: Ties
    nominations: Nominations | None = None
    preempts: bool = True
    scores_single: bool = False
    """Score even when only one node is feasible; the reference does not, explanations and golden cases want it."""


def attempt(pod: PodView, nodes: Snapshot, profile: Profile, rules: Rules) -> Attempt:
    """Decide where a pod goes."""
    made = Attempt(pod, nodes, State())
    try:
        _decide(made, profile, rules)
    except SchedulerError as error:
        made.decision = Failed(pod, str(error))
    return made


def _decide(made: Attempt, profile: Profile, rules: Rules) -> None:
    pod, nodes, state = made.pod, made.nodes, made.state
    if not nodes.n:
        made.decision = Unschedulable(pod, Diagnosis(0), CLEAR, NO_NODES)
        return
    find_feasible(made, profile, rules)
    feasible = made.feasible
    if feasible is None or not feasible.any():
        _give_up(made, profile, rules)
        return
    n_feasible = int(np.count_nonzero(feasible))
    evaluated = nodes.n if made.verdicts is None else n_feasible + int(np.count_nonzero(made.verdicts.owner >= 0))
    if n_feasible == 1 and not rules.scores_single:
        row = int(np.flatnonzero(feasible)[0])
    else:
        profile.pre_score(pod, nodes, feasible, state)
        made.scores = profile.score(pod, nodes, feasible, state)
        total = made.scores.total
        row = rules.ties(np.flatnonzero(total == total.max()), nodes)
    made.decision = Placed(pod, nodes.name(row), evaluated, n_feasible)


def find_feasible(made: Attempt, profile: Profile, rules: Rules) -> None:
    """Run PreFilter and Filter; on return `made.feasible` says which nodes pass."""
    pod, nodes, state = made.pod, made.nodes, made.state
    made.pre_filtered = before = profile.pre_filter(pod, nodes, state)
    diagnosis = made.diagnosis = Diagnosis(nodes.n)
    diagnosis.unschedulable_plugins |= before.narrowed_by
    if before.status is not None:
        diagnosis.absent = before.status
        diagnosis.pre_filter_message = before.status.message
        if before.status.plugin:
            diagnosis.unschedulable_plugins.add(before.status.plugin)
        return
    if before.considered is not None:
        diagnosis.absent = before.absent
    nominated = pod.pod.status.nominated_node_name
    if nominated and _fits_nominated(made, profile, rules, nodes.row(nominated)):
        return
    made.verdicts = verdicts = filter_with_nominated(profile, pod, nodes, state, before.considered, rules.nominations)
    made.feasible = verdicts.feasible
    diagnosis.verdicts = verdicts


def _fits_nominated(made: Attempt, profile: Profile, rules: Rules, row: int) -> bool:
    """Try the nominated node alone; if it does, nothing else is looked at."""
    if row < 0:
        return False
    only = np.zeros(made.nodes.n, dtype=np.bool_)
    only[row] = True
    one = made.nodes.take([row])
    verdicts = filter_with_nominated(profile, made.pod, one, made.state, None, rules.nominations)
    if not verdicts.feasible[0]:
        return False
    made.feasible = only
    return True


def _give_up(made: Attempt, profile: Profile, rules: Rules) -> None:
    diagnosis = made.diagnosis
    assert diagnosis is not None
    if made.verdicts is not None:
        refusing, pending = made.verdicts.plugins()
        diagnosis.unschedulable_plugins |= refusing
        diagnosis.pending_plugins |= pending
    nomination = CLEAR if not profile.post_filters else None
    if rules.preempts and profile.post_filters:
        made.post_filtered = result = profile.post_filter(made.pod, made.nodes, made.state, diagnosis)
        diagnosis.post_filter_message = result.status.message
        nomination = result.nomination
    made.decision = Unschedulable(made.pod, diagnosis, nomination)
