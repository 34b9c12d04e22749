"""An engine that follows a cluster whose pods another scheduler places, for the page.

In: changes as reflectors deliver them. Out: an engine with the cluster, the pods that wait and the decisions on record, as the
page shows them of a scheduler; and a `Judge`, which says how often we agree. Nothing is ever written to the cluster.

A placement is decided again on the state before it, and goes on record with the node that the other scheduler chose. A pod that
waits is tried here too, so that the queue knows who refuses it and what would wake it; that attempt is not on record unless it
finds no node, because whether it finds one in time is for the other scheduler to say.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from kubesched.errors import SchedulerError
from kubesched.kube.api import Pod, parse_time
from kubesched.scheduler.engine import (
    PLACED,
    AssumedBinding,
    Attempt,
    Changed,
    DecisionRecord,
    DecisionRecorder,
    Engine,
    Failure,
    Ports,
    Preemptor,
    Rules,
    SeededTies,
    SystemClock,
    Tried,
    assemble,
    attempt,
    refusal_counts,
    table_of,
)
from kubesched.scheduler.framework import Code, Placed, Preemption, Status
from kubesched.server.web import Throughput
from kubesched.telemetry import Metrics
from kubesched.tools.shadow.judging import Judge, Judged, Settings
from kubesched.tools.shadow.report import Report

NOT_BOUND = "fits on {node}; the scheduler has not bound it yet"
DREW = "the scheduler drew one"
"""How kube-scheduler chooses among nodes of the same score."""
_TRYING_SECONDS = 0.05


class LiveDecisions(DecisionRecorder):
    """Keeps what another scheduler decided, and why pods find no node."""

    def take(self, made: Attempt, seconds: float, now: float) -> DecisionRecord | None:
        """Take a record of a refusal only."""
        return None if isinstance(made.decision, Placed) else super().take(made, seconds, now)

    def placed(self, tried: Tried) -> int:
        """Keep nothing of a booking that is taken back at once."""
        return -1

    def failed(self, tried: Tried, failure: Failure, node_name: str = "") -> None:
        """Keep a refusal, unless it is the one that takes a booking back, and unless the last one of this pod said the same."""
        known = self.ring.of_pod(tried.queued.view.key)
        if not node_name and failure.is_rejection and not (known and known[0].message == failure.message):
            super().failed(tried, failure)


class NoEvictions:
    """Evicts nobody: that is for the scheduler that places the pods."""

    in_background = True
    n_waited_for = 0

    def carry_out(self, preemptor: Preemptor, preemption: Preemption, then: Any = None) -> None:
        """Leave the victims where they are."""


class Observer:
    """Follows a cluster as a sink of reflectors."""

    def __init__(self, settings: Settings, n_records: int) -> None:
        self.decisions = LiveDecisions(n_records)
        self.throughput = Throughput(Metrics())
        ports = Ports(clock=SystemClock(), observer=self.throughput, decisions=self.decisions, seed=settings.seed)
        self.engine: Engine = assemble(settings.configuration, settings.gates, ports, registry=settings.registry)
        self.engine.is_leading = False
        self.engine.failures.writes = False
        self.engine.attempts.evictions = NoEvictions()
        self.engine.bookings.hand_over = self._take_back
        self._ties = SeededTies(settings.seed)
        self.report = Report(time.time())
        self.judge = self.report.judge = Judge(settings, self._judged, SystemClock())

    # What the reflectors tell

    def deliver(self, kind: str, old: Any | None, new: Any | None) -> None:
        """Take in a change; keep it on record if it is a placement."""
        if isinstance(old, Pod) and isinstance(new, Pod) and new.spec.node_name and not old.spec.node_name:
            self._placed(old, new)
        self.judge.deliver(kind, old, new)
        self.engine.inbox.post(Changed(kind, old, new))

    def synced(self, kind: str) -> None:
        """Take notice that a kind's first list has been delivered."""

    def _judged(self, judged: Judged) -> None:
        self.report.add(judged)

    # Placements

    def _placed(self, old: Pod, new: Pod) -> None:
        engine, chosen = self.engine, new.spec.node_name
        profile = engine.profiles.get(old.spec.scheduler_name)
        if profile is None or not self.judge.is_judging:
            return
        engine.take_in()  # all that came before
        view = engine.store.view(old)
        rules = Rules(self._ties, engine.queue.nominations, preempts=False, scores_single=True)
        try:
            record = record_of(attempt(view, engine.store.snapshot(), profile, rules), chosen)
        except SchedulerError:  # a plugin that breaks over it: that the pod was placed is known all the same
            record = DecisionRecord(view.key, view.uid, profile.name, outcome=PLACED, node=chosen, refused=None)
        record.at, record.attempt = time.time(), 1
        record.bound_seconds = (
            max(record.at - parse_time(old.metadata.creation_timestamp), 0.0) if old.metadata.creation_timestamp else 0.0
        )
        self.decisions.ring.append(record)
        self.throughput.pod_bound(view, chosen, 1, record.bound_seconds, False)

    # Pods that wait

    def try_waiting(self, engine: Engine) -> None:
        """Try pods that wait, for a moment, in the engine's turn."""
        began = time.monotonic()
        while time.monotonic() - began < _TRYING_SECONDS and engine.step():
            pass

    def _take_back(self, binding: AssumedBinding) -> None:
        """Let a pod that fits wait: the other scheduler is to bind it."""
        self.engine.bookings.bind_failed(binding, Status(Code.ERROR, (NOT_BOUND.format(node=binding.node_name),)))


def record_of(made: Attempt, chosen: str) -> DecisionRecord:
    """Return the record of a pod that was placed on a node by another scheduler, with what our attempt says of that node."""
    asked, pod, nodes = made.asked, made.pod, made.nodes
    row, feasible, scores = nodes.row(chosen), made.feasible, made.scores
    record = DecisionRecord(pod.key, pod.uid, asked.profile.name, outcome=PLACED, node=chosen, node_count=nodes.n)
    record.evaluated, record.feasible = nodes.n, 0 if feasible is None else int(np.count_nonzero(feasible))
    record.refused = refusal_counts(made)
    if row < 0 or feasible is None or not feasible[row] or scores is None:
        record.message = f"{chosen} was taken, on a state that we did not see"
        return record
    totals = np.where(feasible, scores.total, -1)
    best, record.total = int(totals.max()), int(totals[row])
    others = totals < best if record.total == best else totals == best
    runner_up = int(np.argmax(np.where(others, totals, -1)))
    record.level, record.chosen_by = int(np.count_nonzero(totals == record.total)), DREW
    if others[runner_up] and totals[runner_up] >= 0:
        record.margin, record.runner_up = record.total - int(totals[runner_up]), nodes.name(runner_up)
    if record.margin < 0:
        record.message = f"{chosen} was taken; {record.runner_up} has {-record.margin} points more"
    record.scores = table_of(scores, totals, record.total, nodes, chosen, asked.profile)
    return record
