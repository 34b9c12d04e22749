"""In any history no pod is lost, no pod is in two places, and no node holds more than its allocatable.

A history in virtual time: an API server that answers slowly, refuses, or loses its answers; nodes that join and leave; pods
that are created, changed and deleted; a plugin that raises now and then. At the end all failures stop, and every pod must be
bound.
"""

import asyncio
from random import Random
from typing import Any

import msgspec
import pytest
from engine_world import World, all_are_placed
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.scheduler import config
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine.assembly import Ports, assemble, default_configuration
from kubesched.testing import node, pod
from kubesched.tools.simulation.clock import VirtualClock, run_virtually


async def live(seed: int, turns: int) -> None:
    random = Random(seed)
    world = World(random)
    gates = config.Gates.defaults()
    ports = Ports(clock=VirtualClock(asyncio.get_running_loop()), writer=world, seed=seed)
    engine = world.engine = assemble(default_configuration(gates), gates, ports)
    (profile,) = engine.profiles.values()
    fit = next(p for p in profile.plugins if p.name == "NodeResourcesFit")
    honest = type(fit).filter

    def moody(self: Any, pod: PodView, nodes: Any, state: Any) -> Any:
        if not world.is_calm and random.random() < 0.03:
            raise ZeroDivisionError("a plugin broke")
        return honest(self, pod, nodes, state)

    fit.filter = moody.__get__(fit)
    running = asyncio.create_task(engine.run())
    for i in range(3):
        world.nodes[f"n{i}"] = node(f"n{i}", cpu="2", pods=5)
        world.tell("Node", None, world.nodes[f"n{i}"])
    for turn in range(turns):
        _happen(random, world, turn)
        if random.random() < 0.5:
            await asyncio.sleep(random.random() * 3)
    world.is_calm = True
    await all_are_placed(engine, world, running)
    running.cancel()


def _happen(random: Random, world: World, turn: int) -> None:
    roll = random.random()
    waiting = [key for key, known in world.pods.items() if not known.spec.node_name]
    if roll < 0.55:
        world.put_pod(
            pod(f"p{turn}", requests={"cpu": random.choice(("100m", "500m", "1"))}, priority=random.choice((0, 0, 10)))
        )
    elif roll < 0.65 and world.pods:
        world.drop_pod(random.choice(list(world.pods)))
    elif roll < 0.75 and waiting:
        known = world.pods[random.choice(waiting)]
        labels = {"turn": str(turn)}
        world.put_pod(msgspec.structs.replace(known, metadata=msgspec.structs.replace(known.metadata, labels=labels)))
    elif roll < 0.85:
        name = f"n{random.randrange(5)}"
        old, new = world.nodes.get(name), node(name, cpu="2", pods=5, labels={"turn": str(turn)})
        world.nodes[name] = new
        world.tell("Node", old, new)
    elif roll < 0.9 and world.nodes:
        world.tell("Node", world.nodes.pop(random.choice(list(world.nodes))), None)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_no_pod_is_lost_and_no_node_overbooked(seed: int) -> None:
    run_virtually(live(seed, turns=30))


@pytest.mark.nightly
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=5000, deadline=None)
def test_no_pod_is_lost_over_many_histories(seed: int) -> None:
    run_virtually(live(seed, turns=60))
