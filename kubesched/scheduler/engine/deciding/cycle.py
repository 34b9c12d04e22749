"""One attempt for one pod: a pure function from pod, snapshot and profile to a decision.

In: the pod, a snapshot, its profile, who is nominated where, how to break ties. Out: an `Attempt`, which holds the
decision and everything it was made of, so that the scheduler, the dry run, the explanation and the golden cases read the
same thing. Nothing is booked, written or remembered here; what acts on a decision is elsewhere.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import msgspec
import numpy as np
from msgspec import Struct

from kubesched.errors import PluginError, PluginRaised, SchedulerError
from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot, Store
from kubesched.scheduler.engine.deciding.extenders import BareNodes, Extenders
from kubesched.scheduler.engine.deciding.sampling import Sampling
from kubesched.scheduler.engine.deciding.ties import Ties
from kubesched.scheduler.engine.records.decision_record import DecisionRecord
from kubesched.scheduler.framework.cycle_state import NODE_ALLOCATABLE, CycleState
from kubesched.scheduler.framework.equivalence_cache.cache import CachedAnswer, EquivalenceCache
from kubesched.scheduler.framework.grouping import GROUP_TURN, GroupTurn
from kubesched.scheduler.framework.level_rows import LevelRows
from kubesched.scheduler.framework.plugin import PostFiltered
from kubesched.scheduler.framework.ports import Nominations
from kubesched.scheduler.framework.runtime.blame import is_ctrl_c
from kubesched.scheduler.framework.runtime.profile import PreFiltered, Profile, Scores
from kubesched.scheduler.framework.runtime.with_nominated import (
    feasible_beside_nominated,
    filter_with_nominated,
    refuse_for_nominated,
)
from kubesched.scheduler.framework.verdicts import CLEAR, Decision, Diagnosis, Failed, Placed, Unschedulable, Verdicts

log = logging.getLogger(__name__)

FEW_NODES = 64
"""Up to so many nodes named by PreFilter are looked at on their own."""
NO_NODES = "no nodes available to schedule pods"


class Attempt(Struct):
    """A decision and how it came about."""

    pod: PodView
    nodes: Snapshot
    state: CycleState
    decision: Decision | None = None
    pre_filtered: PreFiltered | None = None
    verdicts: Verdicts | None = None
    feasible: Bools | None = None
    scores: Scores | None = None
    diagnosis: Diagnosis | None = None
    post_filtered: PostFiltered | None = None
    are_bare: bool = False
    """Whether an extender answered with whole nodes, which are then scored as if no pod were on them."""
    within: Bools | None = None
    """The nodes that are looked at, where not all are: a pod group is being tried in one of its placements."""
    totals: Ints | None = None
    """What the node was chosen by, below zero where one was refused; borrowed, and right until anything is booked."""
    recalled: CachedAnswer | None = None
    """What the totals are of, where they come from memory."""
    level: LevelRows | None = None
    """Which rows have the highest total; borrowed as the totals are."""
    row: int = -1
    """The row that was chosen by them."""
    seconds: float = 0.0
    """How long it took to decide."""
    record: DecisionRecord | None = None
    """What is kept of the decision, where decisions are recorded."""
    turn: GroupTurn | None = None
    """The turn of the pod's group in which it is tried; plugins find it in the state."""

    @property
    def n_nodes(self) -> int:
        """Return how many nodes are looked at."""
        return self.nodes.n if self.within is None else int(np.count_nonzero(self.within))


@dataclass(frozen=True, slots=True)
class Rules:
    """How an attempt is made, apart from what is decided: the same for all pods of a run."""

    ties: Ties
    nominations: Nominations | None = None
    preempts: bool = True
    percentage_of_nodes: int = 0
    """How many of the nodes are looked at, in percent, where a profile does not say; 0 and 100 mean all of them."""
    sampling: Sampling | None = None
    extenders: Extenders | None = None
    scores_single: bool = False
    """Score even when only one node is feasible; the reference does not, explanations and golden cases want it."""

    def percentage_for(self, profile: Profile) -> int:
        """Return how many percent of the nodes are looked at for a profile; 0 for all."""
        percentage = self.percentage_of_nodes if profile.percentage_of_nodes is None else profile.percentage_of_nodes
        return percentage if percentage < 100 else 0

    def may_recall(self, profile: Profile) -> bool:
        """Return whether a profile's pods may be decided from what is remembered, which is about all nodes: not where some are
        left out by lot or by extenders, nor where even a single node is scored."""
        return not (self.scores_single or self.extenders or self.percentage_for(profile))


