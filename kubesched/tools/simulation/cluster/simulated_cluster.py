"""The cluster of a simulation: its pods, nodes and other objects, with kubelets and controllers.

In: events of the scenario, and what the scheduler writes (`fake_api.py`). Out: changes in the engine's inbox, calls of the
measures, and lines of a journal. The kubelets start a pod when it is bound, and end it when its running time is over. The
controllers replace pods that were evicted or lost, free the devices of ended pods, bind claims to volumes, and delete objects
that a pod owns together with the pod.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kubesched.errors import SchedulerError
from kubesched.kube.api import (
    INFO,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodSpec,
    ResourceClaim,
    TopLevel,
    format_time,
    requests,
)
from kubesched.kube.values import ZONE
from kubesched.scheduler.cluster import class_of_claim
from kubesched.scheduler.engine import Changed, Inbox
from kubesched.scheduler.framework import Clock
from kubesched.scheduler.plugins.shared.volumes import is_fully_bound
from kubesched.tools.plan.claims import settled_at_once
from kubesched.tools.simulation.agenda import Agenda
from kubesched.tools.simulation.cluster.quotas import Quotas
from kubesched.tools.simulation.measures import Measures, rounded
from kubesched.tools.simulation.pod_record import DELETED, FINISHED, RUNNING, PodRecord

PREEMPTED, LOST, DRAINED, SCALED, REMOVED = "preempted", "lost", "drained", "scaled", "removed"
WITHDRAWN = "withdrawn"
DEFAULT_GRACE_SECONDS = 30
_REPLACED = frozenset({PREEMPTED, LOST, DRAINED})
_with = msgspec.structs.replace

LogWriter = Callable[[dict[str, Any]], None]


class SimulatedCluster:
    """Holds all objects, and posts each change to the engine's inbox."""

    def __init__(self, clock: Clock, agenda: Agenda, measures: Measures, journal: LogWriter | None = None) -> None:
        self.clock = clock
        self._agenda = agenda
        self.inbox = Inbox()
        """Where changes are posted. `Simulation` sets it to the inbox of its engine."""
        self._measures = measures
        self._journal = journal
        self.records: dict[str, PodRecord] = {}
        """Every pod that ever existed, by uid."""
        self.uids: dict[str, str] = {}
        """The newest pod of each namespace/name."""
        self.nodes: dict[str, Node] = {}
        self.down: dict[str, list[PodRecord]] = {}
        """Nodes that do not answer, each with the pods whose running time has ended since."""
        self.objects: dict[tuple[str, str, str], Any] = {}
        self._made_for: dict[str, list[tuple[str, str, str]]] = {}
        """By uid of a pod, the keys of the objects that it owns; they are deleted with it."""
        self.replaces = True
        """Whether controllers replace pods that were evicted or lost."""
        self.watchers: list[Callable[[PodRecord], None]] = []
        """Called with each pod that was placed or has ended."""
        self.node_watchers: list[Callable[[str], None]] = []
        """Called with the name of each deleted node."""
        self.quotas: Quotas | None = None
        self._on_node: dict[str, dict[str, PodRecord]] = {}
        self._sizes: dict[int, tuple[PodSpec, int, int]] = {}
        self._version = 0
        self._stamped: tuple[int, str] = (0, "")

    @property
    def now(self) -> float:
        """Return the virtual seconds since the beginning."""
        return self.clock.monotonic()

    @property
    def version(self) -> int:
        """Return a number that grows with each change of the cluster."""
        return self._version

    def tell(self, event: str, **fields: Any) -> None:
        """Write an event to the journal, if there is one."""
        if self._journal is not None:
            self._journal({"at": rounded(self.now), "event": event, **fields})

    # Pods

    def create(
        self,
        pod: Pod,
        then: Callable[[PodRecord], None] | None = None,
        *,
        workload: str = "",
        runs: float | None = None,
        restarts: bool | None = None,
        n_before: int = 0,
    ) -> None:
        """Create a pod as soon as the quotas of its namespace allow it, then call `then` with its record."""

        def come() -> None:
            record = self.arrive(pod, workload=workload, runs=runs, restarts=restarts, n_before=n_before)
            if then is not None:
                then(record)

        if self.quotas is None:
            come()
        elif not self.quotas.create(pod, come):
            self._measures.n_refused_by_quota += 1
            self.tell("refusedByQuota", pod=pod.key, workload=workload)
        if self.quotas is not None:
            self._measures.n_waiting_for_quota = self.quotas.n_waiting

    def finish_rollout(self, workload: str, revision: str, seconds: float) -> None:
        """Count a finished rollout."""
        self._measures.rollouts.append(seconds)
        self.tell("rolledOut", workload=workload, revision=revision, seconds=rounded(seconds))

    def arrive(
        self, pod: Pod, *, workload: str = "", runs: float | None = None, restarts: bool | None = None, n_before: int = 0
    ) -> PodRecord:
        """Add a new pod, pending or with a node. By default it is replaced if a controller owns it."""
        meta, now, owner = pod.metadata, self.now, pod.metadata.controller()
        pod = _with(
            pod,
            metadata=_with(
                meta,
                namespace=meta.namespace or "default",
                uid=meta.uid or f"uid-{meta.namespace or 'default'}-{meta.name}",
                creation_timestamp=meta.creation_timestamp or self._stamp(),
            ),
        )
        known = self.record(pod.key)
        if (known is not None and known.is_alive) or pod.metadata.uid in self.records:
            raise SchedulerError(f"pod {pod.key} is there already")
        self._measures.advance(now)
        record = PodRecord(
            pod,
            workload or (owner.name if owner is not None else pod.metadata.name),
            now,
            runs,
            restarts if restarts is not None else owner is not None,
            n_before=n_before,
            is_daemon=owner is not None and owner.kind == "DaemonSet",
        )
        record.cpu_milli, record.memory_bytes = self._size(pod)
        self.records[pod.metadata.uid] = record
        self.uids[pod.key] = pod.metadata.uid
        if pod.spec.node_name:
            record.node, record.state = pod.spec.node_name, RUNNING
            self._settle(record)
        self._measures.arrived(record)
        if self.quotas is not None:
            self.quotas.count(pod, 1)
        self.put_pod(record, pod, is_new=True)
        self.tell("arrived", pod=record.key, workload=record.workload, **({"node": record.node} if record.node else {}))
        return record

    def place(self, record: PodRecord, node_name: str) -> None:
        """Start a pod on a node."""
        self._measures.advance(self.now)
        old, record.node, record.placed, record.state = record.pod, node_name, self.now, RUNNING
        started = _with(old.status, phase="Running", start_time=self._stamp(), nominated_node_name="")
        self.put_pod(record, _with(old, spec=_with(old.spec, node_name=node_name), status=started))
        self._settle(record)
        self._measures.placed(record)
        self.tell("placed", pod=record.key, node=node_name, waited=rounded(record.placed - record.arrived))
        if record.runs is not None:
            self._agenda.add(self.now + record.runs, lambda: self.finish(record))
        if node_name not in self.nodes:
            self._agenda.add(self.now, lambda: self._go(record, LOST))
        for watch in tuple(self.watchers):
            watch(record)

    def alive(self, workload: str) -> list[PodRecord]:
        """Return the pods of a workload that are neither ended nor terminating, oldest first."""
        return [each for each in self.records.values() if each.workload == workload and each.is_alive and not each.is_going]

    def record(self, key: str) -> PodRecord | None:
        """Return the newest pod of a namespace/name, or None."""
        uid = self.uids.get(key)
        return self.records[uid] if uid is not None else None

    def finish(self, record: PodRecord) -> None:
        """End a pod that has run its time. On a node that does not answer, it ends when the node answers again."""
        if record.state != RUNNING or record.is_going:
            return
        if record.node in self.down:
            self.down[record.node].append(record)
            return
        self._end(record, FINISHED)

    def evict(self, record: PodRecord, why: str) -> None:
        """Delete a pod with its grace period."""
        if record.is_going or not record.is_alive:
            return
        grace = grace_of(record.pod)
        if not record.node or not grace:
            self._go(record, why)
            return
        record.is_going, record.why = True, why
        meta = _with(record.pod.metadata, deletion_timestamp=format_time(self.clock.now() + grace))
        self.put_pod(record, _with(record.pod, metadata=meta))
        self._agenda.add(self.now + grace, lambda: self._go(record, why))
        self._come_again(record)

    def remove(self, record: PodRecord, why: str = REMOVED) -> None:
        """Delete a pod without a grace period."""
        self._go(record, why)

    def change(self, record: PodRecord, pod: Pod) -> None:
        """Apply a change of a pod that another client wrote; node and status stay."""
        self.put_pod(record, _with(pod, spec=_with(pod.spec, node_name=record.node), status=record.pod.status))

    def _go(self, record: PodRecord, why: str) -> None:
        if not record.is_alive:
            return
        is_replaced, record.why, record.is_going = record.is_going, why, True
        self._end(record, DELETED)
        if not is_replaced:
            self._come_again(record)

    def _end(self, record: PodRecord, state: str) -> None:
        self._measures.advance(self.now)
        before, record.state, record.ended = record.state, state, self.now
        if record.node:
            self._on_node.get(record.node, {}).pop(record.pod.metadata.uid, None)
        self._measures.ended(record, before)
        self._version += 1
        self.inbox.post(Changed("Pod", record.pod, None))
        made = {status.name: status.resource_claim_name for status in record.pod.status.resource_claim_statuses}
        for used in record.pod.spec.resource_claims:
            self._release_claim(record, used.resource_claim_name or made.get(used.name) or "")
        for owned in self._made_for.pop(record.pod.metadata.uid, ()):
            if owned in self.objects:
                self.drop(self.objects[owned])
        about = {"node": record.node} if record.node else {}
        self.tell(state, pod=record.key, **about, **({"why": record.why} if state == DELETED else {}))
        if self.quotas is not None:
            self.quotas.count(record.pod, -1)
            self._measures.n_waiting_for_quota = self.quotas.n_waiting
        for watch in tuple(self.watchers):
            watch(record)

    def _release_claim(self, record: PodRecord, claim_name: str) -> None:
        """Remove an ended pod from the users of a device claim; without users the claim is deallocated."""
        claim = self.objects.get(("ResourceClaim", record.pod.metadata.namespace, claim_name))
        if not isinstance(claim, ResourceClaim):
            return
        left = tuple(user for user in claim.status.reserved_for if user.uid != record.pod.metadata.uid)
        if len(left) < len(claim.status.reserved_for):
            allocation = claim.status.allocation if left else None
            self.put(_with(claim, status=_with(claim.status, reserved_for=left, allocation=allocation)))

    def _come_again(self, record: PodRecord) -> None:
        """Act as the pod's controller: create a pod from the same template, which starts its work from the beginning."""
        if not (self.replaces and record.restarts and record.why in _REPLACED) or record.is_daemon:
            return
        meta, status, n = record.pod.metadata, type(record.pod.status)(), record.n_before + 1
        owner, old = meta.controller(), f"-r{n - 1}" if n > 1 else ""
        keeps_name = owner is not None and owner.kind == "StatefulSet"
        name = meta.name if keeps_name else f"{meta.name.removesuffix(old)}-r{n}"
        uid = f"{meta.uid.removesuffix(old)}-r{n}"
        meta = _with(meta, name=name, uid=uid, resource_version="", creation_timestamp=None, deletion_timestamp=None)
        pod = _with(record.pod, metadata=meta, spec=_with(record.pod.spec, node_name=""), status=status)

        def come() -> None:
            self.create(pod, workload=record.workload, runs=record.runs, restarts=True, n_before=n)

        if keeps_name and record.is_alive:  # the name is free only when the old pod is gone
            self._agenda.add(self.now + grace_of(record.pod), come)
        else:
            come()

    def put_pod(self, record: PodRecord, pod: Pod, is_new: bool = False) -> None:
        """Store a new version of a pod."""
        self._version += 1
        old = None if is_new else record.pod
        record.pod = _with(pod, metadata=_with(pod.metadata, resource_version=str(self._version)))
        self.inbox.post(Changed("Pod", old, record.pod))

    def _stamp(self) -> str:
        """Return the time as text for API objects. It is formatted once per second, as many pods arrive in one second."""
        second = int(self.clock.now())
        if self._stamped[0] != second:
            self._stamped = (second, format_time(second))
        return self._stamped[1]

    def _settle(self, record: PodRecord) -> None:
        self._on_node.setdefault(record.node, {})[record.pod.metadata.uid] = record
        node = self.nodes.get(record.node)
        record.zone = (node.metadata.labels or {}).get(ZONE, "") if node is not None else ""

    def _size(self, pod: Pod) -> tuple[int, int]:
        """Return the CPU and memory requests of a pod, computed once for a spec that many pods share."""
        found = self._sizes.get(id(pod.spec))
        if found is None or found[0] is not pod.spec:
            amounts = requests.amounts(requests.pod_requests(pod))
            if len(self._sizes) > 1000:
                self._sizes.clear()
            found = self._sizes[id(pod.spec)] = (pod.spec, amounts.get("cpu", 0), amounts.get("memory", 0))
        return found[1], found[2]

    # Nodes and everything else

    def pods_on(self, node_name: str) -> list[PodRecord]:
        """Return the pods on a node."""
        return list(self._on_node.get(node_name, {}).values())

    def put_node(self, node: Node) -> None:
        """Store a node or its new version."""
        self._measures.advance(self.now)
        self._version += 1
        old = self.nodes.get(node.metadata.name)
        if old is not None:
            self._count_node(old, -1)
        self._count_node(node, 1)
        self.nodes[node.metadata.name] = node
        self.inbox.post(Changed("Node", old, node))

    def drop_node(self, name: str) -> None:
        """Delete a node; its pods are lost."""
        self._measures.advance(self.now)
        node = self.nodes.pop(name)
        self.down.pop(name, None)
        for record in self.pods_on(name):
            self._go(record, LOST)
        self._count_node(node, -1)
        self._version += 1
        self.inbox.post(Changed("Node", node, None))
        for watch in tuple(self.node_watchers):
            watch(name)

    def _count_node(self, node: Node, sign: int) -> None:
        offer = requests.node_allocatable(node)
        self._measures.node_offers(offer["cpu"], offer["memory"], (node.metadata.labels or {}).get(ZONE, ""), sign)

    def put(self, obj: TopLevel) -> TopLevel:
        """Store an object that is neither a pod nor a node, and return it with its new resource version."""
        self._version += 1
        new = _with(obj, metadata=_with(obj.metadata, resource_version=str(self._version)))
        old, self.objects[key_of(new)] = self.objects.get(key_of(new)), new
        self.inbox.post(Changed(key_of(new)[0], old, new))
        for owner in new.metadata.owner_references if old is None else ():
            if owner.kind == "Pod":
                self._made_for.setdefault(owner.uid, []).append(key_of(new))
        if old is None and isinstance(new, PersistentVolumeClaim) and not is_fully_bound(new):
            volumes = [each for each in self.objects.values() if isinstance(each, PersistentVolume)]
            storage_class = self.objects.get(("StorageClass", "", class_of_claim(new)))
            for settled in settled_at_once(new, volumes, storage_class) or ():
                self.put(settled)
        return new

    def drop(self, obj: TopLevel) -> None:
        """Delete an object that is neither a pod nor a node."""
        old = self.objects.pop(key_of(obj), None)
        if old is not None:
            self.inbox.post(Changed(key_of(old)[0], old, None))


def grace_of(pod: Pod) -> int:
    """Return how many seconds a pod has to end."""
    grace = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE_SECONDS if grace is None else grace


def key_of(obj: TopLevel) -> tuple[str, str, str]:
    """Return the kind, namespace and name of an object."""
    info = INFO.get(type(obj))
    return info.kind if info is not None else obj.kind, obj.metadata.namespace, obj.metadata.name
