"""The store: the scheduler's state of the cluster, with the pods that are assumed on a node but not confirmed yet.

In: API objects from the intake, bookings from the loop. Out: snapshots. The store never uses the network and never reads a
clock.

A pod is absent, assumed or confirmed:  absent -assume-> assumed -put_pod-> confirmed -remove_pod-> absent,
and assumed -forget-> absent.  A pod may name a node that is not here, because the pod came first or the node is gone. The store
keeps such a pod and counts it when the node appears.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from kubesched.errors import SchedulerError
from kubesched.kube.api import Node, Pod, TopLevel
from kubesched.scheduler.cluster.groups import Groups
from kubesched.scheduler.cluster.journal import STARTED, USAGE, Change, Journal
from kubesched.scheduler.cluster.nodes import NodeColumns, node_images
from kubesched.scheduler.cluster.objects import Objects
from kubesched.scheduler.cluster.pods import Gates, PodView, Templates
from kubesched.scheduler.cluster.pods_on_node import NOBODY, PodsOnNode
from kubesched.scheduler.cluster.slots import PodSlots
from kubesched.scheduler.cluster.snapshot import ClusterTables, Snapshot
from kubesched.scheduler.cluster.topology import VisitOrder


class StoreError(SchedulerError):
    """A call that does not fit the state of the pod or node it names; nothing was changed."""


class TakenOut(NamedTuple):
    """A placed pod that was removed: where it stood among the pods of its node, and whether it was only booked."""

    pod: PodView
    at: int
    is_assumed: bool


class Aside:
    """Placed pods that are taken out of the store for a while, for a what-if."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._gone: dict[str, PodView] = {}
        self._order: dict[str, list[str]] = {}

    def take(self, pod: PodView) -> None:
        """Take a placed pod out."""
        self._order.setdefault(pod.node_name, list(self._store.pods_on(pod.node_name)))
        self._store._remove(pod)
        self._gone[pod.uid] = pod

    def give_back(self, pod: PodView) -> None:
        """Put a pod back that was taken out."""
        self._store._add(self._gone.pop(pod.uid))

    def end(self) -> None:
        """Put all pods back, and restore the order of the pods on each node."""
        for pod in list(self._gone.values()):
            self.give_back(pod)
        for name, order in self._order.items():
            self._store._on_node[name].reorder(order)


