"""One run: a world, its users, its faults, and the calm after them.

In: a seed, and a fault script if it is not to be the seed's own. Out: the history and what was wrong in it.

    0 s                      server and schedulers boot, the first nodes and pods are there
    while the scene lasts    users create, scale and delete; faults happen; at its end the last fault ends
    290 s more at most       until everything is as it must be, and no longer

Whatever is not so after that is a violation: no unschedulable pod is tried again by mere time before five minutes are over,
so whoever comes to rest has heard what he had to hear.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import logging
import random
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

from chaos.checkers import Checker
from chaos.faults import Fault, draw
from chaos.history import History, Listener, is_ours
from chaos.processes import Process, ProcessLoop, TooBusy
from chaos.scene import Scene, scene_of
from chaos.users import Users
from chaos.world import SchedulerHost, World, temporary_directory

SETTLE_SECONDS = 290.0
LOOK_EVERY_SECONDS = 5.0
MOST_STEPS = 300
"""How many steps a process may still make when its end has come."""


@dataclass
class Result:
    """What became of a run."""

    seed: str
    script: list[Fault]
    history: History
    virtual_seconds: float
    objects: list[dict[str, Any]]
    """Everything that was in the API in the end, for who looks at a single run."""

    @property
    def violations(self) -> list[str]:
        return self.history.violations


Outcome = tuple[str, list[str], float]
"""A seed, what was violated, and how many virtual seconds it lasted."""


def outcome(seed: str) -> Outcome:
    """Run a seed in a process that will not live long, for whoever only counts."""
    if gc.isenabled():  # the first one of this process
        gc.disable()
        atexit.register(_bury)  # or the interpreter does so when it ends, and tells of every coroutine that was still waiting
    scene = scene_of(seed)
    result = _run(scene, draw(scene), is_loud=False)
    return seed, result.violations, result.virtual_seconds


def run(seed: str, script: list[Fault] | None = None, scene: Scene | None = None, *, is_loud: bool = False) -> Result:
    """Run a seed to its end, with its own script and in its own scene unless others are given.

    `is_loud` puts into the history what the program logs.
    """
    scene = scene_of(seed) if scene is None else scene
    script = draw(scene) if script is None else script
    is_collecting = gc.isenabled()
    gc.freeze()  # what is there already is not looked at again after every run
    gc.disable()  # what is dead may not unwind in the middle, at a moment that the seed does not know
    try:
        return _run(scene, script, is_loud)
    finally:
        _bury()
        gc.unfreeze()
        if is_collecting:
            gc.enable()


def _run(scene: Scene, script: list[Fault], is_loud: bool) -> Result:
    random.seed(scene.seed)  # for whatever in a library rolls dice of its own
    loop = ProcessLoop()
    asyncio.set_event_loop(loop)
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)  # a client that is gone is no news here
    logger = logging.getLogger("kubesched")
    level, propagates, handlers = logger.level, logger.propagate, logger.handlers
    try:
        with (
            temporary_directory() as directory,
            # aiohttp looks at the real clock to know which connections have been idle for too long, and opens real sockets.
            mock.patch("aiohttp.connector.monotonic", loop.time),
            mock.patch("aiohttp.connector.aiohappyeyeballs.start_connection", loop.knock),
        ):
            world = World(loop, scene, directory)
            logger.handlers = [Listener(world.history, is_loud)]
            logger.propagate = False
            logger.setLevel(logging.DEBUG if is_loud else logging.ERROR)
            loop.set_exception_handler(lambda _, context: _unhandled(world.history, context))
            try:
                loop.run_until_complete(_live(world, script))
            except TooBusy as error:
                world.history.violated(str(error))
            return Result(scene.seed, script, world.history, loop.time(), world.server.everything() if is_loud else [])
    finally:
        loop.end()
        world.history.end()
        logger.handlers, logger.propagate = handlers, propagates
        logger.setLevel(level)
        asyncio.set_event_loop(None)


def _bury() -> None:
    """Let go of everything that was still under way. What it says about that is of no interest."""
    hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: None
    logger = logging.getLogger("kubesched")
    logger.disabled = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()  # closes what was still waiting, which keeps the rest alive until the second time
        gc.collect()
    logger.disabled = False
    sys.unraisablehook = hook


def _unhandled(history: History, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if error is not None and not is_ours(error):
        history.violated(f"unhandled: {context['message']}: {type(error).__name__}: {error}")


async def _live(world: World, script: list[Fault]) -> None:
    checker = Checker(world)
    world.network.suffer(script)
    for host in world.schedulers:
        host.started = lambda process: _equip(world, script, process)
    await world.begin()
    for fault in script:
        world.loop.call_at(max(fault.at, world.loop.time()), _play, world, fault)
    users = Users(world)
    await users.work()
    await asyncio.sleep(max(world.scene.seconds - world.loop.time(), 0.0))
    world.history.note("the faults are over")
    await users.make_amends()
    end = world.loop.time() + SETTLE_SECONDS
    while unrest := checker.unrest():
        if world.loop.time() >= end:
            for text in unrest:
                world.history.violated(f"after {SETTLE_SECONDS:g} s of calm: {text}")
            return
        await asyncio.sleep(LOOK_EVERY_SECONDS)
    world.history.note("everything is at rest")


def _equip(world: World, script: list[Fault], process: Process) -> None:
    """Let the plugins of a process know when to do harm."""

    def is_due(kind: str) -> bool:
        now = world.loop.time()
        active = (fault for fault in script if fault.kind == kind and fault.at <= now < fault.end)
        return any(fault.hits(process.name) and process.chance.random() < fault.chance for fault in active)

    process.sabotage = is_due


def _play(world: World, fault: Fault) -> None:
    """Let a fault begin that is not a matter of single requests."""
    begin = _BEGINNINGS.get(fault.kind)
    world.history.note(f"fault {fault.kind} {fault.whom} {fault.seconds:g}")
    if begin is not None:
        begin(world, fault)


def _each(act: Callable[[World, Fault, SchedulerHost], None]) -> Callable[[World, Fault], None]:
    def begin(world: World, fault: Fault) -> None:
        for host in world.schedulers:
            if host.process is not None and not host.process.is_dead and fault.hits(host.process.name):
                act(world, fault, host)

    return begin


def _freeze(world: World, fault: Fault, host: SchedulerHost) -> None:
    process = host.process
    assert process is not None

    def stop() -> None:
        process.freeze()
        world.loop.call_at(max(fault.end, world.loop.time()), process.thaw)

    process.stop_in(int(fault.chance * MOST_STEPS), stop)


def _jump(world: World, fault: Fault) -> None:
    """Let wall clocks be wrong from now on: those of schedulers, and of the server where everybody is hit."""
    for host in (*world.schedulers, world.server):
        if host.process is not None and fault.hits(host.process.name):
            host.skew += (fault.chance - 0.3) * 1000.0
            host.process.clock_offset = host.skew


def _kill(world: World, fault: Fault, host: SchedulerHost) -> None:
    assert host.process is not None
    host.process.stop_in(int(fault.chance * MOST_STEPS), host.end)


def _crash(world: World, fault: Fault) -> None:
    server = world.server
    if server.is_up and server.process is not None:
        server.process.stop_in(int(fault.chance * MOST_STEPS), server.die)


def _compact(world: World, fault: Fault) -> None:
    if world.server.is_up:
        world.server.do("compact")
        world.network.cut(fault)


def _fill_disk(world: World, fault: Fault) -> None:
    log = world.server.log
    if log is not None:
        log.is_full = True
        world.loop.call_later(fault.seconds, setattr, log, "is_full", False)


def _lose_power(world: World, fault: Fault) -> None:
    server, process = world.server, world.server.process
    if server.log is not None and server.is_up:
        server.log.loses_power_in = int(fault.chance * 20)
        world.loop.call_later(fault.seconds, lambda: server.lose_power() if server.process is process else None)


def _fail_node(world: World, fault: Fault) -> None:
    server = world.server
    if not server.is_up or not (names := [node["metadata"]["name"] for node in server.entries("nodes")]):
        return
    name = names[int(fault.chance * 1000) % len(names)]
    server.failed_nodes.add(name)
    server.in_cluster("fail_node", name)

    def recover() -> None:
        server.failed_nodes.discard(name)
        if server.is_up:
            server.in_cluster("recover_node", name)

    world.loop.call_later(fault.seconds, recover)


_BEGINNINGS: dict[str, Callable[[World, Fault], None]] = {
    "silence": lambda world, fault: world.network.silence(fault),
    "crash": _crash,
    "power_loss": _lose_power,
    "compact": _compact,
    "disk_full": _fill_disk,
    "freeze": _each(_freeze),
    "kill": _each(_kill),
    "clock_jump": _jump,
    "reload": _each(lambda world, fault, host: host.change()),
    "node_fails": _fail_node,
}
