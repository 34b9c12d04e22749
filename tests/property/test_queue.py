"""What must never happen in the queue: a pod lost, a pod in two places, a count that drifts.

Random histories of pods coming, changing, being tried, failing, being woken and going are played against the queue and
against a model that is too simple to be wrong: who exists, who is in flight, who was given back.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.kube.api.meta import ObjectMeta
from kubesched.kube.api.pod import Pod, PodSpec, PodStatus
from kubesched.scheduler.cluster import PodView, Store
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework import Plugin, Profile, Status, unresolvable
from kubesched.scheduler.framework.verdicts import CLEAR, Nomination
from kubesched.scheduler.framework.wakeups import ADD, DELETE, NODE, POD, UNSCHEDULABLE_TIMEOUT, Action, ClusterEvent, on
from kubesched.scheduler.plugins.priority_sort import PrioritySort
from kubesched.scheduler.queue import Queue, QueuedPod, QueueOptions

NAMES = [f"p{i}" for i in range(6)]
PLUGINS = ["Even", "ByTemplate", "Unheard", "Breaks"]
EVENTS = [
    ClusterEvent(NODE, int(ADD)),
    ClusterEvent(NODE, int(DELETE)),
    ClusterEvent(NODE, int(Action.NODE_TAINTS)),
    ClusterEvent("AssignedPod", int(DELETE)),
    UNSCHEDULABLE_TIMEOUT,
]
UPDATED = ClusterEvent("UnschedulablePod", int(Action.UPDATE))
RELABELLED = ClusterEvent("UnschedulablePod", int(Action.POD_LABELS))


class Even(Plugin):
    """Its hint wakes pods of even priority."""

    wakes_on = (on(NODE, ADD, "look"), on(POD, DELETE | Action.POD_LABELS, "look"))

    def filter_node(self, pod: PodView, node: Any, state: Any) -> str:
        return "no"

    def look(self, pod: PodView, old: Any, new: Any) -> bool:
        return pod.priority % 2 == 0


class ByTemplate(Even):
    """The same, asked once for a template."""

    wakes_on = (on(NODE, ADD | DELETE, "look", by_template=True), on(POD, DELETE, "look", by_template=True))


class Breaks(Even):
    """Its hint always raises."""

    def look(self, pod: PodView, old: Any, new: Any) -> bool:
        raise RuntimeError("hint")


class Gate(Plugin):
    """Keeps back pods while it is closed; breaks for those labelled so."""

    wakes_on = (on(NODE, ADD | DELETE),)
    is_closed = False

    def pre_enqueue(self, pod: PodView) -> Status | None:
        if pod.labels.get("gate") == "breaks" and self.is_closed:
            raise RuntimeError("gate")
        return unresolvable("closed") if self.is_closed and "gate" in pod.labels else None


class Gauge:
    """Counts refusals as the metric does."""

    def __init__(self) -> None:
        self.refused: Counter[str] = Counter()

    def queue_incoming(self, queue: str, event: str) -> None:
        assert queue in ("active", "backoff", "unschedulable")

    def unschedulable(self, plugin: str, profile: str, change: int) -> None:
        self.refused[plugin] += change

    def hint(self, plugin: str, event: str, answer: str, seconds: float) -> None:
        assert (answer == "Error") == (plugin == "Breaks")

    def broke(self, plugin: str, point: str, pod: str, error: Exception) -> None:
        assert plugin in ("Breaks", "Gate")


class World:
    """The queue, and the model beside it."""

    def __init__(self, pops_from_backoff: bool) -> None:
        self.time = 5000.0
        self.store = Store()
        handle = EngineHandle(self.store.objects)
        self.gate = Gate(None, handle)
        filters = [plugin(None, handle) for plugin in (Even, ByTemplate, Breaks)]
        profile = Profile(
            "default-scheduler",
            {
                "queue_sort": [(PrioritySort(None, handle), 0)],
                "pre_enqueue": [(self.gate, 0)],
                "filter": [(plugin, 0) for plugin in filters],
            },
        )
        self.gauge = Gauge()
        self.queue = Queue([profile], self, QueueOptions(pops_from_backoff=pops_from_backoff), self.gauge)
        self.pods: dict[str, PodView] = {}
        self.flying: dict[str, QueuedPod] = {}
        self.n_made = 0

    def now(self) -> float:
        return self.time

    # What can happen

    def add(self, name: str, priority: int, label: str, nominated: bool) -> None:
        if name in self.pods:
            self.update(name, priority, label, nominated)
            return
        self.n_made += 1
        self.pods[name] = self.view(name, f"uid-{self.n_made}", priority, label, nominated)
        self.queue.add(self.pods[name])

    def update(self, name: str, priority: int, label: str, nominated: bool) -> None:
        old = self.pods.get(name)
        if old is not None:
            new = self.pods[name] = self.view(name, old.uid, priority, label, nominated)
            self.queue.update(old.pod, new, [UPDATED, RELABELLED])

    def delete(self, name: str) -> None:
        gone = self.pods.pop(name, None)
        if gone is not None:
            self.queue.delete(gone)

    def pop(self) -> None:
        promised = self.queue.has_next
        entry = self.queue.pop()
        assert promised == (entry is not None)
        if entry is not None:
            self.fly(entry)

    def take(self, name: str) -> None:
        if name in self.pods:
            entry = self.queue.take(self.pods[name])
            if entry is not None:
                self.fly(entry)

    def fly(self, entry: QueuedPod) -> None:
        assert entry.view.uid not in self.flying, "popped twice"
        assert self.pods[entry.view.name] is entry.view, "an old version was popped"
        self.flying[entry.view.uid] = entry

    def finish(self, index: int, plugins: list[str], pending: list[str], nominate: bool) -> None:
        """End an attempt as the loop does: a pod that is gone or was replaced does not come back."""
        if not self.flying:
            return
        uid = sorted(self.flying)[index % len(self.flying)]
        entry = self.flying.pop(uid)
        newest = self.pods.get(entry.view.name)
        if newest is None or newest.uid != uid:
            self.queue.done(uid)
            return
        self.queue.park(entry, plugins, pending, newest)
        self.queue.nominations.add(newest, Nomination("n1") if nominate else CLEAR)

    def place(self, index: int) -> None:
        """End an attempt that found a node: the pod is bound and gone from the queue's world."""
        if self.flying:
            uid = sorted(self.flying)[index % len(self.flying)]
            entry = self.flying.pop(uid)
            self.queue.done(uid)
            if entry.view.name in self.pods and self.pods[entry.view.name].uid == uid:
                self.delete(entry.view.name)

    def wake(self, index: int, about: str) -> None:
        changed = self.pods[about].pod if about in self.pods else None
        self.queue.wake(EVENTS[index], changed if EVENTS[index].resource == "AssignedPod" else None, None)

    def activate(self, name: str) -> None:
        if name in self.pods:
            self.queue.activate([self.pods[name]])

    def swing(self) -> None:
        self.gate.is_closed = not self.gate.is_closed

    def pass_time(self, seconds: float) -> None:
        self.time += seconds
        self.queue.flush_backoff(self.time)
        self.queue.flush_leftovers(self.time)
        deadline = self.queue.next_deadline()
        assert deadline is None or deadline > self.time

    def view(self, name: str, uid: str, priority: int, label: str, nominated: bool) -> PodView:
        return self.store.view(
            Pod(
                metadata=ObjectMeta(name=name, namespace="ns", uid=uid, labels={"gate": label} if label else {}),
                spec=PodSpec(priority=priority),
                status=PodStatus(nominated_node_name="n2" if nominated else ""),
            )
        )

    # What must hold

    def check(self) -> None:
        queued = {entry.view.name: entry for entry in self.queue}
        flying = {
            entry.view.name
            for uid, entry in self.flying.items()
            if entry.view.name in self.pods and self.pods[entry.view.name].uid == uid
        }
        assert queued.keys() | flying == self.pods.keys(), "a pod was lost, or one stayed that is gone"
        assert not queued.keys() & flying, "a pod is queued while it is in flight"
        assert {uid for uid in self.flying if self.queue.is_in_flight(uid)} == self.flying.keys()
        assert self.queue.n_in_flight == len(self.flying)
        places = Counter(self.queue.place_of(entry.key) for entry in queued.values())
        assert places == +Counter(
            {
                "active": self.queue.n_active,
                "backoff": self.queue.n_backoff,
                "unschedulable": self.queue.n_unschedulable,
                "gated": self.queue.n_gated,
            }
        )
        assert all(self.pods[name] is entry.view for name, entry in queued.items()), "an old version is queued"
        refused = Counter(plugin for entry in queued.values() for plugin in entry.rejectors)
        assert +self.gauge.refused == refused, "the gauge of refusals drifted"
        nominated = Counter(
            view.uid for node in self.queue.nominations.nodes() for view in self.queue.nominations.on_node(node)
        )
        assert set(nominated.values()) <= {1}, "a pod is nominated twice"

    def drain(self) -> None:
        """Open the gate and let time pass: everybody must be popped in the end, and never twice."""
        while self.flying:
            self.finish(0, [], [], False)
        self.gate.is_closed = False
        for _ in range(3):
            deadline = self.queue.next_deadline()
            self.time = max(self.time + 400, deadline or 0)
            self.queue.flush_leftovers(self.time)
            self.time += 20
            self.queue.flush_backoff(self.time)
        popped = []
        while (entry := self.queue.pop()) is not None:
            popped.append(entry)
        assert sorted(entry.view.name for entry in popped) == sorted(self.pods)
        keys = [(-entry.view.priority, entry.timestamp) for entry in popped]
        assert keys == sorted(keys), "the order is not the sort plugin's"
        assert not +self.gauge.refused and len(self.queue) == 0


