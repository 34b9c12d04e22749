"""Permit: a pod waits for all plugins that said Wait, for as long as each allows, and for a quarter of an hour at most."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from kubesched.scheduler import config
from kubesched.scheduler.engine.arrivals.inbox import Changed
from kubesched.scheduler.engine.assembly import Ports, assemble, registry_with
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.framework import Code, CycleState, Plugin, Status
from kubesched.scheduler.framework.runtime.building import catalogue
from kubesched.testing import FakeRecorder, FakeWriter, node, pod
from kubesched.tools.simulation.clock import VirtualClock, run_virtually


def waits(name: str, seconds: float) -> type[Plugin]:
    def permit(self: Plugin, pod: Any, node_name: str, state: CycleState) -> tuple[Status, float]:
        return Status(Code.WAIT), seconds

    return type(name, (Plugin,), {"permit": permit})


def told(seconds: float, *plugins: type[Plugin], then: Callable[[Engine], None] = lambda engine: None) -> tuple[list[str], str]:
    """Return what was written and the last event, so many seconds after a pod came; `then` happens after one second."""

    async def play() -> tuple[list[str], str]:
        clock, writer, recorder = VirtualClock(asyncio.get_running_loop()), FakeWriter(), FakeRecorder()
        gates, registry = config.Gates.defaults(), registry_with(plugins)
        text = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"permit": {"enabled": [{"name": cls.name} for cls in plugins]}}}],
        }
        configuration = config.load(json.dumps(text), gates=gates, registry=catalogue(registry))
        engine = assemble(configuration, gates, Ports(clock=clock, writer=writer, recorder=recorder), registry=registry)
        running = asyncio.create_task(engine.run())
        engine.inbox.post(Changed("Node", None, node("n")))
        engine.inbox.post(Changed("Pod", None, pod("p")))
        await clock.sleep(1.0)
        then(engine)
        await clock.sleep(seconds - 1.0)
        engine.stop()
        await running
        return writer.said("bind"), recorder.events[-1].note if recorder.events else ""

    return run_virtually(play())


@pytest.mark.parametrize(("asked", "after", "shown"), [(30.0, 30.0, "30s"), (3600.0, 900.0, "15m0s")])
def test_who_is_not_allowed_in_time_is_refused(asked: float, after: float, shown: str) -> None:
    patient = waits("Patient", asked)
    assert told(after - 0.5, patient) == ([], "")
    bound, note = told(after + 0.5, patient)
    assert bound == [] and note.startswith(
        f"0/1 nodes are available: 1 rejected due to timeout after waiting {shown} at plugin Patient"
    )


def test_the_shortest_wait_ends_first() -> None:
    assert "5s at plugin Hasty" in told(6.0, waits("Patient", 30.0), waits("Hasty", 5.0))[1]


def allow(*names: str) -> Callable[[Engine], None]:
    def then(engine: Engine) -> None:
        for waiting in engine.handle.waiting:
            for name in names:
                waiting.allow(name)

    return then


def test_a_pod_goes_on_when_all_who_wait_have_allowed_it() -> None:
    both = waits("One", 30.0), waits("Other", 30.0)
    assert told(2.0, *both, then=allow("One"))[0] == []
    assert told(2.0, *both, then=allow("One", "Other"))[0] == ["p"]


def test_one_refusal_is_enough() -> None:
    def refuse(engine: Engine) -> None:
        for waiting in engine.handle.waiting:
            assert waiting.node_name == "n" and waiting.pending_plugins == ("One", "Other")
            assert waiting.reject("One", "not now") and not waiting.reject("Other", "too late")

    bound, note = told(1.5, waits("One", 30.0), waits("Other", 30.0), then=refuse)
    assert bound == [] and note.startswith("0/1 nodes are available: 1 not now.")
