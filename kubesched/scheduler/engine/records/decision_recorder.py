"""The recorder: makes a decision record from every attempt, while the attempt's columns are still valid.

A fast engine cannot spend much on each record, so there are three levels:

    every decision        what the attempt has anyway: node, totals, margin
    at most every 2 ms    nodes with equal totals and refused nodes are counted, which takes some microseconds
    0.5 % of the time     all scores of the best nodes, by deciding once more

With a real API server, which takes some hundred pods a second, every record has the second level. The recorder decides and
books nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
from msgspec import Struct

from kubesched.errors import PluginError, SchedulerError
from kubesched.kube.api import Node
from kubesched.scheduler.cluster import Ints, Snapshot
from kubesched.scheduler.engine.deciding.all_nodes import filter_nodes
from kubesched.scheduler.engine.deciding.attempt import Attempt, Question, Rules
from kubesched.scheduler.engine.deciding.cycle import attempt
from kubesched.scheduler.engine.deciding.failure import Failure
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.engine.handle import SystemClock
from kubesched.scheduler.engine.records.decision_record import (
    ERROR,
    NOMINATED,
    ONLY,
    PLACED,
    PREEMPTED,
    SCORE,
    UNSCHEDULABLE,
    DecisionRecord,
    DecisionRing,
    PreemptionRecord,
    ScoreTable,
)
from kubesched.scheduler.engine.records.node_changes import NodeChanges
from kubesched.scheduler.engine.records.refusal_tally import RefusalCount, RefusalTally, Refused
from kubesched.scheduler.engine.records.refusals import refusals_of
from kubesched.scheduler.framework import Clock, CycleState, Failed, NodeAnswers, Placed, Profile, Scores
from kubesched.scheduler.queue import QueuedPod

SHARE = 0.005
"""Which share of the time may be used for records with all scores."""
PAUSE_SECONDS = 0.002
"""The shortest time between two counts of nodes, of those with equal totals and of those refused."""
TOP = 5
EXTENDERS = "extenders"
"""The name in a score table for what extenders added to a total."""
_MOST_KEPT = 64

Listener = Callable[[DecisionRecord], None]


class Tried(Struct, frozen=True):
    """A queued pod, the profile and time of its attempt, and the attempt itself, unless that broke."""

    queued: QueuedPod
    profile: Profile
    started: float
    made: Attempt | None = None
    seconds: float = 0.0
    """How long it took to decide."""
    record: DecisionRecord | None = None
    """The record of the decision, if it was made already."""


class DecisionRecorder:
    """Keeps the newest decisions."""

    def __init__(self, size: int, *, share: float = SHARE) -> None:
        """Keep `size` records. With a `share` of 1 or more every record has everything."""
        self.ring = DecisionRing(size)
        self.node_changes = NodeChanges()
        """The newest changes of nodes, which explain decisions too."""
        self.listeners: list[Listener] = []
        """Called with every record once it is complete. They must be quick and must not raise."""
        self.attach(Rules(SeededTies()), SystemClock())
        self.idle_until = 0.0
        """No record gets all scores before this time (`clock.monotonic`)."""
        self._share = share
        self._pause = PAUSE_SECONDS if share < 1 else 0.0
        self._counted_at = 0.0
        """When nodes were last counted (`clock.now`)."""

    def attach(self, rules: Rules, clock: Clock) -> None:
        """Record for an engine with these rules. An engine before it, as at a reload, is done; its counts are dropped."""
        self._rules, self._clock, self._now, self._chooser = rules, clock, clock.now, rules.ties.chooser
        self._tallies: dict[int, NodeAnswers | RefusalTally] = {}
        """By the id of cached answers: the answers themselves after their first pod, a tally from the second pod on."""
        self._last_diagnosis: tuple[object, tuple[RefusalCount, ...]] = (None, ())

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        """Keep what changed about a node."""
        self.node_changes.take(old, new, self._now())

    # While the attempt's columns are valid

    def take(self, made: Attempt, seconds: float, now: float) -> DecisionRecord | None:
        """Make the record of an attempt before anything is booked; `now` is `clock.monotonic`.

        Return None for most placed pods: `placed` makes their record a moment later. A member of a group gets its record now,
        because the members after it change the columns.
        """
        is_in_full = now >= self.idle_until
        if not is_in_full and made.asked.turn is None and isinstance(made.decision, Placed):
            return None
        record = self.record_of(made, seconds)
        if is_in_full:
            began = self._clock.monotonic()
            self._work_out(record, made)
            self._rest_after(began)
        return record

    def _rest_after(self, began: float) -> None:
        """Do no more slow work until it is `share` of the time again."""
        if self._share < 1:
            ended = self._clock.monotonic()
            self.idle_until = ended + (ended - began) / self._share

    def record_of(self, made: Attempt, seconds: float = 0.0) -> DecisionRecord:
        """Return the record of an attempt. Call this before the next attempt."""
        if isinstance(made.decision, Placed):
            record = self._placed(made, seconds, 0.0, 0, is_in_full=True)
        else:
            pod, asked = made.pod, made.asked
            record = DecisionRecord(pod.key, pod.uid, asked.profile.name, seconds, ERROR, "", asked.nodes.n, asked.n_nodes)
            record.refused = self._why_none(made)
        if made.asked.turn is not None:
            record.group = str(made.asked.turn.key)
        return record

    def _placed(self, made: Attempt, seconds: float, at: float, attempts: int, *, is_in_full: bool = False) -> DecisionRecord:
        """Return the record of a placed pod. Nodes are counted with `is_in_full`, or if the last count is 2 ms ago. This runs
        for every pod, so it is one long function without calls."""
        asked, ranking = made.asked, made.ranking
        decision: Placed = made.decision  # type: ignore[assignment]  # the caller has checked
        pod, nodes = asked.pod, asked.nodes
        n, evaluated, feasible = nodes.n, decision.evaluated, decision.feasible
        # `count` is how many nodes have the best total: 0 without scores, None if it is more than one and not counted.
        best, second, flat, runner_up = 0, 0, 0, ""
        count: int | None = 0
        if ranking is None:
            is_nominated = evaluated == 1 and pod.pod.status.nominated_node_name == decision.node_name
            chooser = NOMINATED if is_nominated else ONLY
            is_refused_any = not is_nominated and not feasible == evaluated == n  # beside a nominated one none was looked at
        else:
            level, recalled = ranking.level, ranking.recalled
            best, row, chooser, is_refused_any = level.best, level.first, self._chooser, feasible < n
            if row != ranking.row:
                second = best
            else:
                row, second = level.second_to(row)
            if row >= 0:
                runner_up = nodes.name(row)
            count = 1 if second < best or row < 0 else None
            if recalled is not None:  # cached totals leave out what is the same for all nodes
                known = recalled.of_class.node_answers.flat_total
                flat = recalled.left_out(pod, nodes) if known is None else known + recalled.flat
        refused: Refused | None = ()
        if is_refused_any or count is None:
            since = at - self._counted_at
            may_count = is_in_full or since == 0.0 or since >= self._pause
            if may_count and not is_in_full:
                self._counted_at = at
            if count is None and ranking is not None and may_count:
                count = ranking.level.count
            if is_refused_any:
                refused = self._known_refusals(made) if may_count else None
        return DecisionRecord(
            pod.key,
            pod.uid,
            asked.profile.name,
            seconds,
            PLACED,
            decision.node_name,
            n,
            evaluated,
            feasible,
            SCORE if count == 1 else chooser,
            count,
            best + flat,
            best - second,
            runner_up,
            refused,
            at,
            attempts,
        )

    def _known_refusals(self, made: Attempt) -> Refused | None:
        """Return the refusals of an attempt that found a node if a tally has them, which is so from the second pod of an
        equivalence class on; otherwise None."""
        # Three pods of one class: the first leaves the answers here, the second makes the tally by counting all rows once, the
        # third and all others read it.
        recalled = made.ranking.recalled if made.ranking is not None else None
        if recalled is None:
            return None
        answers = recalled.of_class.node_answers
        tally = self._tallies.get(id(answers))
        if isinstance(tally, RefusalTally) and tally.answers is answers:
            return tally.of(recalled, made.nodes)
        if len(self._tallies) >= _MOST_KEPT:
            self._tallies.clear()
        if tally is not answers:
            self._tallies[id(answers)] = answers
            return None
        names = [plugin.name for plugin in answers.profile.filters]
        tally = self._tallies[id(answers)] = RefusalTally(answers, made.nodes, names)
        return tally.of(recalled, made.nodes)

    def _why_none(self, made: Attempt) -> tuple[RefusalCount, ...]:
        """Return the refusals of an attempt that found no node. Pods of a class share a diagnosis while nothing changes."""
        diagnosis = made.diagnosis
        if diagnosis is not None and self._last_diagnosis[0] is diagnosis:
            return self._last_diagnosis[1]
        found = refusal_counts(made)
        self._last_diagnosis = diagnosis, found
        return found

    def broken(self, tried: Tried, error: Exception, nodes: Snapshot) -> DecisionRecord:
        """Return the record of an attempt that broke, with the nodes that plugins other than the broken one refuse.

        The verdicts of the attempt itself are lost with the exception. So the nodes are filtered once more, without the plugin
        that broke, if there is time for that; otherwise the record says that refusals were not counted.
        """
        pod, profile = tried.queued.view, tried.profile
        record = DecisionRecord(pod.key, pod.uid, profile.name, node_count=nodes.n, refused=None)
        began = self._clock.monotonic()
        if began >= self.idle_until:
            rest = profile_without(profile, [error.plugin] if isinstance(error, PluginError) else [])
            asked = Question(pod, nodes, rest, Rules(SeededTies(), self._rules.nominations, preempts=False))
            state = CycleState()
            try:
                found = filter_nodes(asked, state, rest.pre_filter(pod, nodes, state))
                seen = Attempt(asked, Failed(pod, ""), state, found.pre_filtered, found.diagnosis, found.feasible)
                record.refused = refusal_counts(seen)
            except SchedulerError:
                pass  # another plugin is broken too
            self._rest_after(began)
        return record

    # With all scores

    def _work_out(self, record: DecisionRecord, made: Attempt) -> None:
        """Add the scores of the best nodes, and the refusals if they are not known."""
        if record.refused is not None and made.ranking is None:
            return
        asked, seen = made.asked, made
        try:
            if made.verdicts is None or (made.ranking is not None and made.scores is None):
                plain = Rules(SeededTies(), self._rules.nominations, preempts=False, scores_single=True)
                with asked.profile.unobserved():
                    seen = attempt(asked.pod, asked.nodes, asked.profile, plain, within=asked.within)
            if record.refused is None:
                record.refused = refusal_counts(seen)
            if made.ranking is not None and seen.scores is not None:
                totals = made.ranking.totals
                record.scores = table_of(seen.scores, totals, record.total, asked.nodes, record.node, asked.profile)
        except SchedulerError:
            return  # a plugin raised at the second call: the decision stands

    # Results

    def placed(self, tried: Tried) -> int:
        """Keep the record of a booked pod; return its sequence number."""
        assert tried.made is not None
        at, attempts, record = self._now(), tried.queued.attempts, tried.record
        if record is None:
            record = self._placed(tried.made, tried.seconds, at, attempts)
        else:
            record.attempt, record.at = attempts, at
        return self._keep(record)

    def _keep(self, record: DecisionRecord) -> int:
        sequence = self.ring.append(record)
        for tell in self.listeners:
            tell(record)
        return sequence

    def failed(self, tried: Tried, failure: Failure, node_name: str = "") -> None:
        """Keep the record of an attempt that failed, or whose booking on a node was taken back."""
        record, view, preemption = tried.record, tried.queued.view, failure.preemption
        if record is None and tried.made is not None:
            record = self.record_of(tried.made, tried.seconds)
        if record is None:
            record = DecisionRecord(view.key, view.uid, tried.profile.name, node=node_name)
        if preemption is not None:
            victims = tuple(victim.key for victim in preemption.victims)
            record.preemption = PreemptionRecord(preemption.node_name, victims, preemption.violations)
        record.outcome = ERROR if not failure.is_rejection else UNSCHEDULABLE if preemption is None else PREEMPTED
        record.message, record.attempt, record.at = failure.message, tried.queued.attempts, self._clock.now()
        self._keep(record)


def profile_without(profile: Profile, plugins: Collection[str]) -> Profile:
    """Return a profile without some of its plugins."""
    points = {
        point: tuple(entry for entry in entries if entry[0].name not in plugins) for point, entries in profile.points.items()
    }
    return Profile(profile.name, points, profile.percentage_of_nodes)


def refusal_counts(made: Attempt) -> tuple[RefusalCount, ...]:
    """Return the refusals of an attempt by plugin and reason, the largest number first, with those of extenders."""
    counts: dict[tuple[str, str], int] = {}
    for each in refusals_of(made):
        counts[each.plugin, each.reason] = counts.get((each.plugin, each.reason), 0) + each.count
    for status in made.diagnosis.extra.values() if made.diagnosis is not None else ():
        for reason in status.reasons:
            counts[status.plugin, reason] = counts.get((status.plugin, reason), 0) + 1
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return tuple(RefusalCount(plugin, reason, count) for (plugin, reason), count in ordered)


def table_of(scores: Scores, totals: Ints, total: int, nodes: Snapshot, chosen: str, profile: Profile) -> ScoreTable:
    """Return the scores of the best nodes: the chosen one, the next best ones, and one with a lower total if there is one."""
    # The chosen node first, also if others have the same total. The last line is a node with a lower total, so that a reader
    # sees what made the difference.
    row = nodes.row(chosen)
    order = np.argsort(-totals, kind="stable")
    rows = [row, *(other for other in order[: TOP + 1].tolist() if other != row)][:TOP]
    behind = int(np.count_nonzero(totals == totals[row]))
    if behind < len(order) and totals[order[behind]] >= 0 and int(order[behind]) not in rows:
        rows[-1] = int(order[behind])
    rows = [other for other in rows if totals[other] >= 0]
    weights = {plugin.name: weight for plugin, weight in profile.scorers}
    names = tuple(scores.by_plugin)
    weighted = [scores.by_plugin[name][rows] for name in names]
    normalized = [column // weights[name] for name, column in zip(names, weighted, strict=True)]
    raw = [scores.raw[name][rows] for name in names]
    sums = tuple((totals[rows] - totals[row] + total).tolist())
    beyond = np.array(sums) - sum(weighted, np.zeros(len(rows), dtype=np.int64))
    if beyond.any():
        names = (*names, EXTENDERS)
        raw, normalized, weighted = [*raw, beyond], [*normalized, beyond], [*weighted, beyond]
    values = np.array([raw, normalized, weighted], dtype=np.int64).transpose(0, 2, 1)
    return ScoreTable(names, tuple(nodes.name(other) for other in rows), sums, np.ascontiguousarray(values))
