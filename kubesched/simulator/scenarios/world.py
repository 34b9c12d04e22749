"""What is true in a simulation: its pods, nodes and other objects, and what becomes of them.

In: what the scenario says happens, and what the scheduler's writes ask for (`double.py`). Out: arrivals in the engine's inbox,
word of every step to the measures, and lines for whoever wants to read what happened. The world's kubelets start a pod the
moment it is bound and end it when its time is over; its controllers replace what was evicted or lost, and free the devices of
pods that ended. No volume is provisioned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kubesched.api import requests
from kubesched.api.kinds import INFO
from kubesched.api.meta import TopLevel, format_time
from kubesched.api.node import Node
from kubesched.api.pod import Pod, PodSpec
from kubesched.api.resource import ResourceClaim
from kubesched.engine.inbox import Changed, Inbox
from kubesched.errors import SchedulerError
from kubesched.framework.ports import Clock
from kubesched.simulator.scenarios.agenda import Agenda
from kubesched.simulator.scenarios.lives import DELETED, FINISHED, RUNNING, PodLife
from kubesched.simulator.scenarios.measures import Measures, rounded

ZONE = "topology.kubernetes.io/zone"
PREEMPTED, LOST, DRAINED, SCALED, REMOVED = "preempted", "lost", "drained", "scaled", "removed"
DEFAULT_GRACE_SECONDS = 30
_REPLACED = frozenset({PREEMPTED, LOST, DRAINED})
_with = msgspec.structs.replace

Journal = Callable[[dict[str, Any]], None]


class World:
    """Knows what is true, and tells it through the inbox."""

    def __init__(self, clock: Clock, agenda: Agenda, measures: Measures, journal: Journal | None = None) -> None:
        self.clock = clock
        self._agenda = agenda
        self.inbox = Inbox()
        """Where the engine is told; whoever builds the engine puts its inbox here."""
        self._measures = measures
        self._journal = journal
        self.lives: dict[str, PodLife] = {}
        """Every pod that ever was, by its uid."""
        self.uids: dict[str, str] = {}
        """The newest pod of each namespace/name."""
        self.nodes: dict[str, Node] = {}
        self.down: dict[str, list[PodLife]] = {}
        """Nodes that do not answer, with the pods whose time was over meanwhile."""
        self.objects: dict[tuple[str, str, str], Any] = {}
        self.replaces = True
        """Whether controllers replace what was evicted or lost."""
        self._on_node: dict[str, dict[str, PodLife]] = {}
        self._sizes: dict[int, tuple[PodSpec, int, int]] = {}
        self._version = 0
        self._stamped: tuple[int, str] = (0, "")

    @property
    def now(self) -> float:
        """Return the virtual seconds since the beginning."""
        return self.clock.monotonic()

    def tell(self, event: str, **fields: Any) -> None:
        """Write down that something happened."""
        if self._journal is not None:
            self._journal({"at": rounded(self.now), "event": event, **fields})

    # Pods

    def arrive(
        self, pod: Pod, *, workload: str = "", runs: float | None = None, restarts: bool | None = None, n_before: int = 0
    ) -> PodLife:
        """Take in a new pod, pending or already on its node; by default it is replaced if a controller owns it."""
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
        known = self.life(pod.key)
        if (known is not None and known.is_alive) or pod.metadata.uid in self.lives:
            raise SchedulerError(f"pod {pod.key} is there already")
        self._measures.advance(now)
        life = PodLife(
            pod,
            workload or (owner.name if owner is not None else pod.metadata.name),
            now,
            runs,
            restarts if restarts is not None else owner is not None,
            n_before=n_before,
            is_daemon=owner is not None and owner.kind == "DaemonSet",
        )
        life.cpu_milli, life.memory_bytes = self._size(pod)
        self.lives[pod.metadata.uid] = life
        self.uids[pod.key] = pod.metadata.uid
        if pod.spec.node_name:
            life.node, life.state = pod.spec.node_name, RUNNING
            self._settle(life)
        self._measures.arrived(life)
        self.put_pod(life, pod, is_new=True)
        self.tell("arrived", pod=life.key, workload=life.workload, **({"node": life.node} if life.node else {}))
        return life

    def place(self, life: PodLife, node_name: str) -> None:
        """Let a pod start on a node."""
        self._measures.advance(self.now)
        old, life.node, life.placed, life.state = life.pod, node_name, self.now, RUNNING
        started = _with(old.status, phase="Running", start_time=self._stamp(), nominated_node_name="")
        self.put_pod(life, _with(old, spec=_with(old.spec, node_name=node_name), status=started))
        self._settle(life)
        self._measures.placed(life)
        self.tell("placed", pod=life.key, node=node_name, waited=rounded(life.placed - life.arrived))
        if life.runs is not None:
            self._agenda.add(self.now + life.runs, lambda: self.finish(life))
        if node_name not in self.nodes:
            self._agenda.add(self.now, lambda: self._go(life, LOST))

    def life(self, key: str) -> PodLife | None:
        """Return the newest pod of a namespace/name, or None."""
        uid = self.uids.get(key)
        return self.lives[uid] if uid is not None else None

    def finish(self, life: PodLife) -> None:
        """Let a pod have run to its end; on a node that does not answer, it has when the node answers again."""
        if life.state != RUNNING or life.is_going:
            return
        if life.node in self.down:
            self.down[life.node].append(life)
            return
        self._end(life, FINISHED)

    def evict(self, life: PodLife, why: str) -> None:
        """Delete a pod with its grace period."""
        if life.is_going or not life.is_alive:
            return
        grace = life.pod.spec.termination_grace_period_seconds
        grace = DEFAULT_GRACE_SECONDS if grace is None else grace
        if not life.node or not grace:
            self._go(life, why)
            return
        life.is_going, life.why = True, why
        meta = _with(life.pod.metadata, deletion_timestamp=format_time(self.clock.now() + grace))
        self.put_pod(life, _with(life.pod, metadata=meta))
        self._agenda.add(self.now + grace, lambda: self._go(life, why))
        self._come_again(life)

    def remove(self, life: PodLife, why: str = REMOVED) -> None:
        """Let a pod be gone at once."""
        self._go(life, why)

    def change(self, life: PodLife, pod: Pod) -> None:
        """Take in what somebody else wrote into a pod; its node stays what it is."""
        self.put_pod(life, _with(pod, spec=_with(pod.spec, node_name=life.node), status=life.pod.status))

    def _go(self, life: PodLife, why: str) -> None:
        if not life.is_alive:
            return
        is_replaced, life.why, life.is_going = life.is_going, why, True
        self._end(life, DELETED)
        if not is_replaced:
            self._come_again(life)

    def _end(self, life: PodLife, state: str) -> None:
        self._measures.advance(self.now)
        before, life.state, life.ended = life.state, state, self.now
        if life.node:
            self._on_node.get(life.node, {}).pop(life.pod.metadata.uid, None)
        self._measures.ended(life, before)
        self.inbox.post(Changed("Pod", life.pod, None))
        for asked in life.pod.spec.resource_claims:
            self._let_go(life, asked.resource_claim_name or "")
        self.tell(
            state, pod=life.key, **({"node": life.node} if life.node else {}), **({"why": life.why} if state == DELETED else {})
        )

    def _let_go(self, life: PodLife, claim_name: str) -> None:
        """Take a pod that has ended off a claim for devices; the devices are free when nobody is left on it."""
        claim = self.objects.get(("ResourceClaim", life.pod.metadata.namespace, claim_name))
        if not isinstance(claim, ResourceClaim):
            return
        left = tuple(user for user in claim.status.reserved_for if user.uid != life.pod.metadata.uid)
        if len(left) < len(claim.status.reserved_for):
            allocation = claim.status.allocation if left else None
            self.put(_with(claim, status=_with(claim.status, reserved_for=left, allocation=allocation)))

    def _come_again(self, life: PodLife) -> None:
        """Do what the pod's controller does: a pod of the same template, which begins its work anew."""
        if not (self.replaces and life.restarts and life.why in _REPLACED) or life.is_daemon:
            return
        meta, status, n = life.pod.metadata, type(life.pod.status)(), life.n_before + 1
        owner, old = meta.controller(), f"-r{n - 1}" if n > 1 else ""
        keeps_name = owner is not None and owner.kind == "StatefulSet"
        name = meta.name if keeps_name else f"{meta.name.removesuffix(old)}-r{n}"
        uid = f"{meta.uid.removesuffix(old)}-r{n}"
        meta = _with(meta, name=name, uid=uid, resource_version="", creation_timestamp=None, deletion_timestamp=None)
        pod = _with(life.pod, metadata=meta, spec=_with(life.pod.spec, node_name=""), status=status)

        def come() -> None:
            self.arrive(pod, workload=life.workload, runs=life.runs, restarts=True, n_before=n)

        if keeps_name and life.is_alive:  # not before the old one has let go of the name
            grace = life.pod.spec.termination_grace_period_seconds
            self._agenda.add(self.now + (DEFAULT_GRACE_SECONDS if grace is None else grace), come)
        else:
            come()

    def put_pod(self, life: PodLife, pod: Pod, is_new: bool = False) -> None:
        """Take in a pod's new version."""
        self._version += 1
        old = None if is_new else life.pod
        life.pod = _with(pod, metadata=_with(pod.metadata, resource_version=str(self._version)))
        self.inbox.post(Changed("Pod", old, life.pod))

    def _stamp(self) -> str:
        """Return the time as API objects carry it; many ask within one second."""
        second = int(self.clock.now())
        if self._stamped[0] != second:
            self._stamped = (second, format_time(second))
        return self._stamped[1]

    def _settle(self, life: PodLife) -> None:
        self._on_node.setdefault(life.node, {})[life.pod.metadata.uid] = life
        node = self.nodes.get(life.node)
        life.zone = (node.metadata.labels or {}).get(ZONE, "") if node is not None else ""

    def _size(self, pod: Pod) -> tuple[int, int]:
        """Return what a pod asks for; pods of one workload share their spec, which is read once."""
        found = self._sizes.get(id(pod.spec))
        if found is None or found[0] is not pod.spec:
            asked = requests.amounts(requests.pod_requests(pod))
            if len(self._sizes) > 1000:
                self._sizes.clear()
            found = self._sizes[id(pod.spec)] = (pod.spec, asked.get("cpu", 0), asked.get("memory", 0))
        return found[1], found[2]

    # Nodes and everything else

    def pods_on(self, node_name: str) -> list[PodLife]:
        """Return the pods on a node."""
        return list(self._on_node.get(node_name, {}).values())

    def put_node(self, node: Node) -> None:
        """Take in a node, or its new version."""
        self._measures.advance(self.now)
        old = self.nodes.get(node.metadata.name)
        if old is not None:
            self._count_node(old, -1)
        self._count_node(node, 1)
        self.nodes[node.metadata.name] = node
        self.inbox.post(Changed("Node", old, node))

    def drop_node(self, name: str) -> None:
        """Let a node be gone, and its pods with it."""
        self._measures.advance(self.now)
        node = self.nodes.pop(name)
        self.down.pop(name, None)
        for life in self.pods_on(name):
            self._go(life, LOST)
        self._count_node(node, -1)
        self.inbox.post(Changed("Node", node, None))

    def _count_node(self, node: Node, sign: int) -> None:
        offer = requests.node_allocatable(node)
        self._measures.node_offers(offer["cpu"], offer["memory"], (node.metadata.labels or {}).get(ZONE, ""), sign)

    def put(self, obj: TopLevel) -> TopLevel:
        """Take in an object that is neither a pod nor a node, or its new version; return it as it is stored."""
        self._version += 1
        new = _with(obj, metadata=_with(obj.metadata, resource_version=str(self._version)))
        old, self.objects[key_of(new)] = self.objects.get(key_of(new)), new
        self.inbox.post(Changed(key_of(new)[0], old, new))
        return new

    def drop(self, obj: TopLevel) -> None:
        """Let such an object be gone."""
        old = self.objects.pop(key_of(obj), None)
        if old is not None:
            self.inbox.post(Changed(key_of(old)[0], old, None))


def key_of(obj: TopLevel) -> tuple[str, str, str]:
    """Return the kind, namespace and name of an object."""
    info = INFO.get(type(obj))
    return info.kind if info is not None else obj.kind, obj.metadata.namespace, obj.metadata.name
