"""Small worlds for the queue: a clock to move by hand, plugins that say what the test wants, pods in one line."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kubesched.kube.api.meta import ObjectMeta
from kubesched.kube.api.pod import Pod, PodSchedulingGroup, PodSpec, PodStatus
from kubesched.scheduler.cluster import PodView, Store
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework import Plugin, Profile, unresolvable
from kubesched.scheduler.framework.wakeups import ADD, DELETE, NODE, POD, Action, ClusterEvent, on
from kubesched.scheduler.plugins.priority_sort import PrioritySort
from kubesched.scheduler.queue import Queue, QueueOptions
from kubesched.testing import FakeClock

NODE_ADDED = ClusterEvent(NODE, int(ADD))
NODE_DELETED = ClusterEvent(NODE, int(DELETE))
NODE_LABELS = ClusterEvent(NODE, int(Action.NODE_LABELS))
NODE_TAINTS = ClusterEvent(NODE, int(Action.NODE_TAINTS))
POD_DELETED = ClusterEvent("AssignedPod", int(DELETE))
POD_UPDATED = ClusterEvent("UnschedulablePod", int(Action.UPDATE))
POD_LABELS = ClusterEvent("UnschedulablePod", int(Action.POD_LABELS))
GATES_GONE = ClusterEvent("UnschedulablePod", int(Action.POD_GATES_GONE))

STORE = Store()
SCHEDULER = "default-scheduler"


class Fussy(Plugin):
    """Refuses pods, and is told by the test what its hint says."""

    wakes_on = (on(NODE, ADD | Action.NODE_LABELS, "may_help"), on(POD, DELETE | Action.POD_LABELS, "may_help"))
    answer: Any = True

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        super().__init__(args, handle)
        self.asked: list[str] = []

    def filter_node(self, pod, node, state):
        return "no"

    def may_help(self, pod, old, new):
        self.asked.append(pod.name)
        return self.answer(pod, old, new) if callable(self.answer) else self.answer


class Picky(Fussy):
    """A second one of these."""


class Gate(Plugin):
    """Keeps back the pods that the test names."""

    wakes_on = (on(NODE, ADD), on(POD, Action.POD_GATES_GONE))

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        super().__init__(args, handle)
        self.closed_for: set[str] = set()
        self.asked: list[str] = []

    def pre_enqueue(self, pod):
        self.asked.append(pod.name)
        return unresolvable("closed") if pod.name in self.closed_for else None


class Counting:
    """Counts what the queue tells."""

    def __init__(self) -> None:
        self.incoming: Counter[tuple[str, str]] = Counter()
        self.unschedulable_pods: Counter[tuple[str, str]] = Counter()
        self.hints: Counter[tuple[str, str, str]] = Counter()
        self.broken: list[tuple[str, str, str]] = []

    def queue_incoming(self, queue: str, event: str) -> None:
        self.incoming[queue, event] += 1

    def unschedulable(self, plugin: str, profile: str, change: int) -> None:
        self.unschedulable_pods[plugin, profile] += change

    def hint(self, plugin: str, event: str, answer: str, seconds: float) -> None:
        assert seconds >= 0
        self.hints[plugin, event, answer] += 1

    def broke(self, plugin: str, point: str, pod: str, error: Exception) -> None:
        self.broken.append((plugin, point, pod))


class World:
    """A queue with its clock, its plugins and who counts."""

    def __init__(self, **options: Any) -> None:
        self.clock = FakeClock(1000.0)
        self.handle = EngineHandle(STORE.objects)
        self.fussy, self.picky, self.gate = Fussy(), Picky(), Gate()
        self.counts = Counting()
        self.queue = Queue([self.profile(SCHEDULER)], self.clock, QueueOptions(**options), self.counts)

    def profile(self, name: str) -> Profile:
        return Profile(
            name,
            {
                "queue_sort": [(PrioritySort(None, self.handle), 0)],
                "pre_enqueue": [(self.gate, 0)],
                "filter": [(self.fussy, 0), (self.picky, 0)],
            },
        )

    def refuse(self, view: PodView, *plugins: str, pending: tuple[str, ...] = ()) -> None:
        """Let a pod be tried in vain."""
        entry = self.queue.find(view.key)
        assert entry is not None
        popped = self.queue.take(view)
        assert popped is entry
        self.queue.park(popped, plugins, pending)

    def names(self, place: str) -> list[str]:
        return sorted(entry.view.name for entry in self.queue if self.queue.place_of(entry.key) == place)

    def pop_names(self) -> list[str]:
        found = []
        while (entry := self.queue.pop()) is not None:
            found.append(entry.view.name)
        return found


def pod(
    name: str,
    *,
    priority: int | None = None,
    scheduler: str = SCHEDULER,
    nominated: str = "",
    uid: str = "",
    labels: dict[str, str] | None = None,
    group: str = "",
    node: str = "",
) -> PodView:
    """Return a pod."""
    return STORE.view(
        Pod(
            metadata=ObjectMeta(name=name, namespace="team-a", uid=uid or f"uid-{name}", labels=labels or {}),
            spec=PodSpec(
                priority=priority,
                scheduler_name=scheduler,
                node_name=node,
                scheduling_group=PodSchedulingGroup(pod_group_name=group) if group else None,
            ),
            status=PodStatus(nominated_node_name=nominated),
        )
    )
