"""The users' ledger of a soak: who waits, how long it took, and what must not be."""

from __future__ import annotations

import asyncio
import random
from typing import cast

import pytest

from kubesched.kube.api.pod import Pod
from kubesched.kube.client.connection import MAX_IN_FLIGHT, Connection
from kubesched.testing.builders import pod as a_pod
from kubesched.tools.bench import workloads
from kubesched.tools.bench.soak.churn import PODS_PER_NODE, Ledger, Users


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(clock: Clock) -> Ledger:
    return Ledger(clock)


def placed(name: str, node: str) -> Pod:
    return a_pod(name, on=node)


def test_the_time_from_asking_to_the_binding_is_measured_once(ledger: Ledger, clock: Clock) -> None:
    ledger.created["a"] = 99.0
    ledger.deliver("Pod", a_pod("a"), placed("a", "node-1"))
    clock.now = 105.0
    ledger.deliver("Pod", placed("a", "node-1"), placed("a", "node-1"))
    assert (list(ledger.delays), ledger.n_bound, ledger.created) == ([1.0], 1, {})


def test_pods_that_were_there_before_are_not_measured(ledger: Ledger) -> None:
    ledger.deliver("Pod", None, placed("old", "node-1"))
    assert (ledger.n_bound, ledger.node_of) == (0, {"old": "node-1"})


def test_a_pod_that_changes_its_node_was_bound_twice(ledger: Ledger) -> None:
    ledger.deliver("Pod", None, placed("a", "node-1"))
    ledger.deliver("Pod", placed("a", "node-1"), placed("a", "node-2"))
    assert ledger.bound_twice == ["a: node-1, then node-2"]


def test_a_node_with_more_than_fits_is_named_though_it_gets_better(ledger: Ledger) -> None:
    for number in range(PODS_PER_NODE + 1):
        ledger.deliver("Pod", None, placed(f"p{number}", "node-1"))
    ledger.deliver("Pod", placed("p0", "node-1"), None)
    assert ledger.overbooked == {"node-1": PODS_PER_NODE + 1}
    assert (ledger.most_on_a_node, ledger.n_gone) == (PODS_PER_NODE, 1)


def test_what_fits_is_what_the_benchmarks_node_offers() -> None:
    node, pod = workloads.node(0), workloads.pod(0, "basic")
    assert int(str(node.status.allocatable["cpu"])) * 1000 // 100 == PODS_PER_NODE
    assert pod.spec.containers[0].resources.requests["cpu"] == "100m"


def test_a_pod_is_drawn_once_and_only_while_it_is_there(ledger: Ledger) -> None:
    for name in "abc":
        ledger.deliver("Pod", None, placed(name, "node-1"))
    ledger.deliver("Pod", placed("b", "node-1"), None)
    chance = random.Random(1)
    assert {ledger.draw(chance), ledger.draw(chance)} == {"a", "c"}
    assert ledger.draw(chance) is None


class Busy:
    """A connection that counts what it has under way."""

    n_now = most = n_done = 0

    async def request(self, method: str, path: str) -> bytes:
        self.n_now += 1
        self.most = max(self.most, self.n_now)
        await asyncio.sleep(0)
        self.n_now -= 1
        self.n_done += 1
        return b""


async def test_the_pods_of_lost_nodes_leave_room_for_new_ones_in_the_client(ledger: Ledger) -> None:
    for number in range(10 * MAX_IN_FLIGHT):
        ledger.deliver("Pod", None, placed(f"p{number}", f"node-{number % 2:05d}"))
    wire = Busy()
    users = Users(cast(Connection, wire), ledger, nodes=2, pods=0, rate=1.0, seed=0)
    await users.clear_nodes(range(2))
    assert wire.n_done == 10 * MAX_IN_FLIGHT and wire.most < MAX_IN_FLIGHT
