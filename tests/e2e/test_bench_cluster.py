"""`kubesched bench cluster`: figures of a small run, nothing left behind, and no benchmark on somebody's real nodes."""

from __future__ import annotations

import asyncio
import json

from control_planes import PROGRAM, Api, ControlPlane, Refused, a_node


async def bench(*words: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, "bench", "cluster", *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def test_a_given_cluster_is_measured_and_left_as_it_was(control_plane: ControlPlane, api: Api) -> None:
    given = f"--kubeconfig={control_plane.kubeconfig('admin')}"
    code, out, err = await bench("--nodes=20", "--pods=60", "--kind=spread", "-o", "json", given)
    assert code == 0, err
    figures = json.loads(out)
    assert figures["bound"] == figures["pods"] == 60
    assert figures["nodes_used"] == 20
    assert figures["pods_per_s"] > 1 and figures["first_bind_s"] > 0 and figures["rss_mib"] > 20
    assert figures["cpu_ms_per_pod"] > figures["steady_cpu_ms_per_pod"] > 0
    assert (await api.get("/api/v1/nodes"))["items"] == []
    assert (await api.get("/api/v1/pods"))["items"] == []
    assert await gone(api, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kubesched-bench")

    await api.create(a_node("worker-1"))
    code, out, err = await bench("--nodes=1", "--pods=1", given)
    assert (code, out) == (1, "")
    assert "the cluster has 1 nodes of its own, worker-1 among them" in err and len(err.splitlines()) == 1


async def test_a_bare_client_shows_what_the_api_server_allows() -> None:
    code, out, err = await bench("--nodes=5", "--init=10", "--pods=20", "--bare-client", "-o", "json")
    assert code == 0, err
    figures = json.loads(out)
    assert (figures["kind"], figures["init"], figures["bound"], figures["nodes_used"]) == ("basic, bare client", 10, 20, 5)
    assert figures["pods_per_s"] > 1


async def test_pods_that_come_at_a_rate_say_how_long_they_waited() -> None:
    code, out, err = await bench("--nodes=5", "--pods=40", "--rate=100", "-o", "json")
    assert code == 0, err
    figures = json.loads(out)
    assert figures["bound"] == 40
    assert 0 < figures["wait_p50_ms"] <= figures["wait_p99_ms"] < 5000
    code, out, err = await bench("--bare-client", "--rate=1")
    assert (code, out) == (2, "")
    assert "--bare-client binds pods that wait; it knows no --rate" in err


async def gone(api: Api, path: str) -> bool:
    try:
        await api.get(path)
    except Refused as error:
        return error.status == 404
    return False
