"""Capacity: how many more of a pod fit, and what stops the next one.

In: a captured cluster, the manifest of a pod or of a workload whose template is taken, and how to build an engine. Out: a
`Capacity`. Copies are placed in a world of the solver (`solver/filling.py`). Nobody is evicted for them: with preemption the
count would say how much of the cluster is less important, not how much room it has. Pods that wait in the cluster are left out;
nodes can be taken away first, and where groups of nodes may grow, nodes that the copies need are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from kubesched.errors import SchedulerError
from kubesched.kube.api import Node, Pod
from kubesched.solver import Cluster, Room, World
from kubesched.solver.filling import MOST_ONE_BY_ONE, Filling
from kubesched.solver.node_groups import DaemonSetPods, GroupSizes, NewNode, NodeEstimator, NodeGroup
from kubesched.solver.objects import unplaced
from kubesched.solver.world import moves
from kubesched.tools.plan.applying import apply_manifests
from kubesched.tools.plan.manifests import WORKLOADS, Manifest
from kubesched.tools.plan.plan import PlannedPod, counted
from kubesched.tools.plan.planning import Build
from kubesched.tools.plan.replicas import Replicas
from kubesched.tools.snapshots.captured import Captured


@dataclass(frozen=True, slots=True, repr=False)
class Capacity(Room):
    """How many fit, where, and why not more; and what was done to nodes for that."""

    lost: list[str] = field(default_factory=list)
    """The pods that went with the nodes that were taken away."""
    drained: list[PlannedPod] = field(default_factory=list)
    """The pods of drained nodes, and where they went."""
    added: dict[str, int] | None = None
    """How many nodes each group would grow by; None if there are no groups."""
    price: float = 0.0
    """Of these nodes, for an hour."""

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as a document with the API's manner of names."""
        told = self.document()
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
    applied.objects += copies.kept_by
    lost, homeless = _take_away(applied, set(without), set(drain))
    nodes = applied.of(Node)
    at, seed, empty = applied.at, applied.seed, Captured(applied.at, [], applied.seed)
    asking = Cluster(applied.objects, at=at, seed=seed, build=lambda ports: build(empty, ports))
    with asking.what_if() as world:
        went = world.place(map(unplaced, homeless)).pods
        drained = [PlannedPod(pod, told.node, told.why) for pod, told in zip(homeless, went, strict=True)]
        filling, growing = Filling(world), _Growing(world, groups, nodes, applied.of(Pod))
        endless = copies.endless()
        pod, claims = next(endless)
        found = filling.fill_at_once(pod, limit) if not (claims or groups) else None
        if found is None:
            limit = MOST_ONE_BY_ONE if limit is None else limit
            if one_by_one is not None:
                one_by_one(limit)
            found = filling.fill(chain([(pod, claims)], endless), limit, progress=progress, grow=growing.grow)
        room = filling.told(copies.title, found)
    used = [new for new in growing.added if found.get(new.name)]
    return Capacity(
        room.workload,
        room.nodes,
        room.zones,
        len(nodes),
        room.is_limited,
        room.stopped_by,
        lost,
        drained,
        counted(new.group.name for new in used) if groups else None,
        round(sum(new.group.price for new in used), 6),
    )


class _Growing:
    """Groups of nodes that grow where copies wait."""

    def __init__(self, world: World, groups: Sequence[NodeGroup], nodes: Sequence[Node], pods: Sequence[Pod]) -> None:
        self._world = world
        self._daemons = DaemonSetPods(pods)
        self._estimator = NodeEstimator(world.cluster.engine, GroupSizes(groups, nodes), self._daemons) if groups else None
        self.added: list[NewNode] = []

    def grow(self, waiting: list[Pod]) -> bool:
        """Add the nodes that copies need; False if no node helps."""
        new = self._estimator.estimate(waiting) if self._estimator is not None else []
        for each in new:
            self._world.add([each.node, *self._daemons.on(each.node)])
        self.added += new
        return bool(new)


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


def _take_away(cluster: Captured, without: set[str], drain: set[str]) -> tuple[list[str], list[Pod]]:
    """Take nodes out of the cluster, with their pods; return which pods are lost, and which are to be placed elsewhere."""
    gone = without | drain
    missing = gone - {node.name for node in cluster.of(Node)}
    if missing:
        raise SchedulerError(f"there is no node {', '.join(sorted(missing))}")
    kept, lost, homeless = [], list[str](), list[Pod]()
    for obj in cluster.objects:
        if isinstance(obj, Pod) and obj.spec.node_name in gone:
            if obj.spec.node_name in drain and obj.spec.node_name not in without and moves(obj):
                homeless.append(obj)
            else:
                lost.append(obj.key)
        elif not (isinstance(obj, Node) and obj.name in gone):
            kept.append(obj)
    cluster.objects = kept
    return lost, homeless
