"""The intake: applies changes of API objects to the store and the queue, and wakes the pods that they may help.

A pod with a node goes to the store. A pod without a node goes to the queue if its schedulerName is one of our profiles; pods
of other schedulers are ignored until they have a node. The intake keeps the newest version of each of our pods without a node
(`pod`), because a failed attempt parks that version and not the one that it tried. An object with an unreadable field is
logged in one line and left out; `apply` never raises for it.
"""

from __future__ import annotations

import logging
import time
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

from kubesched.errors import SchedulerError
from kubesched.kube.api import (
    INFO,
    CompositePodGroup,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DeviceClass,
    DeviceTaintRule,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodGroup,
    ResourceClaim,
    ResourceSlice,
    StorageClass,
    TopLevel,
    VolumeAttachment,
    is_resize_deferred,
)
from kubesched.scheduler.cluster import DeviceClaims, Groups, PodView, Store
from kubesched.scheduler.config import Gates
from kubesched.scheduler.engine.arrivals import prechecks
from kubesched.scheduler.engine.arrivals.changes import node_changes, pod_changes
from kubesched.scheduler.framework import (
    ADD,
    ASSIGNED_POD,
    DELETE,
    NODE,
    TARGET_POD,
    UNSCHEDULABLE_POD,
    UNSCHEDULED_POD,
    UPDATE,
    Action,
    ClusterEvent,
    FeatureGates,
    wakeups,
)
from kubesched.scheduler.queue import Queue

POD_CAME = ClusterEvent(ASSIGNED_POD, int(ADD))
POD_CHANGED = ClusterEvent(ASSIGNED_POD, int(UPDATE))
POD_WENT = ClusterEvent(ASSIGNED_POD, int(DELETE))
NODE_CAME = ClusterEvent(NODE, int(ADD))
NODE_WENT = ClusterEvent(NODE, int(DELETE))
CLAIM_CHANGED = ClusterEvent(wakeups.RESOURCE_CLAIM, int(UPDATE))
SLICE_CHANGED = ClusterEvent(wakeups.RESOURCE_SLICE, int(UPDATE))

_OVER = frozenset({"Succeeded", "Failed"})

_RESOURCES: dict[type[TopLevel], str] = {
    PersistentVolume: wakeups.PV,
    PersistentVolumeClaim: wakeups.PVC,
    CSINode: wakeups.CSI_NODE,
    CSIDriver: wakeups.CSI_DRIVER,
    CSIStorageCapacity: wakeups.CSI_CAPACITY,
    StorageClass: wakeups.STORAGE_CLASS,
    VolumeAttachment: wakeups.VOLUME_ATTACHMENT,
    ResourceClaim: wakeups.RESOURCE_CLAIM,
    ResourceSlice: wakeups.RESOURCE_SLICE,
    DeviceClass: wakeups.DEVICE_CLASS,
    PodGroup: wakeups.POD_GROUP,
    CompositePodGroup: wakeups.COMPOSITE_POD_GROUP,
}

log = logging.getLogger(__name__)


RejectWaiting = Callable[[str], bool]
"""uid -> whether the pod was waiting at Permit, and is refused now because it is being removed"""

Handled = Callable[[str, float], None]
"""(event's label, seconds that handling it took)"""

NodeChanged = Callable[[Node | None, Node | None], None]
"""(before, after), called once the store has the change"""


def nobody_waits(uid: str) -> bool:
    """Return False: for runs without Permit."""
    return False


