"""Judging a live scheduler: every pod that it places is decided again, on the state that it saw.

In: changes as reflectors deliver them. Out: a `Judged` for every placement. A choice that our decision on the state just
before it agrees with is told at once. Any other is looked at again a little later, when what was under way has arrived: a
state near by in which we agree makes it a race and no difference (`races`). What none of them explains is a real one, and the
state is handed on with both decisions, to be kept and replayed. Nothing is ever written to the cluster.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from kubesched import config
from kubesched.api.pod import Pod
from kubesched.cluster import PodView
from kubesched.engine.agreement import Agreement, Comparison, compare
from kubesched.engine.assembly import Ports, assemble
from kubesched.engine.cycle import Rules
from kubesched.engine.loop import Engine
from kubesched.engine.ties import SeededTies
from kubesched.framework.ports import Clock
from kubesched.framework.registry import Registry
from kubesched.simulator.captured import Captured
from kubesched.simulator.shadow.assumed_pods import AssumedPods
from kubesched.simulator.shadow.history import Change, History
from kubesched.simulator.shadow.races import MOST_STATES, Moment, Surroundings, is_trace, surroundings

RACE = "race"
"""We agree on a state that the scheduler may have seen, though we had not yet, or no longer."""
PROMISED = "promised"
"""We agree given what the scheduler had promised before: the pod's nomination, or what its claims are bound to."""
_LONGEST_PROMISE_SECONDS = 60.0
_LONGEST_SETTLING_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Judged:
    """One placement, judged."""

    at: float
    """Seconds since the epoch."""
    pod: str
    scheduler: str
    comparison: Comparison
    note: str = ""
    state_seen: str = ""
    """For a race, how the state that explains it differs from the one that we saw."""
    state: Callable[[], Captured] | None = None
    """Where we do not agree, the state on which that was found; to be called at once."""
    is_control: bool = False
    """Whether nobody chose so: the node was drawn by lot, to see whether it would be found out."""

    @property
    def is_difference(self) -> bool:
        """Return whether it is one that no race explains."""
        return self.comparison.kind in (Agreement.WORSE, Agreement.INFEASIBLE)

    def document(self) -> dict[str, Any]:
        """Return it as plain values."""
        found = self.comparison
        told: dict[str, Any] = {
            "at": round(self.at, 3),
            "pod": self.pod,
            "scheduler": self.scheduler,
            "agreement": str(found.kind),
            "note": self.note,
            "chosen": found.chosen,
            "ours": found.ours,
            "feasibleNodes": found.n_feasible,
            "bestNodes": found.n_best,
        }
        if self.state_seen:
            told["stateSeen"] = self.state_seen
        if found.behind:
            told |= {"behind": found.behind, "byPlugin": found.by_plugin}
        if found.reasons:
            told |= {"refusedBy": found.refused_by, "reasons": list(found.reasons)}
        return told


@dataclass(frozen=True, slots=True)
class _Placement:
    """A placement that is not explained yet."""

    number: int
    at: float
    pod: Pod
    """As it waited."""
    chosen: str
    found: Comparison
    is_control: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """How a live scheduler is judged, and by what."""

    configuration: config.Configuration
    gates: config.Gates
    registry: Registry
    seed: int = 0
    window_seconds: float = 2.0
    """How far the states that explain a race may lie before or after a placement."""
    control: float = 0.0
    """For this share of the placements a node drawn by lot is judged as well: how many of these would pass as races?"""


