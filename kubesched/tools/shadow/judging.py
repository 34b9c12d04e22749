"""Judges a live scheduler: every pod that it places is decided again, on the state that it saw.

In: changes from reflectors. Out: a `Judged` for each placement. If our decision on the state just before the placement agrees,
it is reported at once. Otherwise the placement is judged again a little later, when changes that were under way have arrived.
If we agree on a state near by, it was a race (`races`). If we agree on none, it is a difference: it is reported with both
decisions and the state, to be saved and replayed. Nothing is ever written to the cluster.
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
"""We agree on a state that the scheduler may have seen, and that differs from the one that we saw."""
PROMISED = "promised"
"""We agree if the pod's nomination, or what its claims were bound to before, is taken into account."""
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
    """For a race, how the state on which we agree differs from the one that we saw."""
    state: Callable[[], Captured] | None = None
    """For a difference, returns the state on which we decided. Call it at once: the state is shown only now."""
    is_control: bool = False
    """Whether the node is a random one instead of the scheduler's: does the judge notice wrong choices?"""

    def document(self) -> dict[str, Any]:
        """Return it as plain values."""
        found = self.comparison
        document: dict[str, Any] = {
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
            document["stateSeen"] = self.state_seen
        if found.behind:
            document |= {"behind": found.behind, "byPlugin": found.by_plugin}
        if found.reasons:
            document |= {"refusedBy": found.refused_by, "reasons": list(found.reasons)}
        return document


@dataclass(frozen=True, slots=True)
class _Placement:
    """A placement on which we did not agree at once."""

    number: int
    at: float
    pod: Pod
    """The pod before it was placed."""
    chosen: str
    found: Comparison
    is_control: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration that judges, and how far it looks for an explanation."""

    configuration: config.Configuration
    gates: config.Gates
    registry: Registry
    seed: int = 0
    window_seconds: float = 2.0
    """How long before or after a placement a state may be that explains a race."""
    control: float = 0.0
    """The share of placements for which a random node is judged too, to measure how many wrong choices pass as races."""


class Judge:
    """A sink of reflectors that judges every placement after `begin`."""

    def __init__(self, settings: Settings, on_judged: Callable[[Judged], None], clock: Clock) -> None:
        self.settings = settings
        self.engine: Engine = assemble(
            settings.configuration, settings.gates, Ports(clock=clock, seed=settings.seed), registry=settings.registry
        )
        self.history = History(self.engine, max(_LONGEST_PROMISE_SECONDS, 3 * settings.window_seconds))
        self.history.needed_since = self._needed_since
        self.is_judging = False
        self.is_relisting: Callable[[], bool] = lambda: False
        self.version_of: Callable[[str], str] = lambda kind: ""
        """Returns the resource version up to which a kind of objects has been read."""
        self.n_missed = 0
        """Placements during a relist, or older than the history: the states of these are not known."""
        self.skipped: dict[str, int] = {}
        """Placements by other schedulers, counted by name."""
        self._on_judged, self._clock = on_judged, clock
        self._open: deque[_Placement] = deque()
        self._assumed = AssumedPods(self.engine.profiles)
        self._rules = Rules(SeededTies(settings.seed), self.history.nominated)
        self._lot = random.Random(settings.seed)

    def deliver(self, kind: str, old: Any | None, new: Any | None) -> None:
        """Judge a change if it is a placement, then add it to the history."""
        version = self.version_of(kind)
        change = Change(self._clock.monotonic(), kind, old, new, version=int(version) if version.isdecimal() else 0)
        if self.is_judging and change.is_placement:
            self._placed(change)
        for seen in self._assumed.as_seen(change):
            self.history.take(seen)

    def synced(self, kind: str) -> None:
        """Do nothing when the first list of a kind is complete."""

    def begin(self) -> None:
        """Judge from now on. The first lists are complete."""
        self.history.forget()
        self.is_judging = True

    def settle(self) -> None:
        """Judge the open placements whose window is over, for a tenth of a second at most, so that changes can be read."""
        now = began = self._clock.monotonic()
        while self._open and self._open[0].at + self.settings.window_seconds < now:
            self._explain(self._open.popleft())
            if self._clock.monotonic() - began > _LONGEST_SETTLING_SECONDS:
                break
        self.history.show_newest()

    def finish(self) -> None:
        """Judge all open placements with the changes so far."""
        while self._open:
            self._explain(self._open.popleft())
        self.history.show_newest()

    def _needed_since(self) -> float:
        """Return the time from which changes must be kept for the open placements, which may be minutes old."""
        back = self.settings.window_seconds + LONGEST_SKEW_SECONDS
        return self._open[0].at - back if self._open else inf

    def _placed(self, change: Change) -> None:
        """Judge a placement, and a random node beside it as a control. The change is not in the history yet."""
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
        """Judge a choice on the state before the first trace of the decision; keep it open if we do not agree."""
        number = self.history.end
        traces = self.history.traces(pod, number)
        if traces:
            self._show_decided(number, traces)
        found, note = self._compare(_without_nomination(pod), chosen), ""
        if pod.status.nominated_node_name and not found.n_feasible:  # a preemption made room for this pod on its nominated node
            promised = self._compare_promised(pod, chosen, number, traces)
            if promised.kind.is_agreement:
                found, note = promised, PROMISED
        self.history.show_newest()
        if found.kind.is_agreement:
            self._report(pod, found, note, is_control=is_control)
        else:
            self._open.append(_Placement(number, at, pod, chosen, found, is_control))

    def _explain(self, placement: _Placement) -> None:
        """Search for a state near by on which we agree; report a difference if there is none.

        The last state stays shown, as the next one is mostly close to it.
        """
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
                    self._report(pod, raced, note, state_seen=around.words_for(moment), is_control=is_control)
                    return
        if (promised := self._compare_promised(pod, chosen, placement.number, traces)).kind.is_agreement:
            self._report(pod, promised, PROMISED, is_control=is_control)
            return
        self._show_decided(placement.number, traces)
        if traces and found.kind is Agreement.INFEASIBLE:  # perhaps because a trace was undone that the pod needs
            self.history.show_before(placement.number)
            found = self._compare(_without_nomination(pod), chosen)
        self._report(pod, found, state=lambda: self._captured(pod), is_control=is_control)

    def _show_decided(self, number: int, traces: dict[int, Change]) -> None:
        """Show the state before the first trace of a decision: the most likely one on which it was made."""
        self.history.show_before(_decided_at(number, traces), _first_versions(traces.values()))

    def _compare_promised(self, pod: Pod, chosen: str, number: int, traces: dict[int, Change]) -> Comparison:
        """Judge a choice on the state just before it, with the pod's nomination and the bindings of its claims in place.

        Then its nominated node is tried first, and a bound volume is used where it is.
        """
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
        """Yield the surroundings to search: first of the decision, then of the placement itself.

        The decision was before the first trace of it, unless victims had to be evicted first. Around the placement, volumes
        and devices of the pod are already assigned, which leaves few feasible nodes.
        """
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

    def _report(
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
        self._on_judged(Judged(self._clock.now(), pod.key, name, found, note, state_seen, state, is_control))


def _decided_at(number: int, traces: dict[int, Change]) -> int:
    """Return the number of the first change that shows the decision: a trace on the pod, or its placement."""
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
