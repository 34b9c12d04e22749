"""One engine takes over from another, over the same store, handle and inbox: nothing is lost, doubled or left behind."""

from __future__ import annotations

import asyncio
import functools
import gc
import weakref
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from group_scene import COSCHEDULING, gang, labelled, member

from kubesched.errors import Unreachable
from kubesched.scheduler import config
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.config import Gates
from kubesched.scheduler.engine.arrivals.inbox import Changed
from kubesched.scheduler.engine.assembly import Ports, assemble, default_configuration, engine_options, registry_with
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.engine.records.decision_recorder import DecisionRecorder
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.runtime.building import catalogue
from kubesched.scheduler.framework.verdicts import Code, Status, unschedulable
from kubesched.telemetry import Metrics
from kubesched.telemetry.reporting import Reporter
from kubesched.testing import FakeRecorder, FakeWriter, node, pod
from kubesched.testing.fakes import settle
from kubesched.tools.simulation.clock import VirtualClock, run_virtually

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
TWO_PROFILES = f"{HEAD}- schedulerName: default-scheduler\n- schedulerName: other\n"
BIG = {"cpu": "2"}


class Strict(Plugin):
    """Keeps everybody back once it is told to."""

    is_strict = False

    def pre_enqueue(self, pod: PodView) -> Status | None:
        return unschedulable("not now") if Strict.is_strict else None


class Hesitant(Plugin):
    """Lets everybody wait at Permit."""

    def permit(self, pod: PodView, node_name: str, state: Any) -> tuple[Status, float]:
        return Status(Code.WAIT), 600.0


def with_plugin(name: str) -> str:
    return f"{HEAD}- plugins: {{multiPoint: {{enabled: [{{name: {name}}}]}}}}\n"


class World:
    """Engines that follow one another; to be made on a virtual loop."""

    def __init__(self, gates: str = "") -> None:
        self.gates, self.registry = Gates.parse(gates), registry_with((Strict, Hesitant))
        self.writer, self.recorder, self.metrics = FakeWriter(), FakeRecorder(), Metrics()
        reporter = Reporter(self.metrics)
        self.ports = Ports(
            clock=VirtualClock(asyncio.get_running_loop()),
            writer=self.writer,
            recorder=self.recorder,
            observer=reporter,
            queue_observer=reporter,
            decisions=DecisionRecorder(100),
        )

    def engine(self, text: str = "", after: Engine | None = None, **options: Any) -> Engine:
        """Return an engine, which has not taken over yet where there was one before it."""
        known = catalogue(self.registry)
        given = (
            config.load(text, gates=self.gates, registry=known) if text else default_configuration(self.gates, self.registry)
        )
        return assemble(
            given,
            self.gates,
            self.ports,
            registry=self.registry,
            prepared=None if after is None else (after.store, after.handle),
            inbox=None if after is None else after.inbox,
            options=replace(engine_options(given, self.gates), **options),
        )

    @property
    def refused(self) -> dict[str, float]:
        """Return how many pods each plugin keeps from being placed, as the gauge says."""
        return {plugin: n for (plugin, _), n in self.metrics.gauges["scheduler_unschedulable_pods"].items() if n}


def tell(engine: Engine, *objects: Any) -> None:
    for obj in objects:
        engine.inbox.post(Changed(type(obj).__name__, None, obj))
    engine.take_in()


def on_node(given: Any, name: str) -> Any:
    return msgspec.structs.replace(given, spec=msgspec.structs.replace(given.spec, node_name=name))


def virtually(test: Any) -> Any:
    """Run a test in virtual time."""

    @functools.wraps(test)
    def run(**given: Any) -> None:
        run_virtually(test(**given))

    return run


# What is only known in memory


@virtually
async def test_a_nomination_that_the_api_has_not_told_yet_is_taken_over():
    world = World()
    old = world.engine()
    tell(old, node("n1", cpu="2"), pod("low", on="n1", requests=BIG, priority=0), pod("high", requests=BIG, priority=9))
    assert old.step()
    await settle()
    new = world.engine(after=old)
    new.take_over(old)
    assert [view.name for view in new.queue.nominations.on_node("n1")] == ["high"]


