"""Following a live cluster for a judge: reflectors, and nothing that could write.

In: a connection. Out: every change delivered to the judge, until told to stop. What we may not list is left out and said, so
that the rights of `view` are enough to begin with; without pods or nodes there is nothing to judge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubesched.client.connection import Connection
from kubesched.client.reflectors import Reflectors
from kubesched.client.resources import Watched, watch_set
from kubesched.errors import Forbidden, SchedulerError
from kubesched.simulator.shadow.judging import Judge

_INDISPENSABLE = ("Pod", "Node")
_SETTLE_EVERY_SECONDS = 0.25


async def follow(
    judge: Judge,
    connection: Connection,
    stopped: asyncio.Event,
    *,
    warn: Callable[[str], None],
    began: Callable[[], None],
) -> None:
    """Follow the cluster and judge until stopped; `began` is called when the first lists are in."""
    rows = watch_set([name for name, is_on in judge.settings.gates.states.items() if is_on], _custom_kinds(judge))
    streams = judge.settings.gates.is_enabled("WatchListClient")
    reflectors = await Reflectors.prepare(connection, rows, judge, streams=streams)
    for kind in await _forbidden(connection, reflectors, rows, warn):
        del reflectors.by_kind[kind]
    for kind in _INDISPENSABLE:
        if kind not in reflectors.by_kind:
            raise SchedulerError(f"{connection.server} does not serve {kind}s: is it a Kubernetes API server?")
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


def _custom_kinds(judge: Judge) -> list[str]:
    """Return the resources, named as plural.version.group, that plugins want to read."""
    return [name for name in judge.engine.queue.watched_resources() if name.count(".") >= 2 and "/" not in name]


async def _forbidden(
    connection: Connection, reflectors: Reflectors, rows: tuple[Watched, ...], warn: Callable[[str], None]
) -> list[str]:
    """Return the kinds that we may not list, and warn of them; raise Forbidden for those that nothing works without."""
    found = []
    for row in rows:
        version = reflectors.served.version_of(row)
        if row.kind not in reflectors.by_kind or version is None:
            continue
        try:
            await connection.request("GET", f"{row.path(version)}?limit=1")
        except Forbidden as error:
            if row.is_indispensable:
                raise
            warn(row.left_out(str(error)))
            found.append(row.kind)
    return found
