"""A world: a cluster as it would be. Everything that is changed in it is undone when it closes.

In: changes and questions. Out: answers. A world copies nothing: it works on the cluster's own engine, and keeps an undo log.
Worlds nest as a stack. Only the innermost one may be asked or changed, and it closes first.

    cluster --what_if--> world 1 --what_if--> world 2         world 2 closes: its log is played back, world 1 is as before
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from kubesched.kube.api import Node, Pod
from kubesched.kube.values import MIRROR_POD
from kubesched.scheduler.cluster import PodView, zone_key
from kubesched.solver.cheapest import NewNodes, NodeTemplate, cheapest_nodes
from kubesched.solver.errors import BadObject, UnknownObject, WorldError
from kubesched.solver.filling import room_for
from kubesched.solver.objects import Given, node_of, numbered_node, object_of, pod_of, unplaced
from kubesched.solver.placing import Placing
from kubesched.solver.results import Fits, Placement, Room
from kubesched.solver.undo import UndoLog

if TYPE_CHECKING:
    from kubesched.solver.cluster import Cluster

MOST_PODS = 200_000
"""Of one `place`: more than Kubernetes supports in a whole cluster."""
MOST_NODES = 100_000
"""Of one `add_nodes`."""
_replace = msgspec.structs.replace


class World:
    """A cluster as it would be; a context manager."""

    def __init__(self, cluster: Cluster, parent: World | None) -> None:
        self.cluster = cluster
        self.undo = UndoLog()
        self._parent = parent
        self._is_open = False
        self._new_nodes: list[str] = []
        self._displaced: list[Pod] = []

    # Opening and closing

    def __enter__(self) -> World:
        self.cluster.open_world(self, self._parent)
        self._is_open = True
        slots = self.cluster.engine.store.slots
        self.undo.add(partial(slots.cut_back, slots.table.n))
        self._displaced = self._parent._displaced if self._parent is not None else []
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Undo everything; a world that is closed already stays so."""
        if not self._is_open:
            return
        self._check()
        self._is_open = False
        try:
            self.undo.play_back()
        finally:
            self.cluster.close_world(self)

    def what_if(self) -> World:
        """Open a world inside this one."""
        self._check()
        return World(self.cluster, self)

    def _check(self) -> None:
        if not self._is_open:
            raise WorldError("the world is closed, or was not entered; use it in a `with` statement")
        if self.cluster.innermost is not self:
            raise WorldError("the world has another world open inside it; close that one first")

    # Nodes

    def add_nodes(self, template: Given, count: int = 1) -> list[str]:
        """Add nodes like a template, NAME-0, NAME-1 and so on; return their names. Names that are taken are left out."""
        self._check()
        node = node_of(template)
        if not 0 <= count <= MOST_NODES:
            raise BadObject(f"node {node.metadata.name}: count: {count} is not between 0 and {MOST_NODES}")
        store, names, number = self.cluster.engine.store, list[str](), 0
        while len(names) < count:
            name = f"{node.metadata.name}-{number}"
            number += 1
            if store.node(name) is None:
                self._add_node(numbered_node(node, name))
                names.append(name)
        return names

    def _add_node(self, node: Node) -> None:
        store, name = self.cluster.engine.store, node.metadata.name
        store.put_node(node)
        self._new_nodes.append(name)
        self.undo.add(partial(self._undo_node, name))

    def _undo_node(self, name: str) -> None:
        self.cluster.engine.store.remove_node(name)
        self._new_nodes.remove(name)

    def new_nodes(self) -> list[str]:
        """Return the nodes that were added in this world and in those around it."""
        around = self._parent.new_nodes() if self._parent is not None else []
        return around + self._new_nodes

    def remove_node(self, name: str) -> list[str]:
        """Remove a node, and the pods on it with it; return these pods as namespace/name."""
        self._check()
        node, store = self._node(name), self.cluster.engine.store
        lost = [pod.key for pod in self._leave(list(store.pods_on(name).values()))]
        row = store.nodes.rows[name]
        images = {image: state.size for image, state in store.nodes.images.items()}
        self.undo.add(partial(store.order.restore, store.order.saved()))
        store.remove_node(name)
        self.undo.add(partial(store.restore_node, node, row, images))
        return lost

    def cordon(self, name: str, *, on: bool = True) -> None:
        """Let a node take no new pods; with `on=False`, let it take them again."""
        self._check()
        node, store = self._node(name), self.cluster.engine.store
        if node.spec.unschedulable != on:
            store.put_node(_replace(node, spec=_replace(node.spec, unschedulable=on)))
            self.undo.add(partial(store.put_node, node))

    def drain(self, name: str) -> list[str]:
        """Cordon a node and let its pods leave, but those of DaemonSets and of the node itself; return them as namespace/name.

        They wait for the next `place`, which places them with the pods that it is given.
        """
        self.cordon(name)
        moving = [pod for pod in self.cluster.engine.store.pods_on(name).values() if moves(pod.pod)]
        gone = self._leave(moving)
        self._displaced = [*self._displaced, *(unplaced(pod.pod) for pod in gone)]
        return [pod.key for pod in gone]

    def _node(self, name: str) -> Node:
        node = self.cluster.engine.store.node(name)
        if node is None:
            raise UnknownObject(f"node {name}: there is no such node")
        return node

    # Pods and other objects

    def add(self, objects: Iterable[Given]) -> None:
        """Add objects, or replace them; pods must have a node. Pods without one are for `place`."""
        self._check()
        store = self.cluster.engine.store
        for given in objects:
            obj = object_of(given)
            if isinstance(obj, Node):
                old = store.node(obj.metadata.name)
                node = node_of(obj)
                if old is None:
                    self._add_node(node)
                    continue
                if zone_key(node.metadata.labels or {}) != zone_key(old.metadata.labels or {}):
                    self.undo.add(partial(store.order.restore, store.order.saved()))
                store.put_node(node)
                self.undo.add(partial(store.put_node, old))
            elif isinstance(obj, Pod):
                self._add_pod(pod_of(obj))
            else:
                old = store.objects.put(obj)
                name, namespace = obj.metadata.name, obj.metadata.namespace or ""
                back = (
                    partial(store.objects.put, old)
                    if old is not None
                    else partial(store.objects.drop, type(obj), name, namespace)
                )
                self.undo.add(back)

    def _add_pod(self, pod: Pod) -> None:
        store = self.cluster.engine.store
        if not pod.spec.node_name:
            raise BadObject(f"pod {pod.key}: spec.nodeName is empty; place it")
        self._refuse_known(pod)
        self.save_group(pod)
        view = store.put_pod(pod)
        self.undo.add(partial(store.remove_pod, view.uid))
        self.cluster.know(view, self.undo)
        if store.groups.are_kept:
            store.groups.put(view)

    def _refuse_known(self, pod: Pod) -> None:
        known = self.cluster.find(pod.key)
        if known is not None and known.node_name:
            raise BadObject(f"pod {pod.key}: it is there already, on node {known.node_name}")

    def delete(self, *pods: Given | str) -> None:
        """Delete pods that are on nodes."""
        self._check()
        for given in pods:
            key = self.cluster.key_of(given)
            found = self.cluster.find(key)
            if found is None or not found.node_name:
                raise UnknownObject(f"pod {key}: {'it is on no node' if found is not None else 'there is no such pod'}")
            self.let_go(found.uid)

    def _leave(self, pods: Iterable[PodView]) -> list[PodView]:
        return [gone for pod in pods if (gone := self.let_go(pod.uid)) is not None]

    def let_go(self, uid: str) -> PodView | None:
        """Let a placed pod leave, with what is reserved for it; return it, or None if it is not there."""
        engine, store = self.cluster.engine, self.cluster.engine.store
        pod = store.pod(uid)
        if pod is None:
            return None
        self.save_group(pod.pod)
        binding = engine.bookings.take_out(uid)
        if binding is not None:
            self.undo.add(partial(engine.bookings.put_back, binding))
        self.undo.add(partial(store.put_back, store.take_out(uid)))
        if store.groups.are_kept:
            store.groups.drop(pod)
        self.cluster.forget(pod, self.undo)
        return pod

    def save_group(self, pod: Pod) -> None:
        """Remember as it is now the group that a pod is in, or comes into."""
        groups = self.cluster.engine.store.groups
        if groups.are_kept:
            for key, before in groups.saved(self.cluster.engine.store.view(pod)):
                self.undo.add(partial(groups.restore, key, before))

    def save_nominations(self) -> None:
        """Remember who is nominated where."""
        nominations = self.cluster.engine.queue.nominations
        self.undo.add(partial(nominations.restore, nominations.saved()))

    # Asking

    def fits(self, pod: Given | str, *, nodes: bool = True) -> Fits:
        """Return where a pod fits in this world, as `Cluster.fits`."""
        self._check()
        return self.cluster.fits_now(pod, nodes=nodes)

    def why(self, pod: Given | str, *, top: int = 5, preempt: bool = False) -> dict[str, Any]:
        """Return why a pod is pending, or is where it is, in this world, as `Cluster.why`."""
        self._check()
        return self.cluster.why_now(pod, top=top, preempt=preempt)

    def capacity(self, pod: Given | str, *, limit: int | None = None) -> Room:
        """Return how many more of a pod fit in this world, as `Cluster.capacity`."""
        if limit is not None and limit < 1:
            raise BadObject(f"capacity: limit: {limit} is not 1 or more")
        asked = self.cluster.view_of(pod)[0].pod
        with self.what_if() as world:
            return room_for(world, asked, limit)

    def cheapest_nodes(self, pods: Iterable[Given | str], templates: Sequence[NodeTemplate]) -> NewNodes:
        """Return the cheapest nodes to add to this world, as `Cluster.cheapest_nodes`."""
        self._check()
        asked = [*self._displaced, *self._asked(pods)]
        with self.what_if() as world:
            return cheapest_nodes(world, asked, templates)

    def place(self, pods: Iterable[Given | str] = (), *, preempt: bool = False) -> Placement:
        """Place pods, and those that a drain displaced, in scheduling order; return who got which node, and who waits and why.

        Placed pods stay in the world. Of those that wait only the displaced ones do; a later `place` may be given the others
        again. With `preempt` pods of lower priority leave where that helps; they are listed, and not placed again.
        """
        self._check()
        displaced = self._displaced
        found = Placing(self, [*displaced, *self._asked(pods)], preempts=preempt).run()
        if displaced:
            self._displaced = [pod for pod, told in zip(displaced, found.pods, strict=False) if not told.node]
        return found

    def _asked(self, pods: Iterable[Given | str]) -> Iterator[Pod]:
        if isinstance(pods, str | Mapping | Pod):
            raise BadObject("place: expected a list of pods, found a single one")
        seen = {pod.key for pod in self._displaced}
        for given in pods:
            found = self.cluster.pending_pod(given) if isinstance(given, str) else pod_of(given)
            if found.key in seen:
                raise BadObject(f"pod {found.key}: it is given twice")
            seen.add(found.key)
            if len(seen) > MOST_PODS:
                raise BadObject(f"place: there are more than {MOST_PODS} pods")
            self._refuse_known(found)
            yield unplaced(found)


def moves(pod: Pod) -> bool:
    """Return whether a pod is made again elsewhere when its node is drained: those of the node itself are not."""
    owner = pod.metadata.controller()
    is_daemon = owner is not None and owner.kind == "DaemonSet"
    return not is_daemon and MIRROR_POD not in pod.metadata.annotations and pod.metadata.deletion_timestamp is None