@virtually
async def test_pods_that_a_plugin_refused_are_counted_once():
    world = World()
    old = world.engine()
    tell(old, node("n1", cpu="1"), pod("p", requests=BIG))
    assert old.step()
    assert world.refused == {"NodeResourcesFit": 1}
    new = world.engine(after=old)
    new.take_over(old)
    assert world.refused == {}
    assert new.step()
    assert world.refused == {"NodeResourcesFit": 1}


@virtually
async def test_a_pod_that_was_kept_back_is_first_tried_when_it_no_longer_is(monkeypatch: pytest.MonkeyPatch):
    world = World()
    monkeypatch.setattr(Strict, "is_strict", True)
    old = world.engine(with_plugin("Strict"))
    tell(old, pod("p"))
    await asyncio.sleep(100)
    new = world.engine(after=old)
    new.take_over(old)
    entry = new.queue.find("default/p")
    assert entry is not None and entry.initial_attempt == new.queue.now()


# What is under way


@virtually
async def test_a_pod_whose_binding_fails_late_is_gated_by_the_profile_of_the_day(monkeypatch: pytest.MonkeyPatch):
    world = World()
    world.writer.hold["p"], world.writer.fails["bind", "p"] = asyncio.Event(), Unreachable("no answer")
    old = world.engine(with_plugin("Strict"))
    tell(old, node("n1"), pod("p"))
    assert old.step()
    await old.drain(1.0)
    new = world.engine(after=old)
    new.take_over(old)
    assert new.queue.find("default/p") is None, "its booking stands"
    monkeypatch.setattr(Strict, "is_strict", True)
    world.writer.hold["p"].set()
    await settle()
    new.take_in()
    assert new.queue.place_of("default/p") == "backoff"


@virtually
async def test_a_booking_that_expires_after_a_reload_wakes_who_waits_for_its_room():
    world = World()
    old = world.engine(assumed_ttl_seconds=30.0)
    tell(old, node("n1", cpu="2"), pod("first", requests=BIG))
    await old.settle()
    tell(old, pod("second", requests=BIG))
    new = world.engine(after=old)
    new.take_over(old)
    assert new.step()
    assert new.queue.place_of("default/second") == "unschedulable"
    await asyncio.sleep(31)
    new.take_in()
    assert new.queue.place_of("default/second") != "unschedulable"


@virtually
async def test_an_attempt_that_ends_while_the_engine_is_drained_does_not_wait_for_a_permit():
    """As one that waits for an extender, in a thread, when the reload begins."""
    world = World()
    old = world.engine(with_plugin("Hesitant"))
    tell(old, node("n1"), pod("p"))
    running = asyncio.create_task(old.run())
    tried = old.attempts.take()
    assert tried is not None
    drained = asyncio.create_task(old.drain(30.0))
    await asyncio.sleep(1)
    assert not drained.done()
    old.attempts.act(tried, old.attempts.decide(tried))
    await asyncio.sleep(1)
    assert drained.done() and len(old.bookings) == 0
    old.stop()
    await running


@virtually
async def test_a_drained_engine_tries_nobody_even_if_it_begins_to_lead():
    world = World()
    old = world.engine()
    old.is_leading = False
    tell(old, node("n1"), pod("p"))
    await old.drain(1.0)
    old.lead()
    old.turn()
    await settle()
    assert old.is_leading and world.writer.calls == []


@pytest.mark.parametrize("seconds", [10.0, 100.0])
@virtually
async def test_evictions_in_the_foreground_are_waited_for_and_told_by_one_engine(seconds: float):
    world = World("SchedulerAsyncPreemption=false")
    world.writer.hold["low"] = asyncio.Event()
    old = world.engine()
    tell(old, node("n1", cpu="2"), pod("low", on="n1", requests=BIG, priority=0), pod("high", requests=BIG, priority=9))
    running = asyncio.create_task(old.run())
    await asyncio.sleep(1)
    asyncio.get_running_loop().call_later(seconds, world.writer.hold["low"].set)
    await old.drain(30.0)
    old.stop()
    await running
    new = world.engine(after=old)
    new.take_over(old)
    assert new.queue.place_of("default/high") == "active"
    await asyncio.sleep(seconds + 1)
    new.take_in()
    told = [name for name, _, reason, _, _ in world.recorder.events if reason == "FailedScheduling"]
    assert told == (["high"] if seconds < 30 else []), "later, the other engine has more to say about it"


