"""A plugin that breaks, at whatever point and in whatever way: it is named, and nothing else comes of it.

One plugin stands at every point and misbehaves at one of them, a few times or, in the random histories, now and then at
all of them. The scheduler goes on, nobody else is blamed, and when the plugin has calmed down every pod is bound and
nothing is booked that is not there.
"""

import asyncio
import signal
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from engine_world import World, all_are_placed, check
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.scheduler import config
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine.assembly import Ports, assemble, registry_with
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.engine.observer import NoObserver
from kubesched.scheduler.framework import Plugin, PostFiltered, wakeups
from kubesched.scheduler.framework.runtime.building import catalogue
from kubesched.scheduler.framework.runtime.lifting import NodeView
from kubesched.scheduler.framework.verdicts import SUCCESS, Reason, Rejections, Status, unschedulable
from kubesched.testing import node, pod
from kubesched.tools.simulation.clock import VirtualClock, run_virtually

NOT_HERE = Reason("not here")


class Stop(BaseException):
    """What a library raises that wants to get past every `except Exception`."""


class Unspeakable(Exception):
    """An exception that cannot even be told."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def _raise(kind: type[BaseException]) -> Callable[[], object]:
    def misbehave() -> object:
        raise kind("out of order")

    return misbehave


MISCHIEF: dict[str, Callable[[], object]] = {
    "Exception": _raise(RuntimeError),
    "Unspeakable": _raise(Unspeakable),
    "CancelledError": _raise(asyncio.CancelledError),
    "SystemExit": _raise(SystemExit),
    "KeyboardInterrupt": _raise(KeyboardInterrupt),
    "BaseException": _raise(Stop),
    "GeneratorExit": _raise(GeneratorExit),
    "nonsense": object,
}


def _cancel_me() -> object:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return None


class Saboteur(Plugin):
    """Stands everywhere, and asks at every point whether to behave."""

    mood: Callable[[str], object] = lambda point: None
    wakes_on = (wakeups.on(wakeups.NODE, wakeups.ADD, "hint"), wakeups.on(wakeups.ASSIGNED_POD, wakeups.DELETE, "hint"))

    def hint(self, pod: PodView, old: Any, new: Any) -> Any:
        return self.mood("QueueingHint") or True

    def pre_enqueue(self, pod: PodView) -> Any:
        return self.mood("PreEnqueue")

    def sort_key(self, pod: PodView, queued_at: float) -> Any:
        return self.mood("QueueSort") or (-pod.priority, queued_at)

    def pre_filter(self, pod: PodView, nodes: Any, state: Any) -> Any:
        return self.mood("PreFilter")

    def filter(self, pod: PodView, nodes: Any, state: Any) -> Any:
        if pod.pod.metadata.labels.get("is") == "hard to please" and "plenty" not in nodes.names:
            return Rejections.where(nodes.pod_count >= 0, NOT_HERE)
        return self.mood("Filter") or Rejections.none(nodes)

    def filter_node(self, pod: PodView, node: NodeView, state: Any) -> Any:
        if (said := self.mood("FilterNode")) is not None:
            return said
        return None if self.filter(pod, node.nodes.take([node.row]), state).bits is None else "not here"

    def add_pod(self, pod: PodView, other: PodView, row: int, nodes: Any, state: Any) -> Any:
        self.mood("PreFilterExtensionAddPod")

    def remove_pod(self, pod: PodView, other: PodView, row: int, nodes: Any, state: Any) -> Any:
        self.mood("PreFilterExtensionRemovePod")

    def post_filter(self, pod: PodView, nodes: Any, state: Any, diagnosis: Any, profile: Any) -> Any:
        return self.mood("PostFilter") or PostFiltered(unschedulable("no way out"))

    def pre_score(self, pod: PodView, nodes: Any, feasible: Any, state: Any) -> Any:
        return self.mood("PreScore")

    def score(self, pod: PodView, nodes: Any, state: Any) -> Any:
        return self.mood("Score") or (nodes.pod_count * 0)

    def normalize(self, scores: Any, feasible: Any, pod: PodView, nodes: Any, state: Any) -> Any:
        return self.mood("ScoreExtensionNormalize") or scores

    def reserve(self, pod: PodView, node_name: str, state: Any) -> Any:
        return self.mood("Reserve")

    def unreserve(self, pod: PodView, node_name: str, state: Any) -> Any:
        self.mood("Unreserve")

    def permit(self, pod: PodView, node_name: str, state: Any) -> Any:
        return self.mood("Permit") or (SUCCESS, 0.0)

    def pre_bind_pre_flight(self, pod: PodView, node_name: str, state: Any) -> Any:
        return self.mood("PreBindPreFlight")

    async def pre_bind(self, pod: PodView, node_name: str, state: Any) -> Any:
        await asyncio.sleep(0.01)
        answer = self.mood("PreBind")
        await asyncio.sleep(0.01)
        return answer

    async def bind(self, pod: PodView, node_name: str, state: Any) -> Any:
        await asyncio.sleep(0.01)
        answer = self.mood("Bind")
        await asyncio.sleep(0.01)
        if answer is None:
            await self.handle.writer.bind(pod, node_name)
        return answer

    def post_bind(self, pod: PodView, node_name: str, state: Any) -> Any:
        self.mood("PostBind")

    def group_of(self, pod: PodView) -> Any:
        return self.mood("GroupOf")


EVERYWHERE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: Saboteur}]}
    queueSort: {enabled: [{name: Saboteur}], disabled: [{name: PrioritySort}]}
    bind: {enabled: [{name: Saboteur}], disabled: [{name: DefaultBinder}]}
"""