_NOTHING_WRITTEN = CycleState()


def as_booked(pod: PodView, node_name: str, state: CycleState, store: Store) -> PodView:
    """Return a pod as it is counted on a node: with what its devices use up of the node."""
    found = state.find(NODE_ALLOCATABLE)
    statuses = found(node_name) if found is not None else ()
    if not statuses:
        return pod
    status = msgspec.structs.replace(pod.pod.status, node_allocatable_resource_claim_statuses=statuses)
    return store.view(msgspec.structs.replace(pod.pod, status=status))


def attempt(
    pod: PodView,
    nodes: Snapshot,
    profile: Profile,
    rules: Rules,
    memo: EquivalenceCache | None = None,
    within: Bools | None = None,
    turn: GroupTurn | None = None,
) -> Attempt:
    """Decide where a pod goes; with a memo, from what is remembered of the pod's class where that is possible. A memo is given
    only where it may be used at all (`Rules.may_recall`).

    `within` leaves only some of the nodes to Filter; PreFilter sees all of them. A member of a group knows its `turn`.
    """
    made = Attempt(pod, nodes, _NOTHING_WRITTEN, within=within, turn=turn)
    try:
        if within is not None or pod.template.named_nodes is not None:
            memo = None  # an answer about all nodes would be more than is asked for
        if memo is None or not _recall(made, profile, rules, memo):
            _decide(made, profile, rules)
    except PluginRaised:
        raise  # whoever runs the attempt tells who broke it
    except SchedulerError as error:
        made.decision = Failed(pod, str(error))
    return made


def _recall(made: Attempt, profile: Profile, rules: Rules, memo: EquivalenceCache) -> bool:
    """Decide from what is remembered; False if this pod needs the plain path.

    What is remembered is brought up to date by plugins' functions of single rows, which are called without being named:
    this is the hot path. One that breaks is found out on the plain path, where everybody is called by name, and a fault
    of the memory itself costs time and no pod.
    """
    try:
        is_decided = _decide_from_memory(made, profile, rules, memo)
    except SchedulerError:
        raise
    except BaseException as error:  # whatever a plugin raises: see above
        if is_ctrl_c(error):
            raise
        log.error("pod %s is decided without what is remembered, which broke: %r", made.pod.key, error, exc_info=error)
        made.pre_filtered = made.verdicts = made.feasible = made.diagnosis = made.post_filtered = None
        return False
    if is_decided and made.turn is not None:
        made.state.write(GROUP_TURN, made.turn)
    return is_decided


def _decide(made: Attempt, profile: Profile, rules: Rules) -> None:
    pod, nodes = made.pod, made.nodes
    state = made.state = CycleState()
    if made.turn is not None:
        state.write(GROUP_TURN, made.turn)
    if not made.n_nodes:
        made.decision = Unschedulable(pod, Diagnosis(0), CLEAR, NO_NODES)
        return
    made.pre_filtered = profile.pre_filter(pod, nodes, state)
    if _decide_among_few(made, profile, rules, made.pre_filtered):
        return
    find_feasible(made, profile, rules)
    feasible = made.feasible
    n_feasible = int(np.count_nonzero(feasible)) if feasible is not None else 0
    if feasible is None or not n_feasible:
        _give_up(made, profile, rules)
        return
    evaluated = _n_looked_at(nodes, made.verdicts.considered) if made.verdicts is not None else 1
    if n_feasible == 1 and not rules.scores_single:
        row = int(feasible.argmax())
    else:
        scored = BareNodes.of(nodes) if made.are_bare else nodes
        profile.pre_score(pod, scored, feasible, state)
        made.scores = profile.score(pod, scored, feasible, state)
        total = made.scores.total
        if rules.extenders:
            rules.extenders.prioritize(pod, nodes, feasible, total)
        made.totals, made.level = total, LevelRows(total)
        made.row = row = rules.ties.best(pod, total, nodes, made.level)
    made.decision = Placed(pod, nodes.name(row), evaluated, n_feasible)


