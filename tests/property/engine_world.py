"""An API server in virtual time for an engine: it answers slowly, refuses requests, or loses its answers."""

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Any

import msgspec

from kubesched.errors import Conflict, NotFound, ServerFault, Unreachable
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine.arrivals.inbox import Changed
from kubesched.scheduler.engine.loop import Engine
from kubesched.testing import FakeWriter, node


class World(FakeWriter):
    """The objects of the API server, and the Writer port; calls fail at random unless `is_calm`."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.random = random
        self.engine: Engine | None = None
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Any] = {}
        self.bound: dict[str, str] = {}
        self.is_calm = False
        self.version = 0

    def tell(self, kind: str, old: Any, new: Any) -> None:
        assert self.engine is not None
        self.engine.inbox.post(Changed(kind, old, new))

    def put_pod(self, new: Pod) -> None:
        self.version += 1
        new = msgspec.structs.replace(new, metadata=msgspec.structs.replace(new.metadata, resource_version=str(self.version)))
        old = self.pods.get(new.key)
        self.pods[new.key] = new
        self.tell("Pod", old, new)

    def drop_pod(self, key: str) -> None:
        self.tell("Pod", self.pods.pop(key), None)

    # The Writer port

    async def bind(self, view: PodView, node_name: str) -> None:
        await asyncio.sleep(self.random.random() * 0.2)
        roll = 1.0 if self.is_calm else self.random.random()
        if roll < 0.1:
            raise ServerFault(500, "InternalError", "the server is not in the mood")
        if roll < 0.15:
            raise Unreachable("connection refused")
        known = self.pods.get(view.key)
        if known is None or known.metadata.uid != view.uid:
            raise NotFound(404, "NotFound", f'pods "{view.name}" not found')
        if known.spec.node_name:
            raise Conflict(409, "Conflict", f'pod {view.name} is already assigned to node "{known.spec.node_name}"')
        assert view.uid not in self.bound, "bound twice"
        self.bound[view.uid] = node_name
        self.put_pod(msgspec.structs.replace(known, spec=msgspec.structs.replace(known.spec, node_name=node_name)))
        if roll < 0.2:
            raise Unreachable("the answer was lost")

    async def patch_pod_status(self, view: PodView, status: Mapping[str, Any]) -> None:
        await asyncio.sleep(0.01)
        if not self.is_calm and self.random.random() < 0.1:
            raise ServerFault(503, "ServiceUnavailable", "try again")
        known = self.pods.get(view.key)
        if known is not None and "nominatedNodeName" in status:
            changed = msgspec.structs.replace(known.status, nominated_node_name=status["nominatedNodeName"] or "")
            self.put_pod(msgspec.structs.replace(known, status=changed))

    async def delete_pod(self, view: PodView) -> None:
        await asyncio.sleep(0.01)
        if view.key in self.pods:
            self.drop_pod(view.key)


def check(engine: Engine, world: World) -> None:
    """Look at everything that must never happen."""
    nodes = engine.store.snapshot()
    for resource in range(len(nodes.templates.resources)):
        over = nodes.requested(resource) > nodes.allocatable(resource)
        assert not over.any(), f"booked past what is offered: {[nodes.names[i] for i in over.nonzero()[0]]}"
    assert not (nodes.pod_count > nodes.allowed_pods).any()
    placed = {view.uid for view in engine.store.pods()}
    queued = [entry.view.uid for entry in engine.queue]
    assert len(queued) == len(set(queued)), "queued twice"
    for known in world.pods.values():
        uid = known.metadata.uid
        places = [uid in placed, uid in queued, engine.queue.is_in_flight(uid)]
        if known.spec.node_name:
            assert uid in placed and uid not in queued
        else:
            assert sum(places[:2]) <= 1, f"{known.key} is in {places}"
            assert any(places), f"{known.key} is lost"


async def all_are_placed(engine: Engine, world: World, running: asyncio.Task[None]) -> None:
    """Add a node that takes all pods, and check that all of them get a node and nothing is held."""
    world.tell("Node", None, node("plenty", cpu="1000", memory="1000Gi", pods=1000))
    await asyncio.sleep(1500)
    assert not running.done(), running.exception()
    check(engine, world)
    assert [key for key, known in world.pods.items() if not known.spec.node_name] == []
    assert (engine.store.n_assumed, len(engine.waiting), engine.queue.n_in_flight) == (0, 0, 0)
