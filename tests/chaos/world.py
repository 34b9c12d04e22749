"""The world of a run: an API server with its disk, kubelets and controllers, and schedulers, each a process of its own.

In: a seed and a fault script. Out: a history. Everything is the real program on the virtual loop: `ApiServer` and
`FakeCluster` over a store with a log, `app.Scheduler` with its client, reflectors, writer, elector, queue and engine. Only
the sockets, the disk, the clocks and chance are ours. Who dies or gives up is started again after a while, as a cluster does.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from chaos.disk import SimulatedLog
from chaos.extender import SimulatedExtender
from chaos.history import History
from chaos.network import Network
from chaos.processes import Process, ProcessLoop
from chaos.sabotage import configuration_of, plugins_of
from chaos.scene import Scene
from kubesched.embedded import ApiServer, ObjectStore
from kubesched.embedded.controllers import FakeCluster, Pace
from kubesched.embedded.storage.write_ahead_log import Record
from kubesched.errors import ConfigError
from kubesched.kube.client.credentials import Credentials
from kubesched.kube.client.leases.fencing import LeaseLost
from kubesched.scheduler import config
from kubesched.scheduler.engine.records.decision_record import PLACED, DecisionRecord
from kubesched.server.app import Scheduler, Wiring

ADDRESS = "http://127.0.0.1:6443"
RESTART_SECONDS = (1.0, 8.0)
GANGS = "GenericWorkload=true"
_MEMORY = Path("/dev/shm")


class _Address:
    """Credentials that never change."""

    async def load(self) -> Credentials:
        return Credentials(ADDRESS, "the simulation")

    async def renew(self, *, refused: bool) -> Credentials:
        return await self.load()


class ServerHost:
    """The machine of the API server: its disk outlives its processes."""

    def __init__(self, world: World, directory: Path) -> None:
        self._loop, self._network, self._history = world.loop, world.network, world.history
        self._directory, self._seed = directory, world.scene.seed
        seed = world.scene.seed
        self._n_lives = 0
        self._chance = random.Random(f"{seed}/server")
        self.skew = self._chance.uniform(-1.0, 1.0) * world.scene.largest_skew
        """Seconds by which the machine's wall clock is wrong."""
        self._promised: dict[tuple[str, str], tuple[int, bytes]] = {}
        self.failed_nodes: set[str] = set()
        self.process: Process | None = None
        self.store: ObjectStore | None = None
        self.cluster: FakeCluster | None = None
        self.log: SimulatedLog | None = None
        self.wrote: Callable[[Record], None] = lambda record: None

    @property
    def is_up(self) -> bool:
        return self.cluster is not None

    def start(self) -> None:
        """Boot."""
        self._n_lives += 1
        self.process = process = Process(self._loop, f"server.{self._n_lives}", self._seed)
        process.clock_offset = self.skew
        self._history.note(f"{process.name} starts")
        in_doubt = self.log.under_way[1:3] if self.log is not None and self.log.under_way is not None else None
        process.call(self._open, process)
        if self._n_lives > 1:
            self._check_promises(in_doubt)
        process.start(self._serve(process))

    def _open(self, process: Process) -> None:
        def open_log(directory: Path, sync: str) -> SimulatedLog:
            self.log = SimulatedLog(directory, sync, process.chance, self._wrote, self.lose_power)
            return self.log

        self.store = ObjectStore(
            process,
            seed=zlib.crc32(f"{self._seed}/{process.name}".encode()),
            data_dir=self._directory,
            fsync="always",
            open_log=open_log,
        )

    async def _serve(self, process: Process) -> None:
        assert self.store is not None
        server = ApiServer(self.store, port=None)
        await server.start()
        cluster = FakeCluster(self.store, Pace())
        cluster.start()
        for name in sorted(self.failed_nodes):
            cluster.fail_node(name)
        self._network.serve(process, server.connection)
        self.cluster = cluster
        self._history.note(f"{process.name} serves at version {self.store.resource_version}")

    def lose_power(self) -> None:
        """Die at once, with everything that the disk has not promised to keep."""
        self.die()
        assert self.log is not None
        self.log.lose_power()

    def die(self) -> None:
        """Die at once, and come back after a while."""
        if self.process is None or self.process.is_dead or self.store is None or self.log is None:
            return
        self._promised = self.objects()
        self._history.note(f"{self.process.name} dies at version {self.store.resource_version}")
        self.process.kill()
        self._network.lose(self.process)
        self.log.abandon()
        self.cluster = None
        self._loop.call_later(self._chance.uniform(*RESTART_SECONDS), self.start, context=self._loop.outside)

    def _check_promises(self, in_doubt: tuple[str, str] | None) -> None:
        """See to it that everything is there which the last life knew: whatever it knew, it may have acknowledged."""
        found, promised = self.objects(), self._promised
        for key in sorted(found.keys() | promised.keys()):
            if found.get(key) != promised.get(key) and key != in_doubt:
                before, after = promised.get(key, (0, b""))[0], found.get(key, (0, b""))[0]
                self._history.violated(f"{'/'.join(key)} was at version {before} before the server died, and is at {after}")

    def objects(self) -> dict[tuple[str, str], tuple[int, bytes]]:
        """Return every object, by table and key, with its version."""
        assert self.store is not None
        tables = self.store.context.storage.tables()
        return {(table.name, entry.key): (entry.version, entry.raw) for table in tables for entry in table.entries.values()}

    def entries(self, table: str) -> list[dict[str, Any]]:
        """Return the objects of one table, in order."""
        assert self.store is not None
        found = self.store.context.storage.table(table)
        return [found.entries[key].obj for key in found.keys]

    def everything(self) -> list[dict[str, Any]]:
        """Return the objects of all tables that `kubesched why` reads, in order."""
        assert self.store is not None
        return [obj for table in self.store.context.storage.tables() for obj in self.entries(table.name) if "kind" in obj]

    def do(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        """Carry out a verb of the store as the server, for users who have a good network."""
        assert self.process is not None and self.store is not None
        return self.process.call(lambda: getattr(self.store, verb)(*args, **kwargs))

    def in_cluster(self, verb: str, name: str) -> None:
        """Do something to a node's kubelet."""
        assert self.process is not None
        self.process.call(lambda: getattr(self.cluster, verb)(name))

    def _wrote(self, record: Record) -> None:
        version, table, key, raw = record
        self._history.note(f"write {version} {table} {key} {zlib.crc32(raw):08x}")
        self.wrote(record)


@functools.cache
def _settings(scene: Scene, is_changed: bool) -> tuple[config.Gates, config.Configuration]:
    gates = config.Gates.parse(GANGS if scene.has_gangs else "")
    known = Scheduler.catalogue(plugins_of(scene))
    return gates, config.load(configuration_of(scene, is_changed), gates=gates, registry=known)


def _settings_of(scene: Scene, is_changed: bool = False) -> tuple[config.Gates, config.Configuration]:
    """Return gates and configuration of a scene; made once for all that are alike."""
    alike = Scene("", extender=scene.extender, has_gangs=scene.has_gangs, has_liar=scene.has_liar)
    return _settings(alike, is_changed)


class SchedulerHost:
    """The machine of one replica, on which a scheduler is started again whenever it ends."""

    def __init__(self, world: World, number: int) -> None:
        self._loop, self._network, self._history, self._world = world.loop, world.network, world.history, world
        self._seed = seed = world.scene.seed
        self.name = f"scheduler-{number}"
        self.number = number
        self.started: Callable[[Process], None] = lambda process: None
        self._n_lives = 0
        self._chance = random.Random(f"{seed}/{self.name}")
        self.process: Process | None = None
        self.scheduler: Scheduler | None = None
        self.gates, self.configuration = _settings_of(world.scene)
        self.skew = self._chance.uniform(-1.0, 1.0) * world.scene.largest_skew
        self._n_changes = self._n_read = 0
        self.known_beside: dict[str, set[str]] = {}
        """By the uid of a pod that it placed the pods that it knew to be on that node then."""

    def start(self) -> None:
        """Start a scheduler."""
        self._n_lives += 1
        self.process = process = Process(self._loop, f"{self.name}.{self._n_lives}", self._seed)
        process.clock_offset = self.skew
        self._history.note(f"{process.name} starts")
        self.started(process)
        process.start(self._run(process))

    async def _run(self, process: Process) -> None:
        wiring = Wiring(
            _Address(),
            gates=self.gates,
            plugins=plugins_of(self._world.scene),
            reload=self._read,
            has_changed=lambda: self._n_read < self._n_changes,
            poster=lambda: SimulatedExtender(self._world, process),
            seed=self.number,
            clock=process,
            chance=process.chance,
            identity=f"{self.name}_{self._n_lives}",
        )
        self.scheduler = scheduler = Scheduler(self.configuration, wiring)
        self.known_beside.clear()
        assert scheduler.decisions is not None
        scheduler.decisions.listeners.append(self._decided)
        try:
            await scheduler.run()
        except LeaseLost as error:
            self._history.note(f"{process.name} ends: {error}")
        except Exception as error:
            if process.is_dead:  # it unwinds because the run is over
                return
            self._history.violated(f"{process.name} ends with {type(error).__name__}: {error}")
        self.end()

    def _decided(self, record: DecisionRecord) -> None:
        engine = self.scheduler.engine if self.scheduler is not None else None
        if record.outcome == PLACED and engine is not None:
            nodes = engine.store.snapshot()
            self.known_beside[record.uid] = {pod.uid for pod in nodes.pods_on(nodes.row(record.node))}

    def change(self) -> None:
        """Let its configuration file be another."""
        self._n_changes += 1

    def _read(self) -> config.Configuration:
        self._n_read = self._n_changes
        if self._chance.random() < 0.2:
            raise ConfigError("profiles", "somebody is still writing this file")
        self._history.note(f"{self.name} reads its configuration again")
        _, self.configuration = _settings_of(self._world.scene, self._n_changes % 2 == 1)
        return self.configuration

    def end(self) -> None:
        """End whatever is left of the process, and start another after a while."""
        if self.process is not None and not self.process.is_dead:
            self._history.note(f"{self.process.name} is gone")
            self.process.kill()
            self._network.lose(self.process)
            self.scheduler = None
            self._loop.call_later(self._chance.uniform(*RESTART_SECONDS), self.start, context=self._loop.outside)


class World:
    """Everything."""

    def __init__(self, loop: ProcessLoop, scene: Scene, directory: Path) -> None:
        self.loop, self.scene, seed = loop, scene, scene.seed
        self.history = History(loop.time)
        self.network = loop.network = Network(loop, f"{seed}/network", self.history.note)
        self.server = ServerHost(self, directory)
        self.schedulers = [SchedulerHost(self, number) for number in range(scene.n_schedulers)]

    async def begin(self) -> None:
        """Boot everything."""
        self.server.start()
        await self.until(lambda: self.server.is_up, 10.0)
        for host in self.schedulers:
            host.start()

    async def until(self, is_so: Any, seconds: float, step: float = 0.1) -> bool:
        """Wait until something is so, at most so many seconds; return whether it came to be."""
        end = self.loop.time() + seconds
        while not is_so():
            if self.loop.time() >= end:
                return False
            await asyncio.sleep(step)
        return True


@contextlib.contextmanager
def temporary_directory() -> Iterator[Path]:
    """Lend a directory, in memory where there is such a place."""
    made = Path(tempfile.mkdtemp(prefix="chaos-", dir=_MEMORY if _MEMORY.is_dir() else None))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
