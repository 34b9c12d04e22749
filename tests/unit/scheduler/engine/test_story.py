"""docs/story.md shows the walk of a plain pod: a pod is traced from watch line to confirmed booking through the real engine.

The page says how many functions in how many files the pod may pass in each room, so that the walk does not grow unnoticed.
"""

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
import pytest

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


class Scene:
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

    async def send(self, verb: str, obj: dict[str, Any]) -> None:
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
        await self.send("ADDED", {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
        assert self.engine.store.n_assumed == 1
        spec["nodeName"] = self.writer.calls[-1].body
        await self.send("MODIFIED", {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
        assert self.engine.store.n_assumed == 0


async def _walk() -> dict[tuple[str, str], None]:
    scene = Scene()
    reflector = Reflector(scene, WATCH_SET[0], scene)  # type: ignore[arg-type]
    tasks = [asyncio.create_task(scene.engine.run()), asyncio.create_task(reflector.run())]
    await scene.send("BOOKMARK", {"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}})
    for i in range(5):
        await scene.schedule(f"before-{i}")
    met: dict[CodeType, None] = {}
    sys.setprofile(lambda frame, event, _: met.setdefault(frame.f_code) if event == "call" else None)
    try:
        await scene.schedule("plain")
    finally:
        sys.setprofile(None)
    for task in tasks:
        task.cancel()
    ours = [code for code in met if code.co_filename.startswith(f"{PACKAGE}/")]
    names = [(code.co_filename.removeprefix(f"{PACKAGE}/"), code.co_qualname) for code in ours]
    return dict.fromkeys((file, name) for file, name in names if file.startswith(WALKED) and "comp>" not in name)


@pytest.fixture(scope="module")
def walk() -> list[tuple[str, str]]:
    return list(run_virtually(_walk()))


def test_the_story_names_functions_of_the_walk_in_their_order(walk: list[tuple[str, str]]) -> None:
    named = re.findall(r"^## .*: `(\S+\.py)`, `(\S+)`$", STORY.read_text(), re.MULTILINE)
    assert len(named) > 12
    assert [each for each in named if each not in walk] == []
    assert [walk.index(each) for each in named] == sorted(walk.index(each) for each in named)


def test_the_walk_is_as_short_in_every_room_as_the_story_says(walk: list[tuple[str, str]]) -> None:
    table = re.findall(r"^\| `([a-z/]+)` \| (\d+) \| (\d+) \|", STORY.read_text(), re.MULTILINE)
    left = {name for name, _ in walk}
    for room, functions, files in table:
        there = [file for file, _ in walk if file.startswith(f"{room}/")]
        left -= set(there)
        found = f"{room}: {len(there)} functions in {len(set(there))} files"
        assert len(there) <= int(functions) and len(set(there)) <= int(files), found
    assert not left, "rooms that the table does not have"