def _decide_among_few(made: Attempt, profile: Profile, rules: Rules, before: PreFiltered) -> bool:
    """Decide among the few nodes that PreFilter named, as it does for every pod of a DaemonSet, as if there were no others:
    what that costs does not grow with the cluster. False if this pod is not so plain, or if none of them does: then all nodes
    are looked at, for their reasons."""
    pod, rows = made.pod, before.rows
    if rows is None or len(rows) > FEW_NODES or made.within is not None or pod.pod.status.nominated_node_name:
        return False
    if rules.scores_single or rules.extenders or rules.percentage_for(profile):
        return False
    some = made.nodes.take(rows)
    feasible = filter_with_nominated(profile, pod, some, made.state, None, rules.nominations).feasible
    n_feasible = int(np.count_nonzero(feasible))
    if not n_feasible:
        return False
    row = int(rows[int(feasible.argmax())])
    if n_feasible > 1:
        profile.pre_score(pod, some, feasible, made.state)
        totals = np.full(made.nodes.n, -1, dtype=np.int64)
        totals[rows] = profile.score(pod, some, feasible, made.state).total
        made.totals, made.level = totals, LevelRows(totals)
        made.row = row = rules.ties.best(pod, totals, made.nodes, made.level)
    made.decision = Placed(pod, made.nodes.name(row), len(rows), n_feasible)
    return True


def _decide_from_memory(made: Attempt, profile: Profile, rules: Rules, memo: EquivalenceCache) -> bool:
    """Decide from what is remembered; False if this pod needs the plain path."""
    pod, nodes = made.pod, made.nodes
    if not nodes.n or not profile.is_prepared:
        return False
    found = memo.find(pod, nodes)
    if found is None:
        return False
    key, of_class = found
    are_nominated = rules.nominations is not None and bool(rules.nominations.nodes())
    # Whether what was concluded for one pod of the class holds for all. A nominated pod is not counted against itself, so with
    # nominations about, it may not; nor for a member of a group that is judged as a whole: for it nobody seeks a way out.
    is_alike = rules.preempts and not pod.pod.status.nominated_node_name and not are_nominated
    if of_class is not None and of_class.unschedulable_at is not None and is_alike and made.turn is None:
        concluded = memo.unchanged_refusal(of_class, nodes)
        if concluded is not None:
            _refuse_alike(made, *concluded)
            return True
    try:
        recalled = memo.recall(pod, nodes, key, of_class, made.turn)
    except PluginRaised:
        raise
    except PluginError as error:
        if error.point != "Score":
            raise
        return False  # memory scores what the plain way may not: a single node that is left, for one
    if recalled is None:
        return False
    nominated = pod.pod.status.nominated_node_name
    row = nodes.row(nominated) if nominated else -1
    if row >= 0 and recalled.pre_filtered.considered is not None:
        return False  # it is tried even if it was left out, and what refuses it is told
    if row >= 0 and recalled.feasible[row]:
        only = np.zeros(nodes.n, dtype=np.bool_)
        only[row] = True
        if feasible_beside_nominated(profile, pod, nodes, recalled.state, rules.nominations, only) is only:
            made.state, made.pre_filtered, made.feasible = recalled.state, recalled.pre_filtered, only
            made.decision = Placed(pod, nominated, 1, 1)
            return True
    made.state, made.pre_filtered = recalled.state, recalled.pre_filtered
    is_any = recalled.n_feasible > 0
    if is_any and are_nominated:
        feasible = feasible_beside_nominated(profile, pod, nodes, recalled.state, rules.nominations, recalled.feasible)
        is_any = feasible is recalled.feasible or bool(feasible.any())
        if is_any and feasible is not recalled.feasible:
            return False  # fewer nodes are feasible than remembered, and their scores are relative to each other
    if is_any:
        level = made.level = LevelRows(recalled.totals)
        row = rules.ties.best(pod, recalled.totals, nodes, level)
        if recalled.n_feasible > 1:  # otherwise nothing was scored
            made.totals, made.recalled, made.row = recalled.totals, recalled, row
        rows = recalled.pre_filtered.rows
        made.decision = Placed(pod, nodes.name(row), nodes.n if rows is None else len(rows), recalled.n_feasible)
        return True
    _give_up_from_memory(made, profile, rules, recalled, is_alike)
    return True


def _refuse_alike(
    made: Attempt, state: CycleState, before: PreFiltered, diagnosis: Diagnosis, result: PostFiltered, wording: str
) -> None:
    made.state, made.pre_filtered, made.post_filtered = state, before, result
    made.diagnosis, made.verdicts = diagnosis, diagnosis.verdicts
    made.decision = Unschedulable(made.pod, diagnosis, result.nomination, wording)


def _n_looked_at(nodes: Snapshot, considered: Bools | None) -> int:
    return nodes.n if considered is None else int(np.count_nonzero(considered))


