"""A replica of the scheduler as a process of its own, and what it believes.

Each replica reaches the API server through a proxy of its own, which writes down every binding that passes. SIGUSR2 makes
the replica log what it believes; `belief` reads that, to be compared with the API.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from control_planes import PATIENCE_SECONDS, PROGRAM, Api, ControlPlane, Object
from faulty_proxy import FaultyProxy

LEASE_SECONDS = 6.0
"""Long enough that a process which shares two cores with a whole test suite renews in time: with a deadline of two seconds a
starved leader lost its lease now and then, as it should, and the test that expected it to lead failed."""
ELECTION = (
    "--leader-elect-resource-name=kubesched",
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=5s",
    "--leader-elect-retry-period=400ms",
)


class Witness(FaultyProxy):
    """A proxy that remembers which bindings passed, when, and what the server said. It may hide parts of the API."""

    def __init__(self, plane: ControlPlane, hidden: tuple[str, ...] = ()) -> None:
        super().__init__(plane.url, tls=plane.tls)
        self.queries: list[tuple[str, Mapping[str, str]]] = []
        """Every GET that had a query: its path and that."""
        self._hidden = hidden
        self.bindings: list[tuple[float, str, int]] = []
        """When, which pod by its uid (a name may belong to several pods in turn), and the status that was passed on."""

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        arrived = time.monotonic()
        if request.path.startswith(self._hidden):
            return web.Response(status=404, text="404 page not found\n")
        if request.method == "GET" and request.query:
            self.queries.append((request.path, request.query))
        answer = await super()._handle(request)
        if request.method == "POST" and request.path.endswith("/binding"):
            uid = json.loads(await request.read())["metadata"]["uid"]
            self.bindings.append((arrived, uid, answer.status))
        return answer

    def lists_of(self, path: str) -> list[Mapping[str, str]]:
        """Return how a collection was listed: the queries that were no plain watches, and no looks at its version."""
        return [
            query
            for where, query in self.queries
            if where == path and ("watch" not in query or "sendInitialEvents" in query) and query.get("limit") != "1"
        ]

    def since(self, moment: float) -> list[str]:
        """Return the pods that somebody tried to bind since a moment."""
        return [pod for arrived, pod, _ in self.bindings if arrived >= moment]


@dataclass
class Belief:
    """What a replica has in its store and queue."""

    pods_on: dict[str, set[str]]
    cpu_milli: dict[str, int]
    pending: set[str]
    mismatches: list[Object]


class Replica:
    """One process."""

    def __init__(self, name: str, witness: Witness, command: list[str], log: Path) -> None:
        self.name = name
        self.witness = witness
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self, seconds: float = 20.0) -> int:
        """Wait for the end and return the exit code."""
        deadline = time.monotonic() + seconds
        while self.is_running:
            assert time.monotonic() < deadline, f"{self.name} still runs: {self.last_words()}"
            await asyncio.sleep(0.02)
        return int(self.process.returncode)

    def lines(self) -> list[Object]:
        """Return the log so far; lines that are no JSON are kept as a message."""
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                found.append({"msg": line})
        return found

    def says(self, text: str) -> bool:
        """Return whether the log has a text."""
        return text in self.log.read_text(errors="replace")

    async def until_says(self, text: str, seconds: float = PATIENCE_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not self.says(text):
            assert self.is_running, f"{self.name} ended: {self.last_words()}"
            assert time.monotonic() < deadline, f"{self.name} never said {text!r}: {self.last_words()}"
            await asyncio.sleep(0.05)

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]

    async def belief(self) -> Belief:
        """Ask what it believes."""
        n_before = len(self.lines())
        self.send(signal.SIGUSR2)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            said = self.lines()[n_before:]
            if any(line["msg"] == "Dump of scheduling queue" for line in said):
                return _belief(said)
            assert self.is_running and time.monotonic() < deadline, f"{self.name}: no dump: {self.last_words()}"
            await asyncio.sleep(0.02)


def _belief(said: list[Object]) -> Belief:
    belief = Belief({}, {}, set(), [line for line in said if line["msg"] == "Cache mismatch"])
    for line in said:
        if line["msg"] == "Dump of cached NodeInfo":
            for paragraph in filter(None, line["nodes"].split("\n\n")):
                name = _first(r"Node name: (.*)", paragraph)
                belief.pods_on[name] = set(re.findall(r"uid: ([^,]*),", paragraph))
                belief.cpu_milli[name] = int(_first(r"Requested Resources: &\{MilliCPU:(\d+)", paragraph))
        elif line["msg"] == "Dump of scheduling queue":
            belief.pending = set(re.findall(r"uid: ([^,]*),", line["pods"]))
    return belief


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, f"no {pattern!r} in {text!r}"
    return found[1]


def believed_of(pods: list[Object], nodes: list[Object]) -> Belief:
    """Return what a replica should believe, by the API."""
    truth = Belief({node["metadata"]["name"]: set() for node in nodes}, defaultdict(int), set(), [])
    for pod in pods:
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        if not node:
            truth.pending.add(uid)
            continue
        truth.pods_on.setdefault(node, set()).add(uid)
        for container in pod["spec"]["containers"]:
            truth.cpu_milli[node] += _milli(container["resources"]["requests"]["cpu"])
    truth.cpu_milli = {name: truth.cpu_milli[name] for name in truth.pods_on}
    return truth


def _milli(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


async def agree(replica: Replica, api: Api, seconds: float = 20.0) -> None:
    """Wait until a replica believes what the API says, node by node and pod by pod."""
    deadline = time.monotonic() + seconds
    while True:
        found = await replica.belief()
        truth = believed_of(await api.pods(), (await api.get("/api/v1/nodes"))["items"])
        if found == truth:
            return
        assert time.monotonic() < deadline, f"{replica.name} believes {found}, and the API says {truth}"
        await asyncio.sleep(0.2)


def check_bound_once(pods: list[Object], nodes: list[Object], *witnesses: Witness) -> None:
    """Check that no pod was accepted twice and no node has more than it can take."""
    accepted = [pod for witness in witnesses for _, pod, status in witness.bindings if status == 201]
    twice = {pod for pod in accepted if accepted.count(pod) > 1}
    assert not twice, f"bound twice: {twice}"
    booked = believed_of(pods, nodes).cpu_milli
    for node in nodes:
        name = node["metadata"]["name"]
        assert booked[name] <= _milli(node["status"]["allocatable"]["cpu"]), f"{name} is overbooked"


class Replicas:
    """Starts replicas against a control plane, and ends them all in the end."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        self.all: list[Replica] = []

    async def start(
        self,
        *flags: str,
        token_file: Path | None = None,
        hidden: tuple[str, ...] = (),
        program: Sequence[str] = PROGRAM,
    ) -> Replica:
        """Start one more."""
        name = f"replica-{len(self.all)}"
        witness = Witness(self.plane, hidden)
        await witness.start()
        kubeconfig = self.plane.kubeconfig("scheduler", witness.url, token_file)
        command = [
            *program,
            "run",
            *ELECTION,
            "--secure-port=0",
            "--logging-format=json",
            "-v=3",
            f"--kubeconfig={kubeconfig}",
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
            *flags,
        ]
        replica = Replica(name, witness, command, self.folder / f"{name}.log")
        self.all.append(replica)
        return replica

    async def stop(self) -> None:
        for replica in self.all:
            if replica.is_running:
                replica.send(signal.SIGCONT)
                replica.process.kill()
            replica.process.wait()
            await replica.witness.stop()


@asynccontextmanager
async def replicas_of(plane: ControlPlane, folder: Path) -> AsyncIterator[Replicas]:
    """Lend a starter of replicas."""
    replicas = Replicas(plane, folder)
    try:
        yield replicas
    finally:
        await replicas.stop()
