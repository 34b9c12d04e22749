"""docs/story.md tells what a plain pod meets: a pod is traced from watch line to confirmed booking through the real engine."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any

import msgspec

import kubesched
from kubesched.kube.client.informers.reflector import Reflector
from kubesched.kube.client.informers.resources import WATCH_SET
from kubesched.scheduler.config import Gates
from kubesched.scheduler.engine.arrivals.inbox import Changed
from kubesched.scheduler.engine.assembly import Ports, assemble, default_configuration
from kubesched.testing import node
from kubesched.testing.fakes import FakeRecorder, FakeWriter
from kubesched.tools.simulation.clock import VirtualClock, run_virtually

PACKAGE = Path(kubesched.__file__).parent
STORY = PACKAGE.parent / "docs" / "story.md"
WALKED = ("scheduler/", "kube/client/informers/")
MOST = {"scheduler/engine/": (41, 13), "": (208, 68)}
"""How many functions in how many files such a pod may meet, of the engine and of all; measured, and to be lowered."""


class World:
    """An engine behind a reflector; the API server is a queue of lines and a writer."""

    def __init__(self) -> None:
        self.clock, self.writer = VirtualClock(asyncio.get_running_loop()), FakeWriter()
        gates = Gates.defaults()
        ports = Ports(clock=self.clock, writer=self.writer, recorder=FakeRecorder())
        self.engine = assemble(default_configuration(gates), gates, ports)
        for i in range(5):
            self.engine.inbox.post(Changed("Node", None, node(f"n{i}", cpu="8")))
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.version = 0

    @contextlib.asynccontextmanager
    async def stream(self, path: str, longest_silence: float) -> AsyncIterator[Any]:
        yield SimpleNamespace(read=self.lines.get)

    def deliver(self, kind: str, old: Any, new: Any) -> None:
        self.engine.inbox.post(Changed(kind, old, new))

    def synced(self, kind: str) -> None:
        pass

    async def tell(self, verb: str, obj: dict[str, Any]) -> None:
        """Send a line of the watch, and wait until nothing more happens."""
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.lines.put_nowait(msgspec.json.encode({"type": verb, "object": {"apiVersion": "v1", "kind": "Pod", **obj}}) + b"\n")
        await asyncio.sleep(1)

    async def schedule(self, name: str) -> None:
        """Let a replica come, be bound, and be seen on its node."""
        container = {"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}}}
        spec: dict[str, Any] = {"schedulerName": "default-scheduler", "containers": [container]}
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}
        meta = {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "ownerReferences": [owner],
            "labels": {"app": "web"},
        }
        await self.tell("ADDED", {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
        assert self.engine.store.n_assumed == 1
        spec["nodeName"] = self.writer.calls[-1].body
        await self.tell("MODIFIED", {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
        assert self.engine.store.n_assumed == 0


async def _walk() -> dict[tuple[str, str], None]:
    world = World()
    reflector = Reflector(world, WATCH_SET[0], world)  # type: ignore[arg-type]
    tasks = [asyncio.create_task(world.engine.run()), asyncio.create_task(reflector.run())]
    await world.tell("BOOKMARK", {"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}})
    for i in range(5):
        await world.schedule(f"before-{i}")
    met: dict[CodeType, None] = {}
    sys.setprofile(lambda frame, event, _: met.setdefault(frame.f_code) if event == "call" else None)
    try:
        await world.schedule("plain")
    finally:
        sys.setprofile(None)
    for task in tasks:
        task.cancel()
    ours = [code for code in met if code.co_filename.startswith(f"{PACKAGE}/")]
    names = [(code.co_filename.removeprefix(f"{PACKAGE}/"), code.co_qualname) for code in ours]
    return dict.fromkeys((file, name) for file, name in names if file.startswith(WALKED) and "comp>" not in name)


def test_the_story_names_what_a_plain_pod_meets_in_that_order() -> None:
    told = re.findall(r"^## .*: `(\S+\.py)`, `(\S+)`$", STORY.read_text(), re.MULTILINE)
    assert len(told) > 12
    walk = list(run_virtually(_walk()))
    assert [each for each in told if each not in walk] == []
    assert [walk.index(each) for each in told] == sorted(walk.index(each) for each in told)
    for room, (functions, files) in MOST.items():
        there = [file for file, _ in walk if file.startswith(room)]
        assert len(there) <= functions and len(set(there)) <= files, f"{room or 'all'}: {len(there)} in {len(set(there))}"
