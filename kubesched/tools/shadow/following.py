"""Follows a live cluster for a judge, with reflectors only: nothing is written.

In: a connection. Out: every change delivered to the judge, until `stopped` is set. Kinds that may not be listed are left out
with a warning, so the rights of `view` are enough. Pods and nodes are required.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubesched.errors import SchedulerError
from kubesched.kube.client import Connection, Reflectors, Sink, watch_set
from kubesched.tools.shadow.judging import Judge

_SETTLE_EVERY_SECONDS = 0.25


async def follow(
    judge: Judge,
    connection: Connection,
    stopped: asyncio.Event,
    *,
    warn: Callable[[str], None],
    began: Callable[[], None],
    sink: Sink | None = None,
) -> None:
    """Follow the cluster and judge until stopped; `began` is called when the first lists are in. A `sink` is told instead of
    the judge, and tells it."""
    # What plugins want to read of custom resources is named as plural.version.group.
    custom = [name for name in judge.engine.queue.watched_resources() if name.count(".") >= 2 and "/" not in name]
    rows = watch_set([name for name, is_on in judge.settings.gates.states.items() if is_on], custom)
    streams = judge.settings.gates.is_enabled("WatchListClient")
    reflectors = await Reflectors.prepare(connection, rows, sink or judge, streams=streams, warn=warn)
    for row in rows:
        if row.is_indispensable:
            if (version := reflectors.served.version_of(row)) is None:
                raise SchedulerError(f"{connection.server} does not serve {row.plural}: is it a Kubernetes API server?")
            await connection.request("GET", f"{row.path(version)}?limit=1")  # raises Forbidden if we may not
    judge.is_relisting = lambda: reflectors.by_kind["Pod"].is_relisting
    judge.version_of = lambda kind: reflectors.by_kind[kind].version
    following = asyncio.create_task(reflectors.run())
    stopping = asyncio.create_task(stopped.wait())
    syncing = asyncio.create_task(reflectors.wait_synced())
    try:
        await asyncio.wait((following, stopping, syncing), return_when=asyncio.FIRST_COMPLETED)
        if syncing.done():
            judge.begin()
            began()
        while not stopping.done() and not following.done():
            await asyncio.wait((following, stopping), timeout=_SETTLE_EVERY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            judge.settle()
        if following.done():
            following.result()
    finally:
        for task in (following, stopping, syncing):
            task.cancel()
        await asyncio.gather(following, stopping, syncing, return_exceptions=True)
    judge.finish()
