"""Extenders over real HTTP, in a process of their own: good ones are heard, bad ones cost an attempt or are passed over."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from kubesched.errors import PluginError
from kubesched.scheduler import config
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.engine.arrivals.inbox import Changed
from kubesched.scheduler.engine.assembly import Ports, assemble, registry_with
from kubesched.scheduler.engine.deciding.extenders import Extenders
from kubesched.scheduler.engine.handle import NoWriter
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.framework.runtime.building import catalogue
from kubesched.scheduler.framework.verdicts import Diagnosis
from kubesched.server.app.extender_client import HttpPoster
from kubesched.testing import node, pod

POSTERS: list[HttpPoster] = []


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("extender_server.py"))], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    port = process.stdout.readline().strip()
    yield f"http://127.0.0.1:{port}", process
    process.kill()


@pytest.fixture
def posting() -> Iterator[HttpPoster]:
    poster = HttpPoster()
    yield poster
    poster.close()


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    """Close the posters of engines that a test built."""
    yield
    while POSTERS:
        POSTERS.pop().close()


@contextlib.contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serve requests on a socket of our own, one thread each; yield the address."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(listening.accept()[0],), daemon=True).start()

    def talk(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(1 << 16)
            answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def extender(url: str, http_timeout: str, **verbs: Any) -> config.Extender:
    return config.Extender(url_prefix=url, http_timeout=config.Duration.parse(http_timeout), node_cache_capable=True, **verbs)


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
    POSTERS.append(HttpPoster())
    engine = assemble(configured, gates, Ports(writer=notes, recorder=notes, poster=POSTERS[-1]), registry=registry)
    for i in range(3):
        engine.inbox.post(Changed("Node", None, node(f"n{i}")))
    return engine, notes


async def run_until(engine: Engine, is_done: Callable[[], Any], seconds: float = 20) -> None:
    running, deadline = asyncio.create_task(engine.run()), time.monotonic() + seconds
    while time.monotonic() < deadline:
        if is_done():
            break
        await asyncio.sleep(0.01)
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
    await run_until(engine, lambda: len(notes.bound) == 4)
    assert notes.bound == {f"default/p{i}": "n2" for i in range(4)}


async def test_an_extender_can_refuse_all_that_is_left(server: Any) -> None:
    engine, notes = build({"urlPrefix": f"{server[0]}/good", "filterVerb": "filter", "nodeCacheCapable": True})
    engine.inbox.post(Changed("Pod", None, pod("p", node_selector={"kubernetes.io/hostname": "n0"})))
    await run_until(engine, lambda: notes.told)
    assert notes.bound == {}
    assert notes.told[0][1].startswith("0/3 nodes are available: 1 never, 2 node(s) didn't match Pod's node affinity")


async def test_an_extender_binds(server: Any) -> None:
    engine, notes = build({"urlPrefix": f"{server[0]}/good", "bindVerb": "bind"})
    engine.inbox.post(Changed("Pod", None, pod("mine")))
    await run_until(engine, lambda: notes.told)
    assert notes.bound == {}
    assert server[1].stdout.readline().startswith("bound default/mine to n")
    assert ("Scheduled", notes.told[0][1]) in notes.told


async def test_an_extender_strikes_out_candidates_for_preemption(server: Any) -> None:
    engine, notes = build({"urlPrefix": f"{server[0]}/good", "preemptVerb": "preempt"})
    for i in range(3):
        engine.inbox.post(Changed("Pod", None, pod(f"low{i}", requests={"cpu": "3"}, on=f"n{i}", priority=0)))
    engine.inbox.post(Changed("Pod", None, pod("high", requests={"cpu": "3"}, priority=10)))
    await run_until(engine, lambda: notes.deleted)
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
    given = {"urlPrefix": f"{server[0]}/{mood}", "filterVerb": "filter", "nodeCacheCapable": True, "httpTimeout": "1s"}
    engine, notes = build(given)
    engine.inbox.post(Changed("Pod", None, pod("p")))
    await run_until(engine, lambda: notes.told)
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
    await run_until(engine, lambda: notes.bound)
    assert "default/p" in notes.bound


def test_extenders_score_at_the_same_time(posting: HttpPoster) -> None:
    """Each of three waits until all three were asked: one after another, none would ever get its answer."""
    meeting = threading.Barrier(3, timeout=5)

    def answer(connection: socket.socket) -> None:
        meeting.wait()
        body = b'[{"Host": "n2", "Score": 1}]'
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    store = Store()
    for i in range(3):
        store.put_node(node(f"n{i}"))
    with contextlib.ExitStack() as servers:
        given = [servers.enter_context(answering(answer)) for _ in range(3)]
        configured = [extender(url, prioritize_verb="prioritize", weight=1, http_timeout="5s") for url in given]
        nodes, totals = store.snapshot(), np.zeros(3, dtype=np.int64)
        Extenders(configured, posting).prioritize(store.view(pod("p")), nodes, np.ones(3, dtype=bool), totals)
    assert totals.tolist() == [0, 0, 30]


def _drip(head: bytes) -> Callable[[socket.socket], None]:
    """Send a beginning, then a byte now and then, for as long as anybody listens."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            time.sleep(0.05)
            connection.sendall(b"x")

    return answer


