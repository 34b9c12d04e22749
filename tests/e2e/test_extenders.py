"""Extenders over real HTTP, in a process of their own: good ones are heard, bad ones cost an attempt or are passed over."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubesched import config
from kubesched.client.extender_client import HttpPoster
from kubesched.engine.assembly import Ports, assemble, registry_with
from kubesched.engine.handle import NoWriter
from kubesched.engine.inbox import Changed
from kubesched.engine.loop import Engine
from kubesched.framework.building import catalogue
from kubesched.testing import node, pod


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("extender_server.py"))], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    port = process.stdout.readline().strip()
    yield f"http://127.0.0.1:{port}", process
    process.kill()


class Notes(NoWriter):
    """Keeps what is written, and what people are told."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}
        self.told: list[tuple[str, str]] = []
        self.deleted: list[str] = []

    async def bind(self, pod: Any, node_name: str) -> None:
        self.bound[pod.key] = node_name

    async def patch_pod_status(self, pod: Any, status: Any) -> None:
        return None

    async def delete_pod(self, pod: Any) -> None:
        self.deleted.append(pod.key)

    def event(self, regarding: Any, kind: str, reason: str, action: str, note: str) -> None:
        self.told.append((reason, note))


def build(*extenders: dict[str, Any]) -> tuple[Engine, Notes]:
    gates = config.Gates.defaults()
    registry = registry_with()
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": list(extenders),
    }
    configured = config.load(msgspec.json.encode(document).decode(), gates=gates, registry=catalogue(registry))
    notes = Notes()
    engine = assemble(configured, gates, Ports(writer=notes, recorder=notes, poster=HttpPoster()), registry=registry)
    for i in range(3):
        engine.inbox.post(Changed("Node", None, node(f"n{i}")))
    return engine, notes


async def run_for(engine: Engine, seconds: float) -> None:
    running = asyncio.create_task(engine.run())
    await asyncio.sleep(seconds)
    engine.stop()
    await running


@pytest.mark.parametrize("knows_nodes", [True, False], ids=["by name", "by whole node"])
async def test_a_good_extender_filters_and_scores(server: Any, knows_nodes: bool) -> None:
    engine, notes = build(
        {
            "urlPrefix": f"{server[0]}/good/",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 5,
            "nodeCacheCapable": knows_nodes,
        }
    )
    for i in range(4):
        engine.inbox.post(Changed("Pod", None, pod(f"p{i}")))
    await run_for(engine, 1.5)
    assert notes.bound == {f"default/p{i}": "n2" for i in range(4)}


async def test_an_extender_can_refuse_all_that_is_left(server: Any) -> None:
    engine, notes = build({"urlPrefix": f"{server[0]}/good", "filterVerb": "filter", "nodeCacheCapable": True})
    engine.inbox.post(Changed("Pod", None, pod("p", node_selector={"kubernetes.io/hostname": "n0"})))
    await run_for(engine, 0.8)
    assert notes.bound == {}
    assert notes.told[0][1].startswith("0/3 nodes are available: 1 never, 2 node(s) didn't match Pod's node affinity")


async def test_an_extender_binds(server: Any) -> None:
    engine, notes = build({"urlPrefix": f"{server[0]}/good", "bindVerb": "bind"})
    engine.inbox.post(Changed("Pod", None, pod("mine")))
    await run_for(engine, 0.8)
    assert notes.bound == {}
    assert server[1].stdout.readline().startswith("bound default/mine to n")
    assert ("Scheduled", notes.told[0][1]) in notes.told


async def test_an_extender_strikes_out_candidates_for_preemption(server: Any) -> None:
    engine, notes = build({"urlPrefix": f"{server[0]}/good", "preemptVerb": "preempt"})
    for i in range(3):
        engine.inbox.post(Changed("Pod", None, pod(f"low{i}", requests={"cpu": "3"}, on=f"n{i}", priority=0)))
    engine.inbox.post(Changed("Pod", None, pod("high", requests={"cpu": "3"}, priority=10)))
    await run_for(engine, 1.0)
    assert notes.deleted == ["default/low2"]


BAD = {
    "refusing": "failed filter with extender at URL",
    "babbling": "is not JSON",
    "huge": "larger than 64 MiB",
    "inventing": 'claims a filtered node "no-such-node" which is not found in the input node list',
    "complaining": "not today",
    "wrong": "node names and reasons by node name are wanted",
    "closed": "extender at",
}


@pytest.mark.parametrize("mood", BAD)
async def test_a_bad_extender_costs_the_attempt_and_says_so(server: Any, mood: str) -> None:
    engine, notes = build({"urlPrefix": f"{server[0]}/{mood}", "filterVerb": "filter", "nodeCacheCapable": True})
    engine.inbox.post(Changed("Pod", None, pod("p")))
    await run_for(engine, 1.5)
    assert notes.bound == {}
    assert notes.told and notes.told[0][0] == "FailedScheduling" and BAD[mood] in notes.told[0][1]
    assert engine.queue.find("default/p") is not None


@pytest.mark.parametrize("mood", [*BAD, "slow"])
async def test_a_bad_extender_that_may_be_ignored_is_passed_over(server: Any, mood: str) -> None:
    engine, notes = build(
        {
            "urlPrefix": f"{server[0]}/{mood}",
            "filterVerb": "filter",
            "nodeCacheCapable": True,
            "ignorable": True,
            "httpTimeout": "300ms",
        }
    )
    engine.inbox.post(Changed("Pod", None, pod("p")))
    await run_for(engine, 2.5)
    assert "default/p" in notes.bound


async def test_nobody_waits_for_a_slow_extender_but_its_pod(server: Any) -> None:
    engine, notes = build(
        {
            "urlPrefix": f"{server[0]}/slow",
            "filterVerb": "filter",
            "httpTimeout": "1s",
            "managedResources": [{"name": "example.com/slow"}],
        }
    )
    engine.inbox.post(Changed("Pod", None, pod("slow", requests={"example.com/slow": "0"}, priority=10)))
    engine.inbox.post(Changed("Pod", None, pod("quick")))
    ticks = 0
    running = asyncio.create_task(engine.run())
    for _ in range(40):
        await asyncio.sleep(0.05)
        ticks += 1
    engine.stop()
    await running
    assert ticks == 40
    assert "default/quick" in notes.bound
    assert any("no answer within 1 s" in note for _, note in notes.told)
