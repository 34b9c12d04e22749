"""Decide from what is cached of the pod's equivalence class.

In: a question, and the cache of its profile. Out: the attempt that calling every plugin would give; or None, and then
`few_nodes` or `all_nodes` decides.

Pods of a class that no node takes are answered even faster. The first one is decided in full, with PostFilter, and its result
is kept in the class. It is used again while nothing in the cluster changed, or while no verdict changed and PostFilter's answer
follows from the verdicts alone. With 1,000 pending replicas the cluster is searched for victims once, not 1,000 times.
"""

from __future__ import annotations

import logging

import numpy as np

from kubesched.errors import PluginError, PluginRaised, SchedulerError
from kubesched.scheduler.cluster import Bools
from kubesched.scheduler.engine.deciding.attempt import Attempt, Question, Ranking
from kubesched.scheduler.engine.deciding.no_node import give_up
from kubesched.scheduler.framework import (
    GROUP_TURN,
    CachedAnswer,
    CycleState,
    Diagnosis,
    EquivalenceCache,
    LevelRows,
    Placed,
    PostFiltered,
    PreFiltered,
    Unschedulable,
    feasible_beside_nominated,
    is_ctrl_c,
    refuse_for_nominated,
)

log = logging.getLogger(__name__)


def decide(asked: Question, cache: EquivalenceCache) -> Attempt | None:
    """Return the attempt if what is cached is about these nodes, and the pod is one that it holds for.

    Plugins are asked about changed rows without being named: this is the hot path. A plugin that breaks is named where all
    nodes are asked about. A fault of the cache itself costs time and no pod.
    """
    pod = asked.pod
    if asked.within is not None or pod.template.named_nodes is not None:
        return None  # an answer about all nodes would be more than is asked for
    if not asked.nodes.n or not asked.profile.is_prepared:
        return None
    try:
        made = _decide(asked, cache)
    except SchedulerError:
        raise
    except BaseException as error:  # whatever a plugin raises: see above
        if is_ctrl_c(error):
            raise
        log.error("pod %s is decided without what is remembered, which broke: %r", pod.key, error, exc_info=error)
        return None
    if made is not None and asked.turn is not None:
        made.state.write(GROUP_TURN, asked.turn)
    return made


def _decide(asked: Question, cache: EquivalenceCache) -> Attempt | None:
    pod, nodes, profile, rules = asked.pod, asked.nodes, asked.profile, asked.rules
    # From here on there are four results:
    #   the class was refused, nothing changed   the same refusal again
    #   the nominated node fits                  that node, as in `all_nodes`
    #   some node is feasible                    the best one by the cached totals
    #   None                                     this pod is a case that the cache does not cover
    key = cache.find(pod, nodes)
    if key is None:
        return None
    nominated = pod.pod.status.nominated_node_name
    are_nominated = rules.nominations is not None and bool(rules.nominations.nodes())
    # Whether what was concluded for one pod of the class holds for all. A nominated pod is not counted against itself, so with
    # nominations about, it may not; nor for a member of a group that is judged as a whole: for it nobody seeks a way out.
    is_alike = rules.preempts and not nominated and not are_nominated
    if is_alike and asked.turn is None and (concluded := cache.unchanged_refusal(key, nodes)) is not None:
        return _refused_alike(asked, *concluded)
    try:
        recalled = cache.recall(key, pod, nodes, asked.turn)
    except PluginRaised:
        raise
    except PluginError as error:
        if error.point != "Score":
            raise
        return None  # the cache scores what the plain way may not: a single node that is left, for one
    if recalled is None:
        return None
    state, before = recalled.state, recalled.pre_filtered
    row = nodes.row(nominated) if nominated else -1
    if row >= 0 and before.considered is not None:
        return None  # it is tried even if it was left out, and what refuses it is told
    if row >= 0 and recalled.feasible[row]:
        only: Bools = np.zeros(nodes.n, dtype=np.bool_)
        only[row] = True
        # `is only`: the function returns the very array that it was given if no node dropped out.
        if feasible_beside_nominated(profile, pod, nodes, state, rules.nominations, only) is only:
            return Attempt(asked, Placed(pod, nominated, 1, 1), state, before, feasible=only)
    is_any = recalled.n_feasible > 0
    if is_any and are_nominated:
        feasible = feasible_beside_nominated(profile, pod, nodes, state, rules.nominations, recalled.feasible)
        if feasible is not recalled.feasible:
            if feasible.any():
                return None  # fewer nodes are feasible than cached, and their scores are relative to each other
            is_any = False
    if not is_any:
        return _give_up(asked, recalled, is_alike)
    level = LevelRows(recalled.totals)
    row = rules.ties.best(pod, recalled.totals, nodes, level)
    ranking = Ranking(recalled.totals, level, row, recalled) if recalled.n_feasible > 1 else None  # one is not scored
    decision = Placed(pod, nodes.name(row), nodes.n if before.rows is None else len(before.rows), recalled.n_feasible)
    return Attempt(asked, decision, state, before, ranking=ranking)


def _give_up(asked: Question, recalled: CachedAnswer, is_alike: bool) -> Attempt:
    """Conclude that no node does; or find that the same was concluded for the class, and nothing has changed."""
    nodes, profile, of_class = asked.nodes, asked.profile, recalled.of_class
    verdict_version, cluster_version = (
        (recalled.verdict_version(), recalled.cluster_version(nodes)) if is_alike else (None, None)
    )
    # Known by one of two versions. `verdict_version` stays the same while no filter's answer changed, even if pods came and
    # went. It may be used only if PostFilter reads nothing but verdicts (`is_settled`). `cluster_version` changes with every
    # change of the cluster.
    known = of_class.unschedulable_result
    if is_alike and known is not None and known[0] in (verdict_version, cluster_version):
        of_class.unschedulable_at = cluster_version
        return _refused_alike(asked, *known[1])
    diagnosis = Diagnosis(nodes.n)
    diagnosis.unschedulable_plugins |= recalled.pre_filtered.narrowed_by
    if recalled.pre_filtered.considered is not None:
        diagnosis.absent = recalled.pre_filtered.absent
    diagnosis.verdicts = verdicts = recalled.verdicts(profile, nodes)
    refuse_for_nominated(profile, asked.pod, nodes, recalled.state, asked.rules.nominations, verdicts)
    made = give_up(asked, recalled.state, recalled.pre_filtered, diagnosis)
    result, decision = made.post_filtered, made.decision
    # A result with victims or a follow-up is for one pod: the next pod must not evict the same victims again.
    if result is not None and result.preemption is None and result.follow_up is None:
        known_by = verdict_version if result.is_settled and verdict_version is not None else cluster_version
        if known_by is not None:
            assert isinstance(decision, Unschedulable)
            of_class.unschedulable_result = known_by, (made.state, made.pre_filtered, diagnosis, result, decision.message)
            of_class.unschedulable_at = cluster_version
    return made


def _refused_alike(
    asked: Question, state: CycleState, before: PreFiltered, diagnosis: Diagnosis, result: PostFiltered, wording: str
) -> Attempt:
    """Return the attempt of a pod for which the same holds as was concluded for another one of its class."""
    decision = Unschedulable(asked.pod, diagnosis, result.nomination, wording)
    return Attempt(asked, decision, state, before, diagnosis, post_filtered=result)