class Store:
    """The state of the cluster. Only the engine calls the methods that change it."""

    def __init__(self, gates: Gates | None = None) -> None:
        self.templates = Templates(gates)
        self.objects = Objects()
        self.nodes = NodeColumns(self.templates.resources)
        self.slots = PodSlots()
        self.journal = Journal()
        self.order = VisitOrder()
        self.groups = Groups()
        self.structure = 0
        self._pods: dict[str, PodView] = {}
        self._assumed: set[str] = set()
        self._on_node: dict[str, PodsOnNode] = {}
        self._snapshot: Snapshot | None = None

    def put(self, obj: TopLevel) -> None:
        """Put an object of any kind: a node, a pod that has a node, or another kind that plugins read."""
        if isinstance(obj, Node):
            self.put_node(obj)
        elif isinstance(obj, Pod):
            self.put_pod(obj)
        else:
            self.objects.put(obj)

    # Nodes

    def put_node(self, node: Node) -> Node | None:
        """Add a node, or take in its new version; return the version it replaces."""
        name = node.metadata.name
        row = self.nodes.rows.get(name)
        self.order.put(name, node.metadata.labels or {})
        if row is not None:
            old = self.nodes.objects[row]
            what, labels = self.nodes.replace(row, node)
            if what:
                self.journal.append(Change(row, what, labels=labels))
            return old
        row = self.nodes.add(node)
        self._restructured()
        for pod in self._on_node.setdefault(name, PodsOnNode()).pods:
            self.nodes.use(row, pod.template, 1)
            self.slots.add(pod, row)
        return None

    def remove_node(self, name: str) -> Node:
        """Remove a node; its pods are kept aside until they go, or the node comes back."""
        row = self.nodes.rows.get(name)
        if row is None:
            raise StoreError(f"node {name} is not found")
        node = self.nodes.objects[row]
        for pod in reversed(self._on_node.get(name, NOBODY).pods):  # so that the next pods get these slots in their order
            self.slots.remove(pod)
        if not self._on_node.get(name):
            self._on_node.pop(name, None)
        moved_from = self.nodes.remove(row)
        if moved_from != row:
            for pod in self._on_node.get(self.nodes.names[row], NOBODY).pods:
                self.slots.row.data[pod.slot] = row
        self.order.drop(name)
        self._restructured()
        return node

    def node(self, name: str) -> Node | None:
        """Return a node's newest version, or None."""
        row = self.nodes.rows.get(name)
        return self.nodes.objects[row] if row is not None else None

    # Pods

    def view(self, pod: Pod) -> PodView:
        """Return a pod as numbers. The store does not change."""
        view = self.templates.view(pod)
        if len(self.nodes.requested) < len(self.templates.resources.values):
            self.nodes.track_resources()  # the pod names a new resource
        return view

    def put_pod(self, pod: Pod) -> PodView:
        """Add a pod that has a node, take in its new version, or confirm a booking.

        The API is right: a booking for another node moves to the node that the API names.
        """
        view = self.view(pod)
        if not view.uid:
            raise StoreError(f"pod {view.key}: metadata.uid is empty")
        if not view.node_name:
            raise StoreError(f"pod {view.key}: spec.nodeName is empty")
        old = self._pods.get(view.uid)
        self._assumed.discard(view.uid)
        if old is not None:
            if old.node_name == view.node_name and old.template is view.template and not view.pod.spec.volumes:
                self._pods[view.uid] = view
                is_moved = self._on_node[view.node_name].replace(view)
                if old.slot >= 0:
                    self.slots.replace(old, view)
                    row = int(self.slots.row.data[view.slot])
                    if is_moved:
                        self.slots.reordered.append(row)
                    if old.pod.status.start_time != pod.status.start_time:
                        self.journal.append(Change(row, STARTED))
                return view
            self._remove(old)
        self._add(view)
        return view

    def remove_pod(self, uid: str) -> PodView:
        """Remove a pod, booked or confirmed."""
        pod = self._pods.get(uid)
        if pod is None:
            raise StoreError(f"pod {uid} is not found in scheduler cache, so cannot be removed from it")
        self._assumed.discard(uid)
        self._remove(pod)
        return pod

    def assume(self, pod: PodView, node_name: str) -> PodView:
        """Book a pod onto a node before the API says so; return it as it will be there."""
        if pod.uid in self._pods:
            raise StoreError(f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed")
        booked = pod.on(node_name)
        self._assumed.add(pod.uid)
        self._add(booked)
        if self.groups.are_kept:
            self.groups.assume(booked)
        return booked

    def forget(self, uid: str) -> PodView | None:
        """Undo a booking; return it, or None if the pod is not here at all."""
        pod = self._pods.get(uid)
        if pod is None:
            return None
        if uid not in self._assumed:
            raise StoreError(f"pod {uid}({pod.key}) wasn't assumed so cannot be forgotten")
        self._assumed.discard(uid)
        self._remove(pod)
        if self.groups.are_kept:
            self.groups.forget(uid)
        return pod

    # Undoing: each of these is the exact inverse of a change, if everything that came after it was undone before

    def take_out(self, uid: str) -> TakenOut:
        """Remove a placed pod as `remove_pod`, and return what `put_back` needs."""
        pod = self._pods.get(uid)
        if pod is None:
            raise StoreError(f"pod {uid} is not found in scheduler cache, so cannot be removed from it")
        taken = TakenOut(pod, self._on_node[pod.node_name].place_of(uid), uid in self._assumed)
        self.remove_pod(uid)
        return taken

    def put_back(self, taken: TakenOut) -> None:
        """Undo `take_out`: the pod stands in its place among the pods of its node."""
        pod = taken.pod
        if taken.is_assumed:
            self._assumed.add(pod.uid)
        self._pods[pod.uid] = pod
        self._on_node.setdefault(pod.node_name, PodsOnNode()).put_back(pod, taken.at)
        row = self.nodes.rows.get(pod.node_name)
        if row is not None:
            self.nodes.use(row, pod.template, 1)
            self.slots.add(pod, row)
            self.journal.append(Change(row, USAGE, pod, 1))

    def restore_node(self, node: Node, row: int, images: Mapping[str, int]) -> None:
        """Undo `remove_node`: the node has its row again, and the node that took that row has the last one.

        `images` has the sizes of images before. The order in which nodes are visited is restored with `order`.
        """
        name = node.metadata.name
        self.nodes.restore(node, row)
        for image in node_images(node):
            self.nodes.images[image].size = images[image]
        self.order.put(name, node.metadata.labels or {})
        for pod in self._on_node.setdefault(name, PodsOnNode()).pods:
            self.nodes.use(row, pod.template, 1)
            self.slots.add(pod, row)
        last = len(self.nodes) - 1
        if last != row:
            for pod in self._on_node.get(self.nodes.names[last], NOBODY).pods:
                self.slots.row.data[pod.slot] = last
        self._restructured()

    @contextmanager
    def without(self, pods: Iterable[PodView]) -> Iterator[Aside]:
        """Take placed pods out for the time of a `with` block; then put them back in their order.

        The whole store changes for this time, so nothing else may read it meanwhile.
        """
        aside = Aside(self)
        try:
            for pod in pods:
                aside.take(pod)
            yield aside
        finally:
            aside.end()

    def is_assumed(self, uid: str) -> bool:
        """Return whether a pod is booked and not yet confirmed."""
        return uid in self._assumed

    def pod(self, uid: str) -> PodView | None:
        """Return a placed pod, booked or confirmed."""
        return self._pods.get(uid)

    def pods(self) -> Iterator[PodView]:
        """Yield all placed pods, also those whose node is not here."""
        yield from self._pods.values()

    def pods_on(self, node_name: str) -> PodsOnNode:
        """Return the pods of a node by uid; borrowed."""
        return self._on_node.get(node_name, NOBODY)

    @property
    def n_assumed(self) -> int:
        """Return how many pods are booked and not yet confirmed."""
        return len(self._assumed)

    @property
    def n_pods(self) -> int:
        """Return how many pods are placed, booked or confirmed."""
        return len(self._pods)

    # Reading

    def snapshot(self) -> Snapshot:
        """Return the read-only view that a cycle works on. It is not a copy: it changes with the store."""
        if self._snapshot is None:
            self._snapshot = Snapshot(
                ClusterTables(
                    self.nodes,
                    self.slots,
                    self.objects,
                    self.templates,
                    self.journal,
                    self.order,
                    self._on_node,
                    self.structure,
                )
            )
        return self._snapshot

    def _add(self, pod: PodView) -> None:
        self._pods[pod.uid] = pod
        on_node = self._on_node.get(pod.node_name)
        if on_node is None:
            on_node = self._on_node[pod.node_name] = PodsOnNode()
        on_node.add(pod)
        row = self.nodes.rows.get(pod.node_name)
        if row is not None:
            self.nodes.use(row, pod.template, 1)
            self.slots.add(pod, row)
            self.journal.append(Change(row, USAGE, pod, 1))

    def _remove(self, pod: PodView) -> None:
        del self._pods[pod.uid]
        neighbours = self._on_node[pod.node_name]
        neighbours.remove(pod.uid)
        row = self.nodes.rows.get(pod.node_name)
        if row is None:
            if not neighbours:
                del self._on_node[pod.node_name]
            return
        self.nodes.use(row, pod.template, -1)
        self.slots.remove(pod)
        self.journal.append(Change(row, USAGE, pod, -1))

    def _restructured(self) -> None:
        self.structure += 1
        self.journal.restart()
        self.slots.reordered.restart()
        self._snapshot = None