def _give_up_from_memory(made: Attempt, profile: Profile, rules: Rules, recalled: CachedAnswer, is_alike: bool) -> None:
    """Conclude that no node does; or find that the same was concluded for the class, and nothing has changed."""
    pod, nodes, of_class = made.pod, made.nodes, recalled.of_class
    verdict_version, cluster_version = (
        (recalled.verdict_version(), recalled.cluster_version(nodes)) if is_alike else (None, None)
    )
    known = of_class.unschedulable_result
    if is_alike and known is not None and known[0] in (verdict_version, cluster_version):
        of_class.unschedulable_at = cluster_version
        _refuse_alike(made, *known[1])
        return
    diagnosis = made.diagnosis = Diagnosis(nodes.n)
    diagnosis.unschedulable_plugins |= recalled.pre_filtered.narrowed_by
    if recalled.pre_filtered.considered is not None:
        diagnosis.absent = recalled.pre_filtered.absent
    made.verdicts = diagnosis.verdicts = recalled.verdicts(profile, nodes)
    refuse_for_nominated(profile, pod, nodes, made.state, rules.nominations, made.verdicts)
    _give_up(made, profile, rules)
    result, decision = made.post_filtered, made.decision
    if result is None or not isinstance(decision, Unschedulable):
        return
    known_by = verdict_version if result.is_settled and verdict_version is not None else cluster_version
    if known_by is not None and result.preemption is None and result.follow_up is None:
        of_class.unschedulable_result = known_by, (made.state, made.pre_filtered, diagnosis, result, decision.message)
        of_class.unschedulable_at = cluster_version


def find_feasible(made: Attempt, profile: Profile, rules: Rules) -> None:
    """Run PreFilter and Filter; on return `made.feasible` says which nodes pass."""
    pod, nodes, state = made.pod, made.nodes, made.state
    if made.pre_filtered is None:
        made.pre_filtered = profile.pre_filter(pod, nodes, state)
    before = made.pre_filtered
    diagnosis = made.diagnosis = Diagnosis(made.n_nodes)
    diagnosis.unschedulable_plugins |= before.narrowed_by
    if before.status is not None:
        diagnosis.absent = before.status
        diagnosis.pre_filter_message = before.status.message
        if before.status.plugin:
            diagnosis.unschedulable_plugins.add(before.status.plugin)
        return
    considered = before.considered
    if considered is not None:
        diagnosis.absent = before.absent
    if made.within is not None:
        considered = made.within if considered is None else considered & made.within
    nominated = pod.pod.status.nominated_node_name
    if nominated and _fits_nominated(made, profile, rules, nodes.row(nominated), considered):
        return
    made.verdicts = verdicts = filter_with_nominated(profile, pod, nodes, state, considered, rules.nominations)
    percentage = rules.percentage_for(profile)
    if percentage and rules.sampling is not None:
        rules.sampling.limit(verdicts, percentage)
    made.feasible = verdicts.feasible
    diagnosis.verdicts = verdicts
    if rules.extenders:
        made.feasible, made.are_bare = rules.extenders.filter(pod, nodes, made.feasible, diagnosis)


def _fits_nominated(made: Attempt, profile: Profile, rules: Rules, row: int, considered: Bools | None) -> bool:
    """Try the nominated node alone; if it does, nothing else is looked at. It is tried even if PreFilter left it out, and
    then what refuses it stands in the diagnosis."""
    if row < 0 or (made.within is not None and not made.within[row]):
        return False
    only = np.zeros(made.nodes.n, dtype=np.bool_)
    only[row] = True
    one = made.nodes.take([row])
    verdicts = filter_with_nominated(profile, made.pod, one, made.state, None, rules.nominations)
    assert made.diagnosis is not None
    if not verdicts.feasible[0]:
        refused = verdicts.status(0)
        if considered is not None and not considered[row]:
            made.diagnosis.extra[made.nodes.name(row)] = refused
            made.diagnosis.unschedulable_plugins.add(refused.plugin)
        if made.pre_filtered is not None and made.pre_filtered.narrowed_by:
            made.pre_filtered = made.pre_filtered.with_nominated_refused(refused.plugin)
            made.diagnosis.absent = made.pre_filtered.absent
        return False
    if rules.extenders:
        only, made.are_bare = rules.extenders.filter(made.pod, made.nodes, only, made.diagnosis)
        if not only.any():
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
    nomination = CLEAR if rules.preempts and not profile.post_filters else None
    if rules.preempts and profile.post_filters:
        made.post_filtered = result = profile.post_filter(made.pod, made.nodes, made.state, diagnosis)
        diagnosis.post_filter_message = result.status.message
        nomination = result.nomination
    wording = profile.word(made.pod, diagnosis) if profile.word is not None else ""
    made.decision = Unschedulable(made.pod, diagnosis, nomination, wording)
