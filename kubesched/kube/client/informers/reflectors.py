"""All reflectors of the scheduler: discover what the server serves, and run one reflector for each resource."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from kubesched.kube.client.connection import Connection
from kubesched.kube.client.informers.discovery import Served, discover
from kubesched.kube.client.informers.reflector import Reflector, Sink
from kubesched.kube.client.informers.resources import Watched
from kubesched.kube.client.timing import SYSTEM_CHANCE, Chance

log = logging.getLogger(__name__)


class Reflectors:
    """The reflectors of one watch set. Make one with `prepare`, then `run` it."""

    def __init__(self, served: Served, reflectors: Iterable[Reflector]) -> None:
        self.served = served
        self.by_kind: dict[str, Reflector] = {reflector.kind: reflector for reflector in reflectors}

    @classmethod
    async def prepare(
        cls,
        connection: Connection,
        rows: Iterable[Watched],
        sink: Sink,
        chance: Chance = SYSTEM_CHANCE,
        *,
        streams: bool = True,
        warn: Callable[[str], None] = log.warning,
    ) -> Reflectors:
        """Ask the server what it serves and make a reflector for each row.

        Without `streams`, first lists come in pages even if the server can stream them. `warn` gets a text for each resource
        that is left out.
        """
        rows = tuple(rows)
        served = await discover(connection, {version for row in rows for version in row.api_versions})
        streams = streams and served.knows_streaming_lists
        made = (
            Reflector(connection, row, sink, api_version=served.version_of(row), streams=streams, chance=chance, warn=warn)
            for row in rows
        )
        return cls(served, made)

    async def run(self) -> None:
        """Follow everything until cancelled."""
        # A reflector never ends by itself. One that raises has met a bug, and ends all others and with them the program.
        async with asyncio.TaskGroup() as tasks:
            for kind, reflector in self.by_kind.items():
                tasks.create_task(reflector.run(), name=f"reflector-{kind}")

    async def wait_synced(self) -> None:
        """Wait until the first list of every kind has been delivered. Kinds that are left out are not waited for."""
        await asyncio.gather(*(reflector.wait_synced() for reflector in self.by_kind.values()))
