"""A scheduler that swaps its configuration: who leads afterwards, and under whose name events are recorded."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kubesched.contrib.capacity_scheduling import CapacityScheduling
from kubesched.kube.client.credentials import AddressSource
from kubesched.scheduler import config
from kubesched.scheduler.engine.assembly import Ports, new_handle
from kubesched.server.app import Scheduler, Wiring
from kubesched.testing import pod
from kubesched.testing.fakes import settle

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NOBODY_ELECTS = f"{HEAD}leaderElection: {{leaderElect: false}}\n"
GATES = config.Gates.defaults()
OWN = (CapacityScheduling,)


def read(text: str) -> config.Configuration:
    return config.load(text, gates=GATES, registry=Scheduler.catalogue(OWN))


TWO = read(f"{NOBODY_ELECTS}profiles: [{{schedulerName: default-scheduler}}, {{schedulerName: other}}]\n")


def new_scheduler() -> Scheduler:
    return Scheduler(read(NOBODY_ELECTS), Wiring(AddressSource("http://127.0.0.1:9"), gates=GATES, plugins=OWN))


@contextlib.asynccontextmanager
async def started(scheduler: Scheduler, meanwhile: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Start a scheduler that has no cluster to follow; in place of the first lists it does something else."""

    async def follow(connection: Any) -> None:
        await meanwhile()

    scheduler._follow = follow  # type: ignore[method-assign]
    async with scheduler._connected() as connection, contextlib.AsyncExitStack() as ends:
        await scheduler._start(connection, ends)
        yield
        for task in scheduler._tasks.values():
            task.cancel()
        await asyncio.gather(*scheduler._tasks.values(), return_exceptions=True)


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[Scheduler]:
    """Run a scheduler's engine without a cluster; it does not lead yet."""
    scheduler = new_scheduler()
    scheduler._prepared = new_handle(GATES, Ports())
    scheduler.engine = engine = scheduler._build(scheduler.configuration)
    engine.is_leading = False
    scheduler._begin("engine", engine.run())
    yield scheduler
    scheduler.engine.stop()
    await asyncio.gather(*scheduler._tasks.values())


async def test_who_begins_to_lead_in_the_middle_of_a_reload_leads_after_it():
    async with running() as scheduler:
        old = scheduler.engine
        assert old is not None
        drain = old.drain

        async def win_meanwhile(seconds: float) -> None:
            scheduler._let_lead()
            await drain(seconds)

        old.drain = win_meanwhile  # type: ignore[method-assign]
        await scheduler.swap(scheduler.configuration)
        assert scheduler.engine is not old and scheduler.is_leader


async def test_an_engine_is_built_between_two_decisions_of_the_one_before():
    async with running() as scheduler:
        old = scheduler.engine
        assert old is not None
        turns = list[str]()
        build = scheduler._build

        def note(configuration: config.Configuration) -> Any:
            turns.append("build")
            return build(configuration)

        scheduler._build = note  # type: ignore[method-assign]
        swapping = asyncio.create_task(scheduler.swap(scheduler.configuration))
        await asyncio.sleep(0)
        assert turns == [], "an attempt may be under way in a thread"
        await swapping
        assert turns == ["build"]


async def test_a_reload_during_the_first_lists_does_not_keep_the_scheduler_from_leading():
    scheduler = new_scheduler()
    async with started(scheduler, lambda: scheduler.swap(scheduler.configuration)):
        assert scheduler.is_leader


async def test_events_of_a_profile_that_came_with_a_reload_are_recorded_under_its_name():
    scheduler, recorded = new_scheduler(), list[Any]()
    async with started(scheduler, lambda: scheduler.swap(TWO)):
        assert scheduler.engine is not None and scheduler._broadcaster is not None
        scheduler._broadcaster.take = recorded.append  # type: ignore[method-assign]
        view = scheduler.engine.store.view(pod("p", scheduler="other"))
        scheduler.engine.handle.recorder.event(view, "Normal", "Scheduled", "Binding", "it is")
    assert [happening.source.controller for happening in recorded] == ["other"]


async def test_a_pod_of_a_new_profile_that_replaced_another_of_its_name_comes_after_that_has_gone():
    before, after = pod("p", uid="1", nominated="n1"), pod("p", uid="2", scheduler="other")
    async with running() as scheduler:
        old = scheduler.engine
        assert old is not None
        scheduler.deliver("Pod", None, before)
        await settle()
        watched = SimpleNamespace(objects={after.key: after})
        scheduler.reflectors = SimpleNamespace(by_kind={"Pod": watched})  # type: ignore[assignment]
        drain = old.drain

        async def hear_meanwhile(seconds: float) -> None:
            await drain(seconds)
            scheduler.deliver("Pod", before, None)
            scheduler.deliver("Pod", None, after)

        old.drain = hear_meanwhile  # type: ignore[method-assign]
        await scheduler.swap(TWO)
        await settle()
        queue = scheduler.engine.queue  # type: ignore[union-attr]
        assert [entry.view.uid for entry in queue] == ["2"]
        assert list(queue.nominations.nodes()) == [], "who is gone keeps no place"


async def test_a_kind_that_only_the_new_plugins_wait_for_is_named(caplog: pytest.LogCaptureFixture):
    plugins = "plugins: {multiPoint: {enabled: [{name: CapacityScheduling}]}}"
    async with running() as scheduler:
        await scheduler.swap(read(f"{NOBODY_ELECTS}profiles: [{{schedulerName: default-scheduler, {plugins}}}]\n"))
    (said,) = [record.getMessage() for record in caplog.records if "is followed from the next start" in record.getMessage()]
    assert "wait for elasticquotas.v1alpha1.scheduling.x-k8s.io," in said
