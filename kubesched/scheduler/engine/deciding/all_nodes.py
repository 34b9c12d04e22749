"""Decide by calling every plugin for every node: PreFilter, Filter, Score; or PostFilter if no node is left.

In: a question, and the nodes that PreFilter left. Out: the attempt. This way has no condition. It decides all pods that the
other two ways leave to it, and those must decide as it does.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from kubesched.scheduler.cluster import Bools
from kubesched.scheduler.engine.deciding.attempt import Attempt, Question, Ranking
from kubesched.scheduler.engine.deciding.extenders import BareNodes
from kubesched.scheduler.engine.deciding.no_node import give_up
from kubesched.scheduler.framework import CycleState, Diagnosis, LevelRows, Placed, PreFiltered, filter_with_nominated


class Filtered(Struct, frozen=True):
    """Which nodes are left after Filter."""

    pre_filtered: PreFiltered
    diagnosis: Diagnosis
    feasible: Bools | None = None
    """None where PreFilter refuses the pod on every node."""
    are_bare: bool = False
    """Whether an extender answered with whole nodes, which are then scored as if no pod were on them."""


def decide(asked: Question, state: CycleState, before: PreFiltered) -> Attempt:
    """Return the attempt."""
    pod, nodes, profile, rules = asked.pod, asked.nodes, asked.profile, asked.rules
    found = filter_nodes(asked, state, before)
    before, diagnosis, feasible = found.pre_filtered, found.diagnosis, found.feasible
    n_feasible = int(np.count_nonzero(feasible)) if feasible is not None else 0
    if feasible is None or not n_feasible:
        return give_up(asked, state, before, diagnosis, feasible)
    scores = ranking = None
    # As in kube-scheduler: a single feasible node is taken without PreScore and Score.
    if n_feasible == 1 and not rules.scores_single:
        row = int(feasible.argmax())
    else:
        scored = BareNodes.of(nodes) if found.are_bare else nodes
        profile.pre_score(pod, scored, feasible, state)
        scores = profile.score(pod, scored, feasible, state)
        if rules.extenders:
            rules.extenders.prioritize(pod, nodes, feasible, scores.total)
        level = LevelRows(scores.total)
        row = rules.ties.best(pod, scores.total, nodes, level)
        ranking = Ranking(scores.total, level, row)
    verdicts = diagnosis.verdicts
    if verdicts is None:
        evaluated = 1  # the nominated node, which was tried alone
    else:
        evaluated = nodes.n if verdicts.considered is None else int(np.count_nonzero(verdicts.considered))
    decision = Placed(pod, nodes.name(row), evaluated, n_feasible)
    return Attempt(asked, decision, state, before, diagnosis, feasible, scores, ranking)


def filter_nodes(asked: Question, state: CycleState, before: PreFiltered) -> Filtered:
    """Run Filter on the nodes that PreFilter left. A node that the pod is nominated to is tried first, and alone: if it does,
    nothing else is looked at."""
    pod, nodes, profile, rules, within = asked.pod, asked.nodes, asked.profile, asked.rules, asked.within
    diagnosis = Diagnosis(asked.n_nodes)
    # A plugin that named nodes refuses all others. So the pod also waits for the events of that plugin.
    diagnosis.unschedulable_plugins |= before.narrowed_by
    if before.status is not None:
        diagnosis.absent = before.status
        diagnosis.pre_filter_message = before.status.message
        if before.status.plugin:
            diagnosis.unschedulable_plugins.add(before.status.plugin)
        return Filtered(before, diagnosis)
    considered = before.considered
    if considered is not None:
        diagnosis.absent = before.absent
    if within is not None:
        considered = within if considered is None else considered & within
    feasible: Bools
    are_bare = False
    nominated = pod.pod.status.nominated_node_name
    row = nodes.row(nominated) if nominated else -1
    if row >= 0 and (within is None or within[row]):
        # Why alone: victims on this node are leaving to make room for this pod. If it were scored against the others it might
        # go elsewhere, and the evictions would be for nothing.
        verdicts = filter_with_nominated(profile, pod, nodes.take([row]), state, None, rules.nominations)
        if verdicts.feasible[0]:
            feasible = np.zeros(nodes.n, dtype=np.bool_)
            feasible[row] = True
            if rules.extenders:
                feasible, are_bare = rules.extenders.filter(pod, nodes, feasible, diagnosis)
            if feasible.any():
                return Filtered(before, diagnosis, feasible, are_bare)
        else:
            refused = verdicts.status(0)
            # Kept quirk: the nominated node is tried even if PreFilter left it out, and its refusal stays in the diagnosis and
            # in the message.
            if considered is not None and not considered[row]:  # it was tried although PreFilter left it out
                diagnosis.extra[nodes.name(row)] = refused
                diagnosis.unschedulable_plugins.add(refused.plugin)
            if before.narrowed_by:
                before = before.with_nominated_refused(refused.plugin)
                diagnosis.absent = before.absent
    diagnosis.verdicts = verdicts = filter_with_nominated(profile, pod, nodes, state, considered, rules.nominations)
    percentage = rules.percentage_for(profile)
    # Filter has computed all nodes. The limit only hides those that kube-scheduler would not have reached, so that counts and
    # messages match.
    if percentage and rules.sampling is not None:
        rules.sampling.limit(verdicts, percentage)
    feasible = verdicts.feasible
    if rules.extenders:
        feasible, are_bare = rules.extenders.filter(pod, nodes, feasible, diagnosis)
    return Filtered(before, diagnosis, feasible, are_bare)
