"""Several replicas, one leader by Lease: whatever happens to the leader, another goes on, and no pod is bound twice."""

from __future__ import annotations

import asyncio
import signal
import time

from control_planes import Api
from replicas import LEASE_SECONDS, Replica, Replicas, agree, check_bound_once

N_NODES = 8


async def check(api: Api, replicas: Replicas) -> None:
    """Check what must hold after every run."""
    nodes = (await api.get("/api/v1/nodes"))["items"]
    check_bound_once(await api.pods(), nodes, *(replica.witness for replica in replicas.all))


async def leader_of(api: Api, replicas: Replicas) -> tuple[Replica, list[Replica]]:
    """Return the one that leads and those that wait."""
    await api.until_leader()
    deadline = time.monotonic() + 20
    while True:
        leading = [replica for replica in replicas.all if replica.is_running and replica.says("successfully acquired")]
        if leading:
            assert len(leading) == 1
            return leading[0], [replica for replica in replicas.all if replica is not leading[0]]
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def start(api: Api, replicas: Replicas, count: int) -> tuple[Replica, list[Replica]]:
    await api.add_nodes(N_NODES)
    for _ in range(count):
        await replicas.start()
    leader, standbys = await leader_of(api, replicas)
    for replica in standbys:
        await replica.until_says("attempting to acquire")
    return leader, standbys


async def test_a_standby_takes_over_after_the_leader_is_killed(api: Api, replicas: Replicas) -> None:
    leader, (standby,) = await start(api, replicas, 2)
    holder = await api.leader()
    await api.add_pods(0, 30)
    await api.until_bound(30)
    await agree(standby, api)  # it follows everything
    assert standby.witness.bindings == []  # and binds nothing
    await api.add_pods(30, 30)
    await api.until_bound(40)
    leader.process.kill()
    await leader.ended()
    renewed = await api.lease_time("renewTime")
    await api.add_pods(60, 60)
    await api.until_leader(but=holder)
    # How soon is a matter of a virtual clock (unit tests of the elector); never too soon is one of the real program.
    assert await api.lease_time("acquireTime") - renewed >= LEASE_SECONDS - 0.1
    await api.until_bound(120)
    assert standby.witness.bindings, "the standby bound nothing"
    await agree(standby, api)
    await check(api, replicas)


async def test_a_leader_that_is_told_to_stop_gives_the_lease_back(api: Api, replicas: Replicas) -> None:
    leader, (standby,) = await start(api, replicas, 2)
    await api.add_pods(0, 20)
    await api.until_bound(20)
    holder = await api.leader()
    leader.send(signal.SIGTERM)
    assert await leader.ended() == 0
    assert await api.leader() != holder  # given back, or already taken
    await api.until_leader(but=holder)
    await api.add_pods(20, 20)
    await api.until_bound(40)
    await agree(standby, api)
    await check(api, replicas)


async def test_a_frozen_leader_finds_another_leading_and_leaves_without_binding(api: Api, replicas: Replicas) -> None:
    frozen, (standby,) = await start(api, replicas, 2)
    holder = await api.leader()
    await api.add_pods(0, 20)
    await api.until_bound(5)
    frozen.send(signal.SIGSTOP)  # with pods in its inbox and bindings under way
    second = await api.until_leader(but=holder)
    await api.until_bound(20)
    # Now nobody is awake who could bind, and pods wait that the frozen one will hear of the moment it wakes.
    standby.send(signal.SIGSTOP)
    await api.add_pods(20, 20)
    thawed = time.monotonic()
    frozen.send(signal.SIGCONT)
    assert await frozen.ended() == 1
    assert frozen.says("leader election lost")
    assert frozen.witness.since(thawed) == []
    assert await api.n_bound() == 20
    assert await api.leader() == second
    standby.send(signal.SIGCONT)
    await api.until_bound(40)
    await check(api, replicas)
    await agree(standby, api)
