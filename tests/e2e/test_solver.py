"""A `Cluster` that follows a live API server over real HTTP: it sees every change soon, and asks with nothing but GET."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from control_planes import a_node, a_pod, free_port, write_kubeconfig
from faulty_proxy import Recorder

from kubesched.embedded import ApiServer
from kubesched.errors import SchedulerError
from kubesched.solver import AsyncCluster, Cluster

PATIENCE_SECONDS = 30.0


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_a_live_cluster_is_followed_and_never_written_to(tmp_path: Path) -> None:
    async with ApiServer() as server, Recorder(server.url) as recorder:
        for name in ("n0", "n1"):
            server.store.create("nodes", a_node(name))
        server.store.create("pods", a_pod("waits", "9"), "default")
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", recorder.url, {})
        cluster = await asyncio.to_thread(Cluster.from_kubeconfig, str(kubeconfig))
        try:
            asked = a_pod("asked", "3")
            assert cluster.fits(asked).n_feasible == 2
            assert [pod.name for pod in cluster.pending()] == ["waits"]
            version = cluster.version
            server.store.create("nodes", a_node("n2"))
            assert await asyncio.to_thread(cluster.changed, version, PATIENCE_SECONDS) > version
            assert cluster.fits(asked).n_feasible == 3
            with cluster.what_if() as world:
                server.store.create("nodes", a_node("n3"))
                world.cordon("n2")
                await asyncio.sleep(0.2)  # what arrives now waits
                assert (world.fits(asked).n_nodes, world.fits(asked).n_feasible) == (3, 2)
            await until(lambda: cluster.fits(asked).n_feasible == 4)
            server.store.create("pods", a_pod("runs", "3", nodeName="n0"), "default")
            await until(lambda: cluster.fits(asked).n_feasible == 3)
            server.store.delete("pods", "runs", "default")
            server.store.delete("nodes", "n3")
            await until(lambda: (cluster.fits(asked).n_nodes, cluster.fits(asked).n_feasible) == (3, 3))
            many = AsyncCluster(cluster)
            assert len((await many.place([a_pod(f"p{i}", "3") for i in range(4)])).placed) == 3
        finally:
            await asyncio.to_thread(cluster.close)
        assert cluster.fits(asked).n_feasible == 3  # what was heard until then
        assert recorder.asked and {verb for verb, _ in recorder.asked} == {"GET"}


async def test_a_server_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{free_port()}", {})
    with pytest.raises(SchedulerError) as raised:
        await asyncio.to_thread(Cluster.from_kubeconfig, str(kubeconfig))
    assert "\n" not in str(raised.value)
