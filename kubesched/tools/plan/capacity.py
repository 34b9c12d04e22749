"""Capacity: how many more of a pod fit, and what stops the next one.

In: a captured cluster, the manifest of a pod or of a workload whose template is taken, and how to build an engine. Out: a
`Capacity`. Where copies do not matter to each other but by the room that they take, each node is asked how many it takes.
Other copies (spread, with affinity, ports, volumes, devices, in groups) go through the engine one after the other: pop, decide,
reserve and book, without binding. Nobody is evicted for them: with preemption the count would say how much of the cluster is
less important, not how much room it has. Pods that wait in the cluster are left out; nodes can be taken away first, and where
groups of nodes may grow, nodes that the copies need are added.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import msgspec
import numpy as np

from kubesched.errors import SchedulerError
from kubesched.kube.api import INFO, Container, Node, Pod, ResourceRequirements, TopLevel, node_allocatable
from kubesched.kube.values import MIRROR_POD, ZONE
from kubesched.scheduler.cluster import CPU, PodView
from kubesched.scheduler.engine import (
    AssumedBinding,
    Engine,
    Explanation,
    NoObserver,
    Ports,
    Rules,
    SeededTies,
    StillClock,
    attempt,
    explain,
)
from kubesched.scheduler.framework import CycleState, Profile, own_inputs
from kubesched.scheduler.plugins import IN_TREE
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread
from kubesched.solver.node_groups import DaemonSetPods, GroupSizes, NewNode, NodeEstimator, NodeGroup
from kubesched.tools.plan.applying import apply_manifests
from kubesched.tools.plan.manifests import WORKLOADS, Manifest
from kubesched.tools.plan.plan import PlannedPod, counted
from kubesched.tools.plan.planning import Build
from kubesched.tools.plan.replicas import Replicas
from kubesched.tools.snapshots.captured import Captured

MOST_ONE_BY_ONE = 100_000
"""How many copies are decided one by one where nobody asks for another limit."""
_BATCH = 256
_replace = msgspec.structs.replace


@dataclass(slots=True)
class Capacity:
    """How many fit, where, and why not more."""

    workload: str
    """Kind/namespace/name of what was copied."""
    nodes: dict[str, int] = field(default_factory=dict)
    """How many copies went to which node; nodes that took none are left out."""
    zones: dict[str, int] = field(default_factory=dict)
    n_nodes: int = 0
    is_limited: bool = False
    """Whether the count was ended by the limit: then more may fit."""
    stopped_by: Explanation | None = None
    lost: list[str] = field(default_factory=list)
    """The pods that went with the nodes that were taken away."""
    drained: list[PlannedPod] = field(default_factory=list)
    """The pods of drained nodes, and where they went."""
    added: dict[str, int] | None = None
    """How many nodes each group would grow by; None if there are no groups."""
    price: float = 0.0
    """Of these nodes, for an hour."""

    @property
    def count(self) -> int:
        """Return how many fit."""
        return sum(self.nodes.values())

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as a document with the API's manner of names."""
        told: dict[str, Any] = {
            "workload": self.workload,
            "fits": self.count,
            "limitReached": self.is_limited,
            "nodeCount": self.n_nodes,
            "zones": self.zones,
            "nodes": self.nodes,
        }
        if self.stopped_by is not None:
            told["stoppedBy"] = {
                "message": self.stopped_by.message,
                "reasons": [
                    {"plugin": each.plugin, "reason": each.reason, "nodes": each.count, "examples": list(each.examples)}
                    for each in self.stopped_by.refusals
                ],
            }
        if self.added is not None:
            told["newNodes"], told["pricePerHour"] = self.added, self.price
        told["lost"] = self.lost
        told["drained"] = [
            {
                "namespace": each.pod.namespace,
                "name": each.pod.name,
                "from": each.pod.spec.node_name,
                **({"node": each.node} if each.node else {"message": each.why}),
            }
            for each in self.drained
        ]
        return told


