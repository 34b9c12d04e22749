"""The backlog: once a minute, log a warning if an active pod has waited for longer than a minute."""

from __future__ import annotations

import math
from collections.abc import Callable

from kubesched.kube.client import ClientClock
from kubesched.scheduler.engine import Engine
from kubesched.telemetry.logs import logger

log = logger(__name__)

EVERY_SECONDS = 60.0


async def say_if_behind(engine_now: Callable[[], Engine | None], clock: ClientClock) -> None:
    """Check once a minute. A reload makes a new engine, whose count of decisions begins at zero."""
    engine, n_before, at = None, 0, clock.monotonic()
    while True:
        await clock.sleep(EVERY_SECONDS)
        now = clock.monotonic()
        if engine is not engine_now():
            engine, n_before = engine_now(), 0
        if engine is None:
            continue
        # Wake-ups from sleep may come late, so the rate is over the time that really passed.
        n_decided = engine.queue.scheduling_cycle - n_before
        oldest = engine.queue.active_seconds() if engine.is_leading else 0.0
        if oldest > EVERY_SECONDS:
            log.warning(
                "Pods come faster than they are decided",
                waiting=engine.queue.n_active,
                oldestSeconds=math.floor(oldest),
                decisionsPerSecond=round(n_decided / (now - at), 1),
            )
        n_before, at = n_before + n_decided, now