class Notes(NoObserver):
    """Who was blamed, for what, and what people were told."""

    def __init__(self) -> None:
        self.blamed: set[tuple[str, str]] = set()
        self.told: list[tuple[str, str]] = []

    def plugin_broke(self, plugin: str, point: str, pod: PodView, error: BaseException) -> None:
        self.blamed.add((plugin, point))

    def broke(self, plugin: str, point: str, pod: str, error: Exception) -> None:
        self.blamed.add((plugin, point))

    def pod_failed(self, pod: PodView, reason: str, message: str) -> None:
        self.told.append((reason, message))

    def __getattr__(self, name: str) -> Any:  # the queue's observer counts more than is of interest here
        return lambda *args: None


def start(world: World, mood: Callable[[str], object]) -> tuple[Engine, Notes]:
    gates, notes = config.Gates.defaults(), Notes()
    plugin = type("Saboteur", (Saboteur,), {"mood": staticmethod(mood)})
    registry = registry_with([plugin])
    configured = config.load(EVERYWHERE, gates=gates, registry=catalogue(registry))
    clock = VirtualClock(asyncio.get_running_loop())
    ports = Ports(clock=clock, writer=world, observer=notes, queue_observer=notes)  # type: ignore[arg-type]
    engine = world.engine = assemble(configured, gates, ports, registry=registry)
    return engine, notes


async def break_at(broken: str, misbehave: Callable[[], object], times: int = 2) -> Notes:
    """Let the plugin misbehave a few times at one point; return what was noted, after everything turned out well."""
    left = times

    def mood(point: str) -> object:
        nonlocal left
        if point == broken and left:
            left -= 1
            return misbehave()
        # Unreserve is only asked where something else fails, so Permit refuses for it.
        if broken == "Unreserve" and point == "Permit" and left:
            return Status(unschedulable("not yet").code, ("not yet",)), 0.0
        return None

    world = World(Random(0))
    world.is_calm = True
    engine, notes = start(world, mood)
    running = asyncio.create_task(engine.run())
    for i in range(2):
        world.tell("Node", None, node(f"n{i}", cpu="1", pods=5))
    world.put_pod(pod("low", requests={"cpu": "900m"}))
    await asyncio.sleep(5)
    for i in range(3):
        world.put_pod(pod(f"p{i}", requests={"cpu": "900m"}, priority=i))
    world.put_pod(pod("q", labels={"is": "hard to please"}))
    await asyncio.sleep(30)
    check(engine, world)
    await all_are_placed(engine, world, running)
    assert left == 0, f"{broken} was not asked often enough"
    running.cancel()
    return notes


@pytest.fixture(autouse=True)
def interrupts_are_handled() -> Iterator[None]:
    """As in `kubesched run`: Ctrl-C raises nothing, so that a KeyboardInterrupt is the plugin's own."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    yield
    signal.signal(signal.SIGINT, before)


POINTS = [
    "PreEnqueue",
    "QueueSort",
    "QueueingHint",
    "PreFilter",
    "Filter",
    "PostFilter",
    "PreScore",
    "Score",
    "ScoreExtensionNormalize",
    "Reserve",
    "Unreserve",
    "Permit",
    "PreBindPreFlight",
    "PreBind",
    "Bind",
    "PostBind",
    "GroupOf",
    "FilterNode",
    "PreFilterExtensionRemovePod",
]
SILENT = {"QueueSort", "QueueingHint", "Unreserve", "PostBind", "PreFilterExtensionRemovePod"}
"""Points whose answer is nobody's or always means something, so that nonsense is none."""

