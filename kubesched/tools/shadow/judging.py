"""Judging a live scheduler: every pod that it places is decided again, on the state that it saw.

In: changes as reflectors deliver them. Out: a `Judged` for every placement. A choice that our decision on the state just
before it agrees with is told at once. Any other is looked at again a little later, when what was under way has arrived: a
state near by in which we agree makes it a race and no difference (`races`). What none of them explains is a real one, and the
state is handed on with both decisions, to be kept and replayed. Nothing is ever written to the cluster.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import inf
from typing import Any

import msgspec

from kubesched.kube.api import Pod
from kubesched.scheduler import config
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine import Agreement, Comparison, Engine, Ports, Rules, SeededTies, assemble, compare
from kubesched.scheduler.framework import Clock, Registry
from kubesched.tools.shadow.assumed_pods import AssumedPods
from kubesched.tools.shadow.changes import Change, Key
from kubesched.tools.shadow.history import History
from kubesched.tools.shadow.races import LONGEST_SKEW_SECONDS, MOST_STATES, Moment, Surroundings, surroundings
from kubesched.tools.snapshots.captured import Captured

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
        self.history.needed_since = self._needed_since
        self.is_judging = False
        self.is_relisting: Callable[[], bool] = lambda: False
        self.version_of: Callable[[str], str] = lambda kind: ""
        """Up to which version a kind of objects is followed."""
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
        version = self.version_of(kind)
        change = Change(self._clock.monotonic(), kind, old, new, version=int(version) if version.isdecimal() else 0)
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
        self.history.show_newest()

    def finish(self) -> None:
        """Judge what is open, with what has arrived so far."""
        while self._open:
            self._explain(self._open.popleft())
        self.history.show_newest()

    def _needed_since(self) -> float:
        """Return from when on changes are needed for what is to be looked at again: we may be minutes behind."""
        back = self.settings.window_seconds + LONGEST_SKEW_SECONDS
        return self._open[0].at - back if self._open else inf

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
        traces = self.history.traces(pod, number)
        if traces:
            self._show_decided(number, traces)
        found, note = self._compare(_without_nomination(pod), chosen), ""
        if pod.status.nominated_node_name and not found.n_feasible:  # so it was freed for this pod, by evicting others
            promised = self._compare_promised(pod, chosen, number, traces)
            if promised.kind.is_agreement:
                found, note = promised, PROMISED
        self.history.show_newest()
        if found.kind.is_agreement:
            self._told(pod, found, note, is_control=is_control)
        else:
            self._open.append(_Placement(number, at, pod, chosen, found, is_control))

    def _explain(self, placement: _Placement) -> None:
        """Look for a state near by in which we agree; tell the difference if there is none. An old state is left shown: the
        next one to look at is hardly ever far from it."""
        pod, chosen = placement.pod, placement.chosen
        is_control = placement.is_control
        if self.history.forgotten_until > placement.at - self.settings.window_seconds:
            self.n_missed += not is_control
            return
        traces = self.history.traces(pod, placement.number)
        found = placement.found

        def compare_at(around: Surroundings, moment: Moment) -> Comparison:
            self.history.show(around.versions(moment))
            return self._compare(_without_nomination(pod), chosen)

        for note, around in self._around(placement, traces):
            for moment, raced in islice(around.search(partial(compare_at, around)), MOST_STATES):
                if raced.kind.is_agreement:
                    self._told(pod, raced, note, state_seen=around.words_for(moment), is_control=is_control)
                    return
        if (promised := self._compare_promised(pod, chosen, placement.number, traces)).kind.is_agreement:
            self._told(pod, promised, PROMISED, is_control=is_control)
            return
        self._show_decided(placement.number, traces)
        if traces and found.kind is Agreement.INFEASIBLE:  # for want of what it was promised, say
            self.history.show_before(placement.number)
            found = self._compare(_without_nomination(pod), chosen)
        self._told(pod, found, state=lambda: self._captured(pod), is_control=is_control)

    def _show_decided(self, number: int, traces: dict[int, Change]) -> None:
        """Show the state on which a placement was decided, as far as one can say at once: before the first trace of it."""
        self.history.show_before(_decided_at(number, traces), _first_versions(traces.values()))

    def _compare_promised(self, pod: Pod, chosen: str, number: int, traces: dict[int, Change]) -> Comparison:
        """Judge a choice on the state just before it, with all that was promised to the pod in place: the node that was freed
        for it is tried before all others, and a volume that is bound can be used where it is."""
        self.history.show_before(number, _first_versions(each for each in traces.values() if each.kind == "Pod"))
        found = self._compare(pod, chosen)
        return found if found.kind.is_agreement else self._compare(_without_nomination(pod), chosen)

    def _compare(self, pod: Pod, chosen: str) -> Comparison:
        store, profile = self.engine.store, self.engine.profiles[pod.spec.scheduler_name]
        percentage = profile.percentage_of_nodes
        if percentage is None:
            percentage = self.settings.configuration.percentage_of_nodes_to_score
        view: PodView = store.view(pod)
        return compare(view, store.snapshot(), profile, self._rules, chosen, percentage=percentage)

    def _around(self, placement: _Placement, traces: dict[int, Change]) -> Iterator[tuple[str, Surroundings]]:
        """Yield what happened around the decision that led to a placement, which was before the first of its traces, unless
        others had to be evicted first. And if there are any, around the placement itself, with what was promised to the pod in
        place: with volumes and devices that are given already hardly any node is left."""
        of_pod = {number for number, change in traces.items() if change.kind == "Pod"}
        is_given = len(traces) > len(of_pod)
        if is_given or (traces and placement.found.n_feasible):
            first = _decided_at(placement.number, traces)
            at = traces[first].at if first in traces else placement.at
            yield RACE, self._surroundings(placement.pod, first, {placement.number, *traces}, at)
        bound = self._surroundings(placement.pod, placement.number, {placement.number, *of_pod}, placement.at)
        yield PROMISED if is_given else RACE, bound

    def _surroundings(self, pod: Pod, base: int, traces: set[int], at: float) -> Surroundings:
        seconds = self.settings.window_seconds
        changes = self.history.since(min((*traces, self.history.first_at(at - seconds - LONGEST_SKEW_SECONDS))))
        return surroundings(changes, pod, base, traces, seconds=seconds, at=at, arrived=self.history.arrived)

    def _captured(self, pod: Pod) -> Captured:
        objects, release = self.history.objects_for(_without_nomination(pod)), self.settings.gates.emulated
        return Captured(self._clock.now(), objects, self.settings.seed, release)

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


def _decided_at(number: int, traces: dict[int, Change]) -> int:
    """Return before which change of a pod it was decided: what was written first about it, or its placement."""
    return min((number, *(each for each, change in traces.items() if change.kind == "Pod")))


def _first_versions(changes: Iterable[Change]) -> dict[Key, Any | None]:
    """Return the objects as they were before the first of their changes."""
    found: dict[Key, Any | None] = {}
    for change in changes:
        found.setdefault(change.key, change.old)
    return found


def _without_nomination(pod: Pod) -> Pod:
    if not pod.status.nominated_node_name:
        return pod
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name=""))
