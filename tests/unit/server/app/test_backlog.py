"""A scheduler that is behind says so once a minute, in one line."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kubesched.scheduler.config import Gates
from kubesched.scheduler.engine.assembly import Ports, default_configuration
from kubesched.server.app.backlog import say_if_behind
from kubesched.testing import FakeClock, node, pod
from kubesched.tools.snapshots.captured import Captured

GATES = Gates.defaults()


@pytest.mark.parametrize("leads", [True, False])
async def test_it_is_said_once_a_minute_while_pods_wait_longer_than_that(leads: bool, caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    waiting = [pod(f"p{i}", requests={"cpu": "1m"}) for i in range(100)]
    engine = Captured(clock.time, [node("a")]).engine(default_configuration(GATES), GATES, ports=Ports(clock=clock))
    engine.is_leading = leads
    engine.bookings.hand_over = lambda binding: engine.queue.done(binding.booked.uid)

    def said() -> list[dict[str, object]]:
        found = [record.__dict__["event"].values for record in caplog.records if record.levelno == logging.WARNING]
        caplog.clear()
        return found

    looking = asyncio.create_task(say_if_behind(lambda: engine, clock))
    await clock.advance(59.0)
    for each in waiting:
        engine.intake.apply("Pod", None, each)
    await clock.advance(1.0)
    assert said() == [], "they have only come"
    for _ in range(30):
        engine.step()
    await clock.advance(60.0)
    assert said() == ([{"waiting": 70, "oldestSeconds": 61, "decisionsPerSecond": 0.5}] if leads else [])
    while engine.step():
        pass
    await clock.advance(60.0)
    assert said() == [], "nobody waits any more"
    looking.cancel()