IMAGINED = {"FilterNode", "PreFilterExtensionRemovePod"}
"""Asked in the one preemption of the story, by DefaultPreemption, who is not to blame for it."""


@pytest.mark.parametrize("how", MISCHIEF)
@pytest.mark.parametrize("point", POINTS)
def test_a_plugin_that_breaks_is_named_and_costs_only_time(point: str, how: str) -> None:
    notes = run_virtually(break_at(point, MISCHIEF[how], 1 if point in IMAGINED else 2))
    if how == "nonsense" and point in SILENT:
        return
    named = {"FilterNode": "Filter", "ScoreExtensionNormalize": "Score" if how == "nonsense" else point}.get(point, point)
    assert notes.blamed == {("Saboteur", named)}


@pytest.mark.parametrize("point", ["PreBind", "Bind"])
def test_a_plugin_that_cancels_its_own_task_is_named(point: str) -> None:
    notes = run_virtually(break_at(point, _cancel_me))
    assert notes.blamed == {("Saboteur", point)}
    assert ("SchedulerError", f'running {point} plugin "Saboteur": CancelledError') in notes.told


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_a_plugin_that_breaks_everywhere_now_and_then_loses_nobody(seed: int) -> None:
    random = Random(seed)
    kinds = list(MISCHIEF.values())

    async def live() -> None:
        world = World(random)

        def mood(point: str) -> object:
            return random.choice(kinds)() if not world.is_calm and random.random() < 0.05 else None

        engine, notes = start(world, mood)
        running = asyncio.create_task(engine.run())
        for i in range(4):
            world.tell("Node", None, node(f"n{i}", cpu="2", pods=5))
        for i in range(12):
            labels = {"is": "hard to please"} if random.random() < 0.2 else {}
            world.put_pod(pod(f"p{i}", requests={"cpu": "500m"}, priority=random.choice((0, 10)), labels=labels))
            await asyncio.sleep(random.random() * 3)
        await asyncio.sleep(20)
        check(engine, world)
        world.is_calm = True
        await all_are_placed(engine, world, running)
        assert {plugin for plugin, _ in notes.blamed} <= {"Saboteur"}
        running.cancel()

    run_virtually(live())


class Deaf(Plugin):
    """Goes on when it is told to stop, for as long as it is stubborn."""

    is_stubborn = True

    async def pre_bind(self, pod: PodView, node_name: str, state: Any) -> None:
        while self.is_stubborn and pod.name == "low":
            try:
                await asyncio.sleep(1e6)
            except asyncio.CancelledError:
                continue


@pytest.mark.parametrize("ends", ["is preempted", "is abandoned"])
def test_a_plugin_that_swallows_its_cancellation_holds_nobody_up(ends: str) -> None:
    async def main() -> None:
        world = World(Random(0))
        world.is_calm = True
        registry = registry_with([Deaf])
        gates = config.Gates.defaults()
        document = EVERYWHERE[: EVERYWHERE.index("    queueSort")].replace("Saboteur", "Deaf")
        configured = config.load(document, gates=gates, registry=catalogue(registry))
        ports = Ports(clock=VirtualClock(asyncio.get_running_loop()), writer=world)
        engine = world.engine = assemble(configured, gates, ports, registry=registry)
        (deaf,) = [p for profile in engine.profiles.values() for p in profile.plugins if isinstance(p, Deaf)]
        running = asyncio.create_task(engine.run())
        world.tell("Node", None, node("n", cpu="1"))
        world.put_pod(pod("low", requests={"cpu": "1"}))
        await asyncio.sleep(1)
        assert engine.bookings.binder.is_pre_binding(world.pods["default/low"].metadata.uid)
        if ends == "is preempted":
            world.put_pod(pod("high", requests={"cpu": "1"}, priority=10))
            await asyncio.sleep(30)
            assert len(world.bound) == 1 and engine.queue.find("default/low") is not None
            deaf.is_stubborn = False
            world.tell("Node", None, node("plenty", cpu="9"))
            await asyncio.sleep(60)
            assert len(world.bound) == 2 and engine.store.n_assumed == 0
        before = asyncio.get_running_loop().time()
        engine.stop()
        await engine.abandon()
        assert asyncio.get_running_loop().time() - before < 10
        deaf.is_stubborn = False
        running.cancel()

    run_virtually(main())
