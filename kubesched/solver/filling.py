"""How many more of a pod fit: copies are placed in a world until one does not.

In: a world, copies of a pod. Out: how many each node takes. Where copies matter to each other only by the room that they take,
each node is asked how many it takes, and one pod stands for all of its copies there. Other copies (spread, with affinity,
ports, volumes, devices, in groups) are placed one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from kubesched.errors import SchedulerError
from kubesched.kube.api import Container, Node, Pod, ResourceRequirements, TopLevel, node_allocatable
from kubesched.kube.values import ZONE
from kubesched.scheduler.cluster import CPU, PodView
from kubesched.scheduler.engine import Engine, Explanation, Rules, SeededTies, attempt, explain
from kubesched.scheduler.framework import CycleState, Profile, own_inputs
from kubesched.scheduler.plugins import IN_TREE
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread
from kubesched.solver.objects import renamed
from kubesched.solver.placing import Placing
from kubesched.solver.results import PlacedPod, Room, StoppedBy

if TYPE_CHECKING:
    from kubesched.solver.world import World

MOST_ONE_BY_ONE = 100_000
"""How many copies are placed one by one where no other limit is given."""
_BATCH = 256
_replace = msgspec.structs.replace
Copy = tuple[Pod, list[TopLevel]]
"""A copy of a pod, and the claims that are made for it."""


def room_for(world: World, pod: Pod, limit: int | None) -> Room:
    """Return how many more of a pod fit. To be called in a world of its own: the copies stay in it."""
    filling = Filling(world)
    nodes = filling.fill_at_once(pod, limit)
    if nodes is None:
        nodes = filling.fill(((copy, []) for copy in _copies(pod)), MOST_ONE_BY_ONE if limit is None else limit)
    return filling.told(f"Pod/{pod.metadata.namespace}/{pod.metadata.name}", nodes)


def _copies(pod: Pod) -> Iterator[Pod]:
    number = 0
    while True:
        number += 1
        yield renamed(pod, f"{pod.metadata.name}-more-{number}")


class Filling:
    """Copies that are placed in a world until one does not fit."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._engine = world.cluster.engine
        self.refused: Pod | None = None
        """The first copy that did not fit."""
        self.placed: list[PlacedPod] = []

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
            self._world.add(_filled(old, view, count))
        self.refused = pod
        return dict(sorted(found.items()))

    def fill(
        self,
        copies: Iterable[Copy],
        limit: int,
        *,
        progress: Callable[[int], None] | None = None,
        grow: Callable[[list[Pod]], bool] = lambda waiting: False,
    ) -> dict[str, int]:
        """Place copies until one does not fit; return how many went where.

        `grow` may make room for copies that wait, of which the first was refused; it returns whether it did.
        """
        copies, fed = iter(copies), 0
        while fed < limit and self.refused is None:
            waiting: list[Pod] = []
            for pod, claims in islice(copies, min(_BATCH, limit - fed)):
                self._world.add(claims)
                waiting.append(pod)
            if not waiting:
                break
            fed += len(waiting)
            while waiting:
                told = Placing(self._world, waiting, copies=True).run().pods
                self.placed += (each for each in told if each.node)
                waiting = [pod for pod, each in zip(waiting, told, strict=True) if not each.node]
                if waiting and not grow(waiting):
                    self.refused = waiting[0]
                    break
                waiting = [*waiting[1:], *waiting[:1]]  # the refused one comes again as if it were new
            if progress is not None:
                progress(len(self.placed))
        return dict(sorted(Counter(each.node for each in self.placed).items()))

    def told(self, workload: str, nodes: dict[str, int]) -> Room:
        """Return how many went where, and why there are not more."""
        store = self._engine.store
        labels = {name: (node.metadata.labels or {}).get(ZONE, "") for name in nodes if (node := store.node(name)) is not None}
        zones = Counter[str]()
        for name, count in nodes.items():
            if labels[name]:
                zones[labels[name]] += count
        why = self.stopped_by()
        stopped = StoppedBy(why.message, tuple(why.refusals)) if why is not None else None
        return Room(workload, nodes, dict(sorted(zones.items())), len(store.nodes), self.refused is None, stopped)

    def stopped_by(self) -> Explanation | None:
        """Return why the first copy that did not fit does not."""
        if self.refused is None:
            return None
        engine, view = self._engine, self._engine.store.view(self.refused)
        profile, rules = engine.profiles.get(self.refused.spec.scheduler_name), Rules(SeededTies(), preempts=False)
        if profile is None:
            raise SchedulerError("the pod is for a scheduler that is not configured here")
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