class Intake:
    """Applies what the watches deliver."""

    def __init__(
        self,
        store: Store,
        queue: Queue,
        profile_names: Collection[str],
        *,
        gates: FeatureGates | None = None,
        reject_waiting: RejectWaiting = nobody_waits,
        members: Groups | None = None,
        handled: Handled | None = None,
        node_changed: NodeChanged | None = None,
    ) -> None:
        self._node_changed = node_changed
        self._store = store
        self._queue = queue
        self._profiles = frozenset(profile_names)
        given = gates if gates is not None else Gates.defaults()
        self._claims = store.objects.shared(DeviceClaims)
        self._has_features = given.is_enabled("NodeDeclaredFeatures")
        self._has_gangs = given.is_enabled("GangScheduling")
        self._tells_scale_up = given.behaviour.tells_scale_up
        is_newer = given.behaviour.names_target_pod
        self._pending_as, self._target_as = (
            (UNSCHEDULED_POD, TARGET_POD) if is_newer else (UNSCHEDULABLE_POD, UNSCHEDULABLE_POD)
        )
        self._pending_came = ClusterEvent(self._pending_as, int(ADD))
        self._pending_changed = ClusterEvent(self._pending_as, int(UPDATE))
        self._pending_went = ClusterEvent(self._pending_as, int(DELETE))
        # Without hints a fixed precheck decides which pods an event may wake (`prechecks`).
        self._asks_hints = given.is_enabled("SchedulerQueueingHints")
        self._has_resizes = given.is_enabled("InPlacePodVerticalScalingSchedulerPreemption")
        self._reject_waiting = reject_waiting
        self._members = members
        self._handled = handled
        self._pending: MutableMapping[str, PodView] = {}
        queue.nominations.verify_with(self.pod)

    def pod(self, key: str) -> PodView | None:
        """Return the newest version of a pod of ours without a node, by its namespace/name."""
        return self._pending.get(key)

    def pending(self) -> Iterable[PodView]:
        """Return the newest versions of our pods without a node."""
        return self._pending.values()

    @property
    def n_pending(self) -> int:
        """Return how many pods of ours have no node."""
        return len(self._pending)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Forget at the end of the context which pods without a node came meanwhile."""
        known, self._pending = self._pending, ChainMap({}, self._pending)
        try:
            yield
        finally:
            self._pending = known

    def apply(self, kind: str, old: Any | None, new: Any | None) -> None:
        """Take in one change. `kind` is the object's kind, or `plural.version.group` if we have no struct for it.

        Example: pod web-1, which is ours, in its four changes:

            added without a node      queue.add
            gets labels               queue.update
            appears with a node       store.put_pod confirms the booking, queue.delete
            deleted                   store.remove_pod, and pods that wait for room are woken
        """
        started = time.perf_counter()
        try:
            if kind == "Node":
                handled = self._apply_node(old, new)
            elif kind != "Pod":
                handled = self._apply_object(kind, old, new)
            else:
                # A pod that has ended counts as gone. Most watches leave such pods out already.
                if old is not None and old.status.phase in _OVER:
                    old = None
                if new is not None and new.status.phase in _OVER:
                    new = None
                handled = []
                # The same name with another uid is another pod. The old one goes first, so that its room is free before the new
                # one is taken in.
                if old is not None and (new is None or old.metadata.uid != new.metadata.uid):
                    handled += self._delete_pod(old)
                    old = None
                if new is None:
                    pass
                elif old is None:
                    handled += self._add_pod(new)
                elif old.spec.node_name:
                    handled += self._put_placed(old, new)
                elif new.spec.node_name:
                    # The usual end of a binding of ours: put_pod finds the assumed pod and confirms it. The same lines take in
                    # a pod that another scheduler, or a user, has bound.
                    known = self._pending.pop(old.key, None)
                    handled += self._put_placed(None, new)
                    if old.spec.scheduler_name in self._profiles:
                        # Usually the pod is in flight or done, but another scheduler may have bound it while it was queued.
                        self._queue.delete(known or self._store.view(old))
                        handled.append(self._pending_went)
                elif old.spec.scheduler_name in self._profiles:
                    handled += self._update_pending(old, new)
        except SchedulerError as error:
            log.error("%s left out: %s", kind, error)
            return
        if self._handled is not None:
            seconds = time.perf_counter() - started
            for event in dict.fromkeys(handled):
                self._handled(event.label, seconds)

    # Each of these returns the events that the change was, for metrics.

    def _add_pod(self, pod: Pod) -> list[ClusterEvent]:
        if pod.spec.node_name:
            return self._put_placed(None, pod)
        if pod.spec.scheduler_name not in self._profiles:
            return []
        view = self._pending[pod.key] = self._store.view(pod)
        if self._members is not None:
            self._members.put(view)
        # At a reload the new intake gets all pods without a node, also those whose binding is still under way. These must not
        # be tried again.
        if self._store.is_assumed(view.uid):
            return []
        self._queue.add(view)
        # A new member may complete a gang, and its parked members wait for this event.
        if self._has_gangs:
            self._queue.wake(self._pending_came, None, pod)
        elif self._members is not None and (group := self._members.key_of(view)) is not None:
            # A plugin's group may be complete now. No other pod is helped by a pod without a node.
            key_of = self._members.key_of
            self._queue.wake(self._pending_came, None, pod, concerns=lambda other: key_of(other) == group)
        return [self._pending_came]

    def _put_placed(self, old: Pod | None, new: Pod) -> list[ClusterEvent]:
        """Take in a pod with a node: one that comes (`old` None), which may confirm a booking of ours, or one that changed."""
        events, before = [POD_CAME if old is None else POD_CHANGED], None
        try:
            if old is not None:
                before = self._store.pod(old.metadata.uid)
                # The stored view is used only if it was made from exactly this version. Otherwise a view of the watch's old
                # version is made for the comparison.
                if before is None or before.pod is not old:
                    before = self._store.view(old)
            after = self._store.put_pod(new)
            if self._members is not None:
                self._members.put(after)
            if before is not None:
                events = pod_changes(before, after, tells_scale_up=self._tells_scale_up)
        except SchedulerError as error:
            problem = "is not counted on" if old is None else "keeps what it was counted for on"
            log.error("pod %s %s node %s: %s", new.key, problem, (old or new).spec.node_name, error)
        for event in events:
            concerns = None
            if not self._asks_hints and event.action != Action.POD_SCALE_DOWN:
                # Without hints, only a pod that needs less now wakes all others.
                concerns = prechecks.counts_pod(new, self._queue, self._store.objects)
            self._queue.wake(event, old, new, concerns)
        if self._has_resizes:
            self._follow_resize(old, new, events)
        return events if old is None else [POD_CHANGED, *events]

    def _follow_resize(self, old: Pod | None, new: Pod | None, events: Sequence[ClusterEvent]) -> None:
        """Keep a placed pod of ours in the queue for as long as the kubelet has deferred a resize of it."""
        # Such a pod is in the store, with its node, and in the queue at the same time. `_pending` has it too, because a failed
        # attempt looks its newest version up there.
        some = new if new is not None else old
        assert some is not None
        if some.spec.scheduler_name not in self._profiles:
            return
        is_deferred = new is not None and is_resize_deferred(new)
        known = self._pending.get(some.key)
        if is_deferred:
            assert new is not None
            view = self._pending[new.key] = self._store.view(new)
            if known is None or old is None:
                self._queue.add(view)
            else:
                self._queue.update(old, view, events)
        elif known is not None and known.uid == some.metadata.uid:
            del self._pending[some.key]
            self._queue.delete(known)

    def _update_pending(self, old: Pod, new: Pod) -> list[ClusterEvent]:
        version = new.metadata.resource_version
        # As in kube-scheduler: an update without a new version could queue a pod that is being tried a second time.
        if version and version == old.metadata.resource_version:
            return []
        before = self._pending.get(old.key) or self._store.view(old)
        after = self._pending[new.key] = self._store.view(new)
        if self._members is not None:
            self._members.put(after)
        if self._store.is_assumed(after.uid):
            # The booking stays as it is. Only a deletion must be acted on at once.
            if new.metadata.deletion_timestamp is not None and old.metadata.deletion_timestamp is None:
                self._give_up_booking(after.uid)
            return []
        events = pod_changes(before, after, pending_as=self._target_as, tells_scale_up=self._tells_scale_up)
        self._queue.update(old, after, events)
        nominated = old.status.nominated_node_name
        # Pods of equal or lower priority treated this pod as if it ran there. To them its leaving is a deletion.
        if nominated and nominated != new.status.nominated_node_name:
            self._leave_nominated_node(old)
        return [self._pending_changed, *(event._replace(resource=self._pending_as) for event in events)]

    def _delete_pod(self, pod: Pod) -> list[ClusterEvent]:
        if pod.spec.node_name:
            try:
                # First out of the store, then the wake-up: hints and prechecks must see the room free.
                view = self._store.remove_pod(pod.metadata.uid)
                if self._members is not None:
                    self._members.drop(view)
            except SchedulerError as error:
                log.error("pod %s: %s", pod.key, error)
            self._queue.wake(POD_WENT, pod, None)
            if self._has_resizes:
                self._follow_resize(pod, None, ())
            return [POD_WENT]
        if pod.spec.scheduler_name not in self._profiles:
            return []
        pending = self._pending.pop(pod.key, None) or self._store.view(pod)
        self._queue.delete(pending)
        if self._members is not None:
            self._members.drop(pending)
        if self._store.is_assumed(pending.uid):
            self._give_up_booking(pending.uid)
        elif pod.status.nominated_node_name:
            self._leave_nominated_node(pod)
        return [self._pending_went]

    def _give_up_booking(self, uid: str) -> None:
        """Free the room of an assumed pod that is being deleted. If it waits at Permit it is refused, and its binding cycle
        frees the room. Otherwise its binding is under way and will fail, so the room is freed here."""
        booked = self._store.pod(uid)
        if booked is None:
            return
        if not self._reject_waiting(uid):
            self._store.forget(uid)
        self._queue.wake(POD_WENT, booked.pod, None)

    def _leave_nominated_node(self, pod: Pod) -> None:
        """Wake the pods for which a nominated pod counted on its node: those of the same or a lower priority."""
        priority = pod.priority
        self._queue.wake(POD_WENT, pod, None, concerns=lambda waiting: waiting.priority <= priority)

    # Nodes

    def _apply_node(self, old: Node | None, new: Node | None) -> list[ClusterEvent]:
        if new is None:
            assert old is not None
            # Kept order: kube-scheduler wakes before it removes the node from its cache. A hint may still look at the node.
            self._queue.wake(NODE_WENT, old, None)
            self._store.remove_node(old.metadata.name)
            if self._node_changed is not None:
                self._node_changed(old, None)
            return [NODE_WENT]
        known = self._store.put_node(new)
        before = old if old is not None else known
        if self._node_changed is not None:
            self._node_changed(before, new)
        admits = None if self._asks_hints else prechecks.admitted_to(new.metadata.name, self._store)
        if before is None:
            self._queue.wake(NODE_CAME, None, new, admits)
            return [NODE_CAME]
        events = node_changes(before, new, with_features=self._has_features)
        for event in events:
            self._queue.wake(event, before, new, admits)
        return events

    # Everything else

    def _apply_object(self, kind: str, old: Any | None, new: Any | None) -> list[ClusterEvent]:
        some = new if new is not None else old
        if some is None:
            return []
        resource, known_as = _resource_of(kind, type(some)), type(some) if type(some) in INFO else kind
        if known_as is ResourceClaim:
            # A device may be allocated and freed again between two events of the watch. Only compared with our own assumed
            # allocation it is a change.
            old = self._claims.before(old, new)
        if new is None:
            self._store.objects.drop(known_as, some.metadata.name, some.metadata.namespace or "")
            event = ClusterEvent(resource, int(DELETE))
        else:
            replaced = self._store.objects.put(new, known_as)
            old = old if old is not None else replaced
            event = ClusterEvent(resource, int(ADD if old is None else UPDATE))
        if self._asks_hints or prechecks.may_help_volumes(event, new):
            self._queue.wake(event, old, new)
        if isinstance(some, DeviceTaintRule):
            # Rules are read as part of the slices whose devices they taint.
            self._queue.wake(SLICE_CHANGED, None, None)
        return [event] if self._queue.is_of_interest(event) else []


def _resource_of(kind: str, type_: type[Any]) -> str:
    """Return the name under which plugins wait for objects of a kind."""
    known = _RESOURCES.get(type_)
    if known is not None:
        return known
    info = INFO.get(type_)
    return f"{info.plural}.{info.version}.{info.group}" if info is not None else kind
