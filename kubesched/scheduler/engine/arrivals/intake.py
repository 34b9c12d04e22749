"""The intake: turns an arrival into calls on the store and the queue.

In: changes of API objects as the watches deliver them, `apply(kind, old, new)`: no old for an addition, no new for a
deletion. Out: the store knows the object, the queue knows the pod, and pods that waited for such a change are woken.

A pod that has a node belongs to the store. One that has none, and names one of our profiles, belongs to the queue. The
pods of other schedulers that have no node are nobody's. The intake also remembers our pods without a node as the API
last told them (`pod`): a failed attempt asks for the newest version before it is parked.
What an object says that cannot be read is logged in one line and left out; the intake never raises for it.
"""

from __future__ import annotations

import logging
import time
from collections import ChainMap
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

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
from kubesched.scheduler.cluster import DeviceClaims, PodView, Store
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


class Members(Protocol):
    """Who counts the pods of pod groups; told before anybody is woken."""

    def put(self, pod: PodView) -> None:
        """Know a pod of ours without a node, or any pod with one, in its newest version."""
        ...

    def drop(self, pod: PodView) -> None:
        """Know that a pod is gone."""
        ...

    def key_of(self, pod: PodView) -> Hashable | None:
        """Return the group that a pod belongs to, or None."""
        ...


RejectWaiting = Callable[[str], bool]
"""uid -> whether the pod was waiting for a permit, and was refused now because it is being removed"""

Handled = Callable[[str, float], None]
"""(event's label, seconds that handling it took)"""


NodeChanged = Callable[[Node | None, Node | None], None]
"""(before, after): told once the store has taken it in"""


def nobody_waits(uid: str) -> bool:
    """Return False: for runs without permits."""
    return False