def measure(
    cluster: Captured,
    manifests: Sequence[Manifest],
    build: Build,
    *,
    workload: str = "",
    namespace: str = "default",
    limit: int | None = None,
    without: Iterable[str] = (),
    drain: Iterable[str] = (),
    progress: Callable[[int], None] | None = None,
    groups: Sequence[NodeGroup] = (),
    one_by_one: Callable[[int], None] | None = None,
) -> Capacity:
    """Return how many more of the one workload in the manifests fit, at most `limit`; `workload` says which of several.

    Without a limit, copies that are decided one by one end at 100,000; `one_by_one` is told the limit before they begin.

    `without` are nodes that are gone, with all that is on them; the pods of those in `drain` are placed elsewhere first. The
    `groups` grow as far as they may.
    """
    asked = _the_one(manifests, workload)
    others = [manifest for manifest in manifests if manifest.kind not in WORKLOADS]
    applied = apply_manifests(cluster, others, namespace=namespace, only=True).cluster
    copies = Replicas(asked, applied, namespace)
    answer = Capacity(copies.title)
    applied.objects += copies.kept_by
    homeless = _take_away(applied, set(without), set(drain), answer)
    answer.n_nodes = len(applied.of(Node))
    counting = _Counting(build, applied, groups)
    answer.drained = counting.rehouse(homeless)
    endless = copies.endless()
    pod, claims = next(endless)
    at_once = counting.fill_at_once(pod, limit) if not (claims or groups) else None
    if at_once is None:
        limit = MOST_ONE_BY_ONE if limit is None else limit
        if one_by_one is not None:
            one_by_one(limit)
        at_once = counting.fill(chain([(pod, claims)], endless), limit, progress)
    answer.nodes = at_once
    if groups:
        used = [new for new in counting.added if answer.nodes.get(new.name)]
        answer.added = counted(new.group.name for new in used)
        answer.price = round(sum(new.group.price for new in used), 6)
    answer.is_limited, answer.stopped_by = counting.refused is None, counting.told()
    nodes = [*applied.of(Node), *(new.node for new in counting.added)]
    labels = {node.name: node.metadata.labels.get(ZONE, "") for node in nodes}
    answer.zones = counted(labels[name] for name, count in answer.nodes.items() for _ in range(count) if labels[name])
    return answer