@virtually
async def test_what_is_under_way_is_given_up_by_who_took_over():
    world = World()
    world.writer.hold["p"] = asyncio.Event()
    old = world.engine()
    tell(old, node("n1"), pod("p"))
    assert old.step()
    await settle()
    new = world.engine(after=old)
    new.take_over(old)
    new.take_in()
    await new.abandon()
    world.writer.hold["p"].set()
    await settle()
    assert len(new.inbox) == 0, "nobody hears of a binding that was given up"


@virtually
async def test_what_was_asked_of_an_engine_is_answered_by_the_newest_that_took_over():
    world = World()
    old = world.engine()
    asked = asyncio.create_task(old.in_turn(lambda engine: engine))
    await settle()
    second = world.engine(after=old)
    second.take_over(old)
    third = world.engine(after=second)
    third.take_over(second)
    third.take_in()
    assert await asked is third


# Groups

GROUP = "crew"


def n_scheduled(engine: Engine) -> tuple[int, int]:
    """Return how many members of the group have a place, and how many there are."""
    (group,) = engine.store.groups._groups.values()
    return group.n_scheduled, group.n_all


@virtually
async def test_a_booking_that_is_taken_back_does_not_count_as_a_member_with_a_place():
    world = World()
    world.writer.hold["p"], world.writer.fails["bind", "p"] = asyncio.Event(), Unreachable("no answer")
    old = world.engine()
    tell(old, node("n1"), labelled("p", GROUP))
    assert old.step()
    await settle()
    new = world.engine(COSCHEDULING, after=old)
    world.writer.hold["p"].set()
    await settle()
    old.take_in()
    new.take_over(old)
    assert n_scheduled(new) == (0, 1)


@virtually
async def test_a_member_that_came_to_its_node_while_the_old_engine_was_drained_counts():
    world = World()
    old = world.engine()
    given = labelled("p", GROUP)
    tell(old, node("n1"), given)
    new = world.engine(COSCHEDULING, after=old)
    old.inbox.post(Changed("Pod", given, on_node(given, "n1")))
    old.take_in()
    new.take_over(old)
    assert n_scheduled(new) == (1, 1)


@virtually
async def test_members_that_nobody_is_responsible_for_any_more_are_forgotten():
    world = World("GenericWorkload=true")
    old = world.engine(TWO_PROFILES)
    tell(old, member("p", GROUP, scheduler="other"))
    assert n_scheduled(old) == (0, 1)
    new = world.engine(after=old)
    new.take_over(old)
    assert list(new.store.groups._groups) == []


@virtually
async def test_a_group_that_was_told_that_it_is_scheduled_is_not_told_otherwise_before_that_comes_back():
    world = World("GenericWorkload=true")
    old = world.engine()
    tell(old, node("n1", cpu="2"), gang(GROUP, min_count=1), *(member(f"p{i}", GROUP, requests=BIG) for i in range(2)))
    await old.settle()
    new = world.engine(after=old)
    new.take_over(old)
    await new.settle()
    said = [call.body["conditions"][0]["status"] for call in world.writer.calls if call.name == GROUP]
    assert said == ["True"]


# Memory


@virtually
async def test_an_engine_that_was_replaced_is_let_go():
    world = World()
    old = world.engine()
    tell(old, *(node(f"n{i}", cpu="2") for i in range(3)), *(pod(f"p{i}", requests={"cpu": "900m"}) for i in range(9)))
    await old.settle()
    profile, queue = weakref.ref(old.profiles["default-scheduler"]), weakref.ref(old.queue)
    memory = weakref.ref(old.attempts.caches["default-scheduler"])
    new = world.engine(after=old)
    new.take_over(old)
    assert memory() is None, "without the collector, which may not walk over an engine that was there from the beginning"
    del old
    await settle()
    gc.collect()
    assert profile() is None and queue() is None