def _flood(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"100000\r\n" + b" " * 0x100000 + b"\r\n")


def _say(body: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


HOSTILE: dict[str, tuple[Callable[[socket.socket], None], str]] = {
    "says nothing": (lambda connection: time.sleep(2), "no answer within 0.4 s"),
    "headers byte by byte": (_drip(b"HTTP/1.1 200 OK\r\nX-Long: "), "no answer within 0.4 s"),
    "a body byte by byte": (_drip(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"), "no answer within 0.4 s"),
    "a body without end": (_flood, "larger than 4 MiB"),
    "nested too deep": (_say(b"[" * 200_000 + b"]" * 200_000), "the answer to filter is nested too deep"),
    "a number without end": (_say(b'{"NodeNames": ' + b"9" * 200_000 + b"}"), "extender"),
    "a node that is no name": (_say(b'{"Nodes": {"items": [{"metadata": {"name": ["n0"]}}]}}'), "cannot be used"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_extender_gets_its_time_and_no_more(posting: HttpPoster, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, told = HOSTILE[case]
    monkeypatch.setattr("kubesched.server.app.extender_client.MAX_ANSWER_BYTES", 4 << 20)  # not to take up time
    store = Store()
    store.put_node(node("n0"))
    seconds = "400ms" if "0.4 s" in told else "5s"
    with answering(answer) as url:
        asked = Extenders([extender(url, filter_verb="filter", http_timeout=seconds)], posting)
        began = time.monotonic()
        with pytest.raises(PluginError, match=told) as error:
            asked.filter(store.view(pod("p")), store.snapshot(), np.ones(1, dtype=bool), Diagnosis(1))
        assert time.monotonic() - began < 4
    assert (error.value.plugin, error.value.point, error.value.pod) == ("Extender", "Filter", "default/p")


def test_a_connection_that_the_extender_closed_meanwhile_is_opened_again(posting: HttpPoster) -> None:
    def once(connection: socket.socket) -> None:
        _say(b"{}")(connection)
        connection.close()

    with answering(once) as url:
        given = extender(url, http_timeout="2s")
        assert [posting.post(f"{url}/bind", b"{}", given) for _ in range(3)] == [b"{}"] * 3


async def test_nobody_waits_for_a_slow_extender_but_its_pod(server: Any) -> None:
    engine, notes = build(
        {
            "urlPrefix": f"{server[0]}/slow",
            "filterVerb": "filter",
            "httpTimeout": "500ms",
            "managedResources": [{"name": "example.com/slow"}],
        }
    )
    engine.inbox.post(Changed("Pod", None, pod("slow", requests={"example.com/slow": "0"}, priority=10)))
    engine.inbox.post(Changed("Pod", None, pod("quick")))
    ticks = 0
    running = asyncio.create_task(engine.run())
    for _ in range(20):
        await asyncio.sleep(0.05)
        ticks += 1
    engine.stop()
    await running
    assert ticks == 20
    assert "default/quick" in notes.bound
    assert any("no answer within 0.5 s" in note for _, note in notes.told)