names = st.sampled_from(NAMES)
about = st.tuples(names, st.integers(0, 3), st.sampled_from(["", "", "gate", "breaks"]), st.booleans())
rejectors = st.lists(st.sampled_from(PLUGINS), max_size=2)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), about),
        st.tuples(st.just("add"), about),
        st.tuples(st.just("update"), about),
        st.tuples(st.just("delete"), st.tuples(names)),
        st.tuples(st.just("pop"), st.just(())),
        st.tuples(st.just("pop"), st.just(())),
        st.tuples(st.just("take"), st.tuples(names)),
        st.tuples(st.just("finish"), st.tuples(st.integers(0, 5), rejectors, rejectors, st.booleans())),
        st.tuples(st.just("finish"), st.tuples(st.integers(0, 5), rejectors, st.just([]), st.booleans())),
        st.tuples(st.just("place"), st.tuples(st.integers(0, 5))),
        st.tuples(st.just("wake"), st.tuples(st.integers(0, len(EVENTS) - 1), names)),
        st.tuples(st.just("activate"), st.tuples(names)),
        st.tuples(st.just("swing"), st.just(())),
        st.tuples(st.just("pass_time"), st.tuples(st.sampled_from([0.3, 1.0, 2.5, 11.0, 290.0]))),
    ),
    max_size=50,
)


def play(history: list[tuple[str, tuple[Any, ...]]], pops_from_backoff: bool) -> None:
    world = World(pops_from_backoff)
    for step, arguments in history:
        getattr(world, step)(*arguments)
        world.check()
    world.drain()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, st.booleans())
def test_no_pod_is_lost_or_queued_twice(history: list[tuple[str, tuple[Any, ...]]], pops_from_backoff: bool) -> None:
    play(history, pops_from_backoff)


@pytest.mark.nightly
@settings(max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, st.booleans())
def test_no_pod_is_lost_or_queued_twice_in_many_histories(
    history: list[tuple[str, tuple[Any, ...]]], pops_from_backoff: bool
) -> None:
    play(history, pops_from_backoff)