class Judge:
    """Follows a cluster as a sink of reflectors, and judges from `begin` on."""

    def __init__(self, settings: Settings, tell: Callable[[Judged], None], clock: Clock) -> None:
        self.settings = settings
        self.engine: Engine = assemble(
            settings.configuration, settings.gates, Ports(clock=clock, seed=settings.seed), registry=settings.registry
        )
        self.history = History(self.engine, max(_LONGEST_PROMISE_SECONDS, 3 * settings.window_seconds))
        self.is_judging = False
        self.is_relisting: Callable[[], bool] = lambda: False
        self.n_missed = 0
        """Placements that were made while we were cut off, or were behind by more than is remembered: on which states is not
        known."""
        self.skipped: dict[str, int] = {}
        """Placements by schedulers that the configuration does not name."""
        self._tell, self._clock = tell, clock
        self._open: deque[_Placement] = deque()
        self._assumed = AssumedPods(self.engine.profiles)
        self._rules = Rules(SeededTies(settings.seed), self.history.nominated)
        self._lot = random.Random(settings.seed)

    # What the reflectors tell

    def deliver(self, kind: str, old: Any | None, new: Any | None) -> None:
        """Take in a change; judge it if it is a placement."""
        change = Change(self._clock.monotonic(), kind, old, new)
        if self.is_judging and change.is_placement:
            self._placed(change)
        for told in self._assumed.told(change):
            self.history.take(told)

    def synced(self, kind: str) -> None:
        """Take notice that a kind's first list has been delivered."""

    def begin(self) -> None:
        """Judge from now on: the first lists are in."""
        self.history.forget()
        self.is_judging = True

    def settle(self) -> None:
        """Judge placements around which everything has arrived by now; for a moment only, so that others go on arriving."""
        now = began = self._clock.monotonic()
        while self._open and self._open[0].at + self.settings.window_seconds < now:
            self._explain(self._open.popleft())
            if self._clock.monotonic() - began > _LONGEST_SETTLING_SECONDS:
                break

    def finish(self) -> None:
        """Judge what is open, with what has arrived so far."""
        while self._open:
            self._explain(self._open.popleft())

    # Judging

    def _placed(self, change: Change) -> None:
        """Judge the next change, a placement, on the state just before it; or, where the scheduler has left traces of its
        decision, on the state before these."""
        pod, chosen = change.old, change.new.spec.node_name  # type: ignore[union-attr]
        assert isinstance(pod, Pod)
        name = pod.spec.scheduler_name
        if name not in self.engine.profiles:
            self.skipped[name] = self.skipped.get(name, 0) + 1
            return
        if self.is_relisting():
            self.n_missed += 1
            return
        self._judge(change.at, pod, chosen)
        if self.settings.control and self._lot.random() < self.settings.control:
            others = [node.metadata.name for node in self.engine.store.nodes.objects if node.metadata.name != chosen]
            if others:
                self._judge(change.at, pod, self._lot.choice(others), is_control=True)

    def _judge(self, at: float, pod: Pod, chosen: str, *, is_control: bool = False) -> None:
        """Judge a choice that the next change brings; put it aside if we do not agree at once."""
        number = self.history.end
        decided, bound = self._around(pod, number, at)
        found = self._compare_at(decided, pod, chosen, decided.now)
        promised = found
        if not found.kind.is_agreement and (bound is not decided or pod.status.nominated_node_name):
            self.history.show(bound.first, bound.undone_at(bound.now))
            promised = self._compare(pod, chosen)
            if not promised.kind.is_agreement:
                promised = self._compare(_without_nomination(pod), chosen)
        self.history.show_newest()
        if found.kind.is_agreement:
            self._told(pod, found, is_control=is_control)
        elif promised.kind.is_agreement:
            self._told(pod, promised, PROMISED, is_control=is_control)
        else:
            self._open.append(_Placement(number, at, pod, chosen, found, is_control))

    def _explain(self, placement: _Placement) -> None:
        """Look for a state near by in which we agree; tell the difference if there is none."""
        pod, chosen = placement.pod, placement.chosen
        is_control = placement.is_control
        if self.history.forgotten_until > placement.at - self.settings.window_seconds:
            self.n_missed += not is_control
            return
        decided, bound = self._around(pod, placement.number, placement.at)
        around, found = decided, placement.found
        try:
            for each in (decided,) if bound is decided else (decided, bound):
                compare_at = partial(self._compare_at, each, pod, chosen)
                for moment, raced in islice(each.search(compare_at), MOST_STATES):
                    if raced.kind.is_agreement:
                        self._told(pod, raced, RACE, state_seen=each.words_for(moment), is_control=is_control)
                        return
            if bound is not decided and found.kind is Agreement.INFEASIBLE:  # for want of what it was promised, say
                around, found = bound, self._compare_at(bound, pod, chosen, bound.now)
            self.history.show(around.first, around.undone_at(around.now))
            self._told(pod, found, state=lambda: self._captured(pod), is_control=is_control)
        finally:
            self.history.show_newest()

    def _compare_at(self, around: Surroundings, pod: Pod, chosen: str, moment: Moment) -> Comparison:
        self.history.show(around.first, around.undone_at(moment))
        return self._compare(_without_nomination(pod), chosen)

    def _compare(self, pod: Pod, chosen: str) -> Comparison:
        store, profile = self.engine.store, self.engine.profiles[pod.spec.scheduler_name]
        percentage = profile.percentage_of_nodes
        if percentage is None:
            percentage = self.settings.configuration.percentage_of_nodes_to_score
        view: PodView = store.view(pod)
        return compare(view, store.snapshot(), profile, self._rules, chosen, percentage=percentage)

    def _traces(self, pod: Pod, end: int) -> dict[int, Change]:
        """Return the changes, up to one, by which the scheduler prepared for a pod."""
        if not pod.spec.volumes and not pod.spec.resource_claims and not pod.status.nominated_node_name:
            return {}
        changes = self.history.since(self.history.begin)
        return {number: change for number, change in changes if number < end and is_trace(change, pod)}

    def _around(self, pod: Pod, number: int, at: float) -> tuple[Surroundings, Surroundings]:
        """Return what happened around the decision that led to a placement, which was before the first of its traces, and
        around the placement itself, with what was promised to the pod in place; the same if there are no traces."""
        traces = self._traces(pod, number)
        of_pod = {each for each, change in traces.items() if change.kind == "Pod"}
        bound = self._surroundings(pod, number, {number, *of_pod}, at)
        if not traces:
            return bound, bound
        first = min(traces)
        return self._surroundings(pod, first, {number, *traces}, traces[first].at), bound

    def _surroundings(self, pod: Pod, base: int, undone: set[int], at: float) -> Surroundings:
        seconds = self.settings.window_seconds
        changes = self.history.since(min(base, self.history.first_at(at - seconds)))
        names, arrived = self.engine.profiles, self.history.arrived
        return surroundings(changes, pod, base, undone, names=names, seconds=seconds, at=at, arrived=arrived)

    def _captured(self, pod: Pod) -> Captured:
        return Captured(self._clock.now(), self.history.objects_for(_without_nomination(pod)), self.settings.seed)

    def _told(
        self,
        pod: Pod,
        found: Comparison,
        note: str = "",
        *,
        state_seen: str = "",
        state: Callable[[], Captured] | None = None,
        is_control: bool = False,
    ) -> None:
        name = pod.spec.scheduler_name
        self._tell(Judged(self._clock.now(), pod.key, name, found, note, state_seen, state, is_control))


def _without_nomination(pod: Pod) -> Pod:
    if not pod.status.nominated_node_name:
        return pod
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name=""))