class Intake:
    """Takes in what the watches deliver."""

    def __init__(
        self,
        store: Store,
        queue: Queue,
        profile_names: Collection[str],
        *,
        gates: FeatureGates | None = None,
        reject_waiting: RejectWaiting = nobody_waits,
        members: Members | None = None,
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
        self._asks_hints = given.is_enabled("SchedulerQueueingHints")
        self._has_resizes = given.is_enabled("InPlacePodVerticalScalingSchedulerPreemption")
        self._reject_waiting = reject_waiting
        self._members = members
        self._handled = handled
        self._pending: MutableMapping[str, PodView] = {}
        queue.nominations.verify_with(self.pod)

    def pod(self, key: str) -> PodView | None:
        """Return a pod of ours without a node by its namespace/name, as the API last told it."""
        return self._pending.get(key)

    def pending(self) -> Iterable[PodView]:
        """Return our pods without a node, as the API last told them."""
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
        """Take in one change. `kind` is the object's kind; `plural.version.group` where no struct of ours holds it."""
        try:
            if kind == "Pod":
                self._apply_pod(old, new)
            elif kind == "Node":
                self._apply_node(old, new)
            else:
                self._apply_object(kind, old, new)
        except SchedulerError as error:
            log.error("%s left out: %s", kind, error)

    # Pods

    def _apply_pod(self, old: Pod | None, new: Pod | None) -> None:
        # A pod that has ended is gone, also where the watch does not leave it out already.
        if old is not None and old.status.phase in _OVER:
            old = None
        if new is not None and new.status.phase in _OVER:
            new = None
        if old is not None and new is not None and old.metadata.uid != new.metadata.uid:
            self._delete_pod(old)
            old = None
        if new is None:
            if old is not None:
                self._delete_pod(old)
        elif old is None:
            self._add_pod(new)
        elif old.spec.node_name:
            self._update_placed(old, new)
        elif new.spec.node_name:
            known = self._pending.pop(old.key, None)
            self._place(new)
            if old.spec.scheduler_name in self._profiles:
                # Usually it is in flight or done, but somebody else may have bound it while it was queued.
                started = time.perf_counter()
                self._queue.delete(known or self._store.view(old))
                self._stop(started, self._pending_went)
        elif old.spec.scheduler_name in self._profiles:
            self._update_pending(old, new)

    def _add_pod(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self._place(pod)
            return
        if pod.spec.scheduler_name not in self._profiles:
            return
        started = time.perf_counter()
        view = self._pending[pod.key] = self._store.view(pod)
        if self._members is not None:
            self._members.put(view)
        if self._store.is_assumed(view.uid):
            return
        self._queue.add(view)
        if self._has_gangs:
            self._queue.wake(self._pending_came, None, pod)
        elif self._members is not None and (group := self._members.key_of(view)) is not None:
            # A plugin's group may be complete now; nobody else cares for pods without a node.
            key_of = self._members.key_of
            self._queue.wake(self._pending_came, None, pod, concerns=lambda other: key_of(other) == group)
        self._stop(started, self._pending_came)

    def _place(self, pod: Pod) -> None:
        """Take in a pod that has a node, or confirm our booking of it."""
        started = time.perf_counter()
        try:
            view = self._store.put_pod(pod)
            if self._members is not None:
                self._members.put(view)
        except SchedulerError as error:
            log.error("pod %s is not counted on node %s: %s", pod.key, pod.spec.node_name, error)
        self._wake_for_placed(POD_CAME, None, pod)
        if self._has_resizes:
            self._follow_resize(None, pod, ())
        self._stop(started, POD_CAME)

    def _update_placed(self, old: Pod, new: Pod) -> None:
        started = time.perf_counter()
        before = self._store.pod(old.metadata.uid)
        events = [POD_CHANGED]
        try:
            if before is None or before.pod is not old:
                before = self._store.view(old)
            after = self._store.put_pod(new)
            if self._members is not None:
                self._members.put(after)
            events = pod_changes(before, after, tells_scale_up=self._tells_scale_up)
        except SchedulerError as error:
            log.error("pod %s keeps what it was counted for on node %s: %s", old.key, old.spec.node_name, error)
        for event in events:
            self._wake_for_placed(event, old, new)
        if self._has_resizes:
            self._follow_resize(old, new, events)
        self._stop(started, POD_CHANGED, events)

    def _wake_for_placed(self, event: ClusterEvent, old: Pod | None, new: Pod) -> None:
        """Wake who waits for a placed pod to come or change. Without hints, only one that asks for less wakes all of them."""
        concerns = None
        if not self._asks_hints and event.action != Action.POD_SCALE_DOWN:
            concerns = prechecks.counts_pod(new, self._queue, self._store.objects)
        self._queue.wake(event, old, new, concerns)

    def _follow_resize(self, old: Pod | None, new: Pod | None, events: Sequence[ClusterEvent]) -> None:
        """Queue a placed pod of ours for as long as a resize of it is deferred."""
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

    def _update_pending(self, old: Pod, new: Pod) -> None:
        version = new.metadata.resource_version
        if version and version == old.metadata.resource_version:
            return
        started = time.perf_counter()
        before = self._pending.get(old.key) or self._store.view(old)
        after = self._pending[new.key] = self._store.view(new)
        if self._members is not None:
            self._members.put(after)
        if self._store.is_assumed(after.uid):
            # The booking stands as it is; only that the pod is to go must be known at once.
            if new.metadata.deletion_timestamp is not None and old.metadata.deletion_timestamp is None:
                self._give_up_booking(after.uid)
            return
        events = pod_changes(before, after, pending_as=self._target_as, tells_scale_up=self._tells_scale_up)
        self._queue.update(old, after, events)
        nominated = old.status.nominated_node_name
        if nominated and nominated != new.status.nominated_node_name:
            self._leave_nominated_node(old)
        self._stop(started, self._pending_changed, [event._replace(resource=self._pending_as) for event in events])

    def _delete_pod(self, pod: Pod) -> None:
        started = time.perf_counter()
        if pod.spec.node_name:
            try:
                view = self._store.remove_pod(pod.metadata.uid)
                if self._members is not None:
                    self._members.drop(view)
            except SchedulerError as error:
                log.error("pod %s: %s", pod.key, error)
            self._queue.wake(POD_WENT, pod, None)
            if self._has_resizes:
                self._follow_resize(pod, None, ())
            self._stop(started, POD_WENT)
        elif pod.spec.scheduler_name in self._profiles:
            pending = self._pending.pop(pod.key, None) or self._store.view(pod)
            self._queue.delete(pending)
            if self._members is not None:
                self._members.drop(pending)
            if self._store.is_assumed(pending.uid):
                self._give_up_booking(pending.uid)
            elif pod.status.nominated_node_name:
                self._leave_nominated_node(pod)
            self._stop(started, self._pending_went)

    def _give_up_booking(self, uid: str) -> None:
        """Free what is booked for a pod that is going. One that waits for a permit is refused and cleans up itself; for
        one that is being bound we cannot wait, the binding will fail."""
        booked = self._store.pod(uid)
        if booked is None:
            return
        if not self._reject_waiting(uid):
            self._store.forget(uid)
        self._queue.wake(POD_WENT, booked.pod, None)

    def _leave_nominated_node(self, pod: Pod) -> None:
        """Wake pods that had to count a nominated pod as if it were placed: those of no higher priority."""
        priority = pod.priority
        self._queue.wake(POD_WENT, pod, None, concerns=lambda waiting: waiting.priority <= priority)

    # Nodes

    def _apply_node(self, old: Node | None, new: Node | None) -> None:
        started = time.perf_counter()
        if new is None:
            assert old is not None
            self._queue.wake(NODE_WENT, old, None)
            self._store.remove_node(old.metadata.name)
            if self._node_changed is not None:
                self._node_changed(old, None)
            self._stop(started, NODE_WENT)
            return
        known = self._store.put_node(new)
        before = old if old is not None else known
        if self._node_changed is not None:
            self._node_changed(before, new)
        admits = None if self._asks_hints else prechecks.admitted_to(new.metadata.name, self._store)
        if before is None:
            self._queue.wake(NODE_CAME, None, new, admits)
            self._stop(started, NODE_CAME)
            return
        events = node_changes(before, new, with_features=self._has_features)
        for event in events:
            self._queue.wake(event, before, new, admits)
        self._stop(started, None, events)

    # Everything else

    def _apply_object(self, kind: str, old: Any | None, new: Any | None) -> None:
        some = new if new is not None else old
        if some is None:
            return
        resource, known_as = _resource_of(kind, type(some)), type(some) if type(some) in INFO else kind
        started = time.perf_counter()
        if known_as is ResourceClaim:
            # A device that is given and taken back between two words of the watch is free only as seen from what we assumed.
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
        if self._queue.is_of_interest(event):
            self._stop(started, event)

    # Timing

    def _stop(self, started: float, whole: ClusterEvent | None, events: Collection[ClusterEvent] = ()) -> None:
        if self._handled is not None:
            seconds = time.perf_counter() - started
            for event in dict.fromkeys((whole, *events)):
                if event is not None:
                    self._handled(event.label, seconds)


def _resource_of(kind: str, type_: type[Any]) -> str:
    """Return the name under which plugins wait for objects of a kind."""
    known = _RESOURCES.get(type_)
    if known is not None:
        return known
    info = INFO.get(type_)
    return f"{info.plural}.{info.version}.{info.group}" if info is not None else kind