def _the_one(manifests: Sequence[Manifest], title: str) -> Manifest:
    found = [each for each in manifests if each.kind in WORKLOADS]
    if title:
        kind, _, rest = title.partition("/")
        namespace, _, name = rest.rpartition("/")
        found = [
            each
            for each in found
            if each.kind.lower() == kind.lower()
            and each.content["metadata"].get("name") == name
            and namespace in ("", each.content["metadata"].get("namespace"))
        ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise SchedulerError(f"{title or 'a pod or a workload'} is not in the files")
    names = ", ".join(f"{each.kind}/{each.content['metadata'].get('name')}" for each in found)
    raise SchedulerError(f"the files have {len(found)} workloads; say which with --workload: {names}")


def _take_away(cluster: Captured, without: set[str], drain: set[str], answer: Capacity) -> list[Pod]:
    """Take nodes out of the cluster, with their pods; return the pods that are to be placed elsewhere."""
    gone = without | drain
    missing = gone - {node.name for node in cluster.of(Node)}
    if missing:
        raise SchedulerError(f"there is no node {', '.join(sorted(missing))}")
    kept, homeless = [], []
    for obj in cluster.objects:
        if isinstance(obj, Pod) and obj.spec.node_name in gone:
            if obj.spec.node_name in drain and obj.spec.node_name not in without and _moves(obj):
                homeless.append(obj)
            else:
                answer.lost.append(obj.key)
        elif not (isinstance(obj, Node) and obj.name in gone):
            kept.append(obj)
    cluster.objects = kept
    return homeless


def _moves(pod: Pod) -> bool:
    """Return whether a pod is made again elsewhere when its node is drained: those of the node itself are not."""
    owner = pod.metadata.controller()
    is_daemon = owner is not None and owner.kind == "DaemonSet"
    return not is_daemon and MIRROR_POD not in pod.metadata.annotations and pod.metadata.deletion_timestamp is None


class _Counting(NoObserver):
    """An engine that books and goes no further."""

    def __init__(self, build: Build, cluster: Captured, groups: Sequence[NodeGroup] = ()) -> None:
        self.refused: Pod | None = None
        self._messages: dict[str, str] = {}
        self._placed: list[AssumedBinding] = []
        ports = Ports(clock=StillClock(cluster.at), observer=self, seed=cluster.seed)
        self._engine: Engine = build(cluster, ports)
        self._engine.attempts.rules = dataclasses.replace(self._engine.attempts.rules, preempts=False)
        self._engine.bookings.hand_over = self._keep
        self._engine.failures.writes = False
        self.added: list[NewNode] = []
        self._daemons = DaemonSetPods(cluster.of(Pod))
        sizes = GroupSizes(groups, cluster.of(Node))
        self._estimator = NodeEstimator(self._engine, sizes, self._daemons) if groups else None

    def _keep(self, binding: AssumedBinding) -> None:
        self._placed.append(binding)
        self._engine.queue.done(binding.booked.uid)

    def pod_failed(self, pod: Any, reason: str, message: str) -> None:
        """Keep why a pod does not fit."""
        self._messages[pod.uid] = message
        self.refused = self.refused or pod.pod

    def rehouse(self, pods: Sequence[Pod]) -> list[PlannedPod]:
        """Place the pods of nodes that are gone; return them as they were, with their new nodes."""
        engine = self._engine
        for pod in pods:
            again = _replace(pod, spec=_replace(pod.spec, node_name=""), status=_replace(pod.status, phase="Pending"))
            engine.intake.apply("Pod", None, again)
        while engine.step():
            pass
        went = {binding.booked.uid: binding.node_name for binding in self._placed}
        unknown = "for a scheduler that is not configured here"
        self._placed, self.refused = [], None
        return [
            PlannedPod(pod, went.get(pod.uid, ""), "" if pod.uid in went else self._messages.get(pod.uid, unknown))
            for pod in pods
        ]

    def fill_at_once(self, pod: Pod, limit: int | None) -> dict[str, int] | None:
        """Return how many copies each node takes. None where a copy may matter to another one by more than the room it takes,
        or where the limit leaves open which nodes have them."""
        engine, view = self._engine, self._engine.store.view(pod)
        profile, nodes, state = engine.profiles.get(pod.spec.scheduler_name), engine.store.snapshot(), CycleState()
        if profile is None or not _take_room_alone(view, profile, engine) or not profile.pre_enqueue(view).is_success:
            return None
        before = profile.pre_filter(view, nodes, state)
        fit = next((plugin for plugin in profile.filters if isinstance(plugin, NodeResourcesFit)), None)
        spreads = any(isinstance(plugin, PodTopologySpread) for plugin in profile.filters)
        if fit is None or before.status is not None or (spreads and PodTopologySpread.name not in state.skip_filter):
            return None
        verdicts = profile.filter(view, nodes, state, before.considered)
        room = np.where(verdicts.feasible, fit.room_for(view, nodes), 0)
        if verdicts.error is not None or (limit is not None and int(room.sum()) >= limit):
            return None
        found = {nodes.name(row): int(room[row]) for row in np.flatnonzero(room).tolist()}
        for name, count in found.items():
            old = engine.store.node(name)
            assert old is not None
            node, copies = _filled(old, view, count)
            engine.intake.apply("Node", old, node)
            engine.intake.apply("Pod", None, copies)
        self.refused = pod
        return dict(sorted(found.items()))

    def fill(
        self, copies: Iterator[tuple[Pod, list[TopLevel]]], limit: int, progress: Callable[[int], None] | None
    ) -> dict[str, int]:
        """Place copies until one does not fit; return how many went where."""
        engine, fed = self._engine, 0
        while fed < limit and self.refused is None:
            batch = []
            for pod, claims in islice(copies, min(_BATCH, limit - fed)):
                for obj in claims:
                    engine.intake.apply(INFO[type(obj)].kind, None, obj)
                engine.intake.apply("Pod", None, pod)
                batch.append(pod)
                fed += 1
            while self.refused is None and engine.step():
                if self.refused is not None and self._grow([pod for pod in batch if engine.store.pod(pod.uid) is None]):
                    self.refused = None
            if len(self._placed) < fed:
                self.refused = self.refused or self._stuck()
            if progress is not None:
                progress(len(self._placed))
        return dict(sorted(Counter(binding.node_name for binding in self._placed).items()))

    def _grow(self, waiting: list[Pod]) -> bool:
        """Add the nodes that copies need, and have the one that was refused tried again; False if no node helps."""
        new = self._estimator.estimate(waiting) if self._estimator is not None else []
        for each in new:
            self._engine.intake.apply("Node", None, each.node)
            for pod in self._daemons.on(each.node):
                self._engine.intake.apply("Pod", None, pod)
        if new and self.refused is not None:  # as if it came now: time stands still, so its pause would never be over
            self._engine.intake.apply("Pod", self.refused, None)
            self._engine.intake.apply("Pod", None, self.refused)
        self.added += new
        return bool(new)

    def _stuck(self) -> Pod:
        """Return a pod that is not even tried: a gate keeps it, or its scheduler is not configured here."""
        for pending in self._engine.intake.pending():
            if self._engine.store.pod(pending.uid) is None:
                return pending.pod
        raise SchedulerError("the pod is for a scheduler that is not configured here")

    def told(self) -> Explanation | None:
        """Return why the first copy that did not fit does not."""
        if self.refused is None:
            return None
        engine, view = self._engine, self._engine.store.view(self.refused)
        profile, rules = engine.profiles[view.pod.spec.scheduler_name], Rules(SeededTies(), preempts=False)
        gate = profile.pre_enqueue(view)
        if not gate.is_success:
            return Explanation(view.key, message=gate.message)
        return explain(attempt(view, engine.store.snapshot(), profile, rules), profile=profile)


def _take_room_alone(pod: PodView, profile: Profile, engine: Engine) -> bool:
    """Return whether copies of a pod matter to each other only by what they request."""
    affinity, rules = pod.pod.spec.affinity, engine.attempts.rules
    return (
        {type(plugin) for plugin in profile.plugins} <= {*IN_TREE}
        and (affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None))
        and not (pod.template.ports or own_inputs(pod, engine.store.objects) or engine.store.groups.are_kept)
        and not (rules.extenders or engine.queue.nominations.nodes())
    )


def _filled(node: Node, pod: PodView, count: int) -> tuple[Node, Pod]:
    """Return a node as it is with so many copies of a pod, and one pod that stands for all of them."""
    names = pod.template.interners.resources.values
    requests: dict[str, str | int | float] = {}
    for resource, amount in pod.template.usage:
        requests[names[resource]] = f"{count * amount}m" if resource == CPU else str(count * amount)
    container = Container(name="copies", resources=ResourceRequirements(requests=requests))
    spec = _replace(pod.pod.spec, node_name=node.name, containers=(container,), init_containers=(), overhead={}, resources=None)
    meta = _replace(pod.pod.metadata, name=f"{pod.name}-on-{node.name}", uid=f"{pod.uid}-on-{node.name}")
    offered = {**node.status.allocatable, "pods": str(node_allocatable(node)["pods"] - count + 1)}
    return _replace(node, status=_replace(node.status, allocatable=offered)), _replace(pod.pod, metadata=meta, spec=spec)
