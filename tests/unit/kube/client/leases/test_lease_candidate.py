"""Coordinated leader election: candidates answer, the coordinator names one, and nobody takes the lease by itself."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from client_fakes import FakeChance, status

from kubesched.errors import Unreachable
from kubesched.kube.client.leases.leader_election import Callbacks, LeaderElector
from kubesched.kube.client.leases.lease_candidate import LeaseCandidate
from kubesched.kube.client.leases.locks import LeaseLock
from kubesched.testing.fakes import FakeClock, settle

PING = "2023-11-14T22:13:25.000000Z"


class Shelf:
    """An API server that holds objects by path, with versions."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.objects: dict[str, dict[str, Any]] = {}
        self.version = 0
        self.is_away = False

    async def request(self, method: str, path: str, body: bytes | None = None, content_type: str = "") -> bytes:
        if self.is_away:
            raise Unreachable("connection refused")
        sent = json.loads(body) if body else {}
        path = f"{path}/{sent['metadata']['name']}" if method == "POST" else path
        if method != "POST" and path not in self.objects:
            raise status(404, "NotFound")
        if method == "PUT" and sent["metadata"]["resourceVersion"] != self.objects[path]["metadata"]["resourceVersion"]:
            raise status(409, "Conflict")
        if sent:
            self.put(path, sent)
        return json.dumps(self.objects[path]).encode()

    def put(self, path: str, sent: dict[str, Any]) -> None:
        self.version += 1
        self.objects[path] = {**sent, "metadata": {**sent["metadata"], "resourceVersion": str(self.version)}}

    def change(self, path: str, **spec: Any) -> None:
        found = self.objects[path]
        self.put(path, {**found, "spec": {**found["spec"], **spec}})


CANDIDATE = "/apis/coordination.k8s.io/v1beta1/namespaces/kube-system/leasecandidates/one"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def lease(holder: str) -> dict[str, Any]:
    fields = {"holderIdentity": holder, "leaseDurationSeconds": 15, "strategy": "OldestEmulationVersion", "leaseTransitions": 3}
    return {"metadata": {"name": "kube-scheduler"}, "spec": {**fields, "renewTime": "2023-11-14T22:13:20.000000Z"}}


async def test_a_candidate_says_what_it_is_and_answers_when_it_is_asked(shelf: Shelf) -> None:
    made = LeaseCandidate(
        shelf,  # type: ignore[arg-type]
        "one",
        "kube-scheduler",
        binary_version="1.37.0",
        emulation_version="1.36.0",
        namespace="kube-system",
        clock=shelf.clock,
    )
    running = asyncio.create_task(made.run())
    await settle()
    assert shelf.objects[CANDIDATE]["spec"] == {
        "leaseName": "kube-scheduler",
        "binaryVersion": "1.37.0",
        "emulationVersion": "1.36.0",
        "strategy": "OldestEmulationVersion",
        "renewTime": "2023-11-14T22:13:20.000000Z",
    }
    await shelf.clock.advance(4.0)
    assert shelf.version == 1, "nobody asked"
    shelf.change(CANDIDATE, pingTime=PING)
    await shelf.clock.advance(2.0)
    assert shelf.objects[CANDIDATE]["spec"]["renewTime"] == "2023-11-14T22:13:26.000000Z"
    await shelf.clock.advance(100.0)
    assert shelf.version == 3, "an answer holds until the next question"
    await shelf.clock.advance(300.0)
    assert shelf.version == 4, "and is renewed every five minutes"
    shelf.is_away = True
    await shelf.clock.advance(10.0)
    shelf.is_away = False
    del shelf.objects[CANDIDATE]
    await shelf.clock.advance(2.0)
    assert CANDIDATE in shelf.objects, "one that was deleted stands again"
    running.cancel()


@pytest.mark.parametrize("is_coordinated", [False, True])
async def test_who_takes_the_lease(shelf: Shelf, is_coordinated: bool) -> None:
    """Without a coordinator the first takes a lease that nobody has; with one it waits to be named."""
    news: list[str] = []
    elector = LeaderElector(
        LeaseLock(shelf, "one", "kube-system", "kube-scheduler"),  # type: ignore[arg-type]
        Callbacks(on_started=lambda: news.append("started"), on_stopped=lambda: news.append("stopped")),
        clock=shelf.clock,
        chance=FakeChance(0.0),
        is_coordinated=is_coordinated,
    )
    running = asyncio.create_task(elector.run())
    await shelf.clock.advance(5.0)
    assert news == ([] if is_coordinated else ["started"])
    if is_coordinated:
        shelf.put(LEASE, lease("two"))
        await shelf.clock.advance(60.0)
        assert news == [], "not even when another has let it run out"
        shelf.put(LEASE, lease("one"))
        await shelf.clock.advance(4.0)
        assert news == ["started"]
        spec = shelf.objects[LEASE]["spec"]
        assert (spec["holderIdentity"], spec["leaseTransitions"], spec["strategy"]) == ("one", 3, "OldestEmulationVersion")
        await shelf.clock.advance(30.0)
        assert news == ["started"], "it is renewed"
        shelf.change(LEASE, preferredHolder="two")
        await shelf.clock.advance(15.0)
        assert news == ["started", "stopped"] and shelf.objects[LEASE]["spec"]["holderIdentity"] == "one"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
