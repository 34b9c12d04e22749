"""What end-to-end tests share that run the scheduler in their own process or look at the embedded server's store: waiting."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from kubesched.embedded import ApiServer, ObjectStore
from kubesched.kube.client.credentials import AddressSource
from kubesched.scheduler import config
from kubesched.server.app import Scheduler, Wiring

PATIENCE_SECONDS = 90.0


@contextlib.asynccontextmanager
async def scheduling(
    store: ObjectStore, gates: config.Gates | None = None, configuration: str | None = None
) -> AsyncIterator[None]:
    """Serve a store, and schedule its pods for as long as the context lasts."""
    gates, registry = gates or config.Gates.defaults(), Scheduler.catalogue()
    if configuration is None:
        loaded = config.defaults(gates=gates, registry=registry)
    else:
        loaded = config.load(configuration, gates=gates, registry=registry)
    async with ApiServer(store) as server:
        scheduler = Scheduler(loaded, Wiring(AddressSource(server.url), gates=gates))
        task = asyncio.create_task(scheduler.run())
        try:
            yield
        finally:
            scheduler.stop()
            await asyncio.wait_for(task, 10)


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited too long for {what}"
        await asyncio.sleep(0.05)


async def until_has(store: ObjectStore, what: str, plural: str, name: str, seconds: float = 20.0) -> dict[str, Any]:
    """Wait until an object has a value at a path; return the object."""
    deadline = time.monotonic() + seconds
    while True:
        found = store.get(plural, name, "default")
        value: Any = found
        for key in what.split("."):
            value = (value or {}).get(key)
        if value:
            return found
        assert time.monotonic() < deadline, f"{plural} {name} has no {what}: {found}"
        await asyncio.sleep(0.02)
