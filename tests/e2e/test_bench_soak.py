"""`kubesched bench soak`: a few seconds of churn with a failover; every pod is bound once, and nothing is left behind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from control_planes import PROGRAM, Api, ControlPlane, Refused


async def soak(*words: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, "bench", "soak", *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def test_a_failover_on_a_given_cluster(control_plane: ControlPlane, api: Api, tmp_path: Path) -> None:
    page = tmp_path / "soak.md"
    size = ("--nodes=20", "--pods=100", "--rate=30", "--duration=5s", "--fault-every=2s", "--fault=terminate", "-o", "json")
    code, out, err = await soak(*size, f"--report={page}", f"--kubeconfig={control_plane.kubeconfig('admin')}")
    assert code == 0, err
    found = json.loads(out)
    assert found["complaints"] == [] and found["isFinal"]
    pods = found["pods"]
    assert pods["askedFor"] == pods["bound"] >= 100 and pods["waiting"] == pods["boundTwice"] == 0
    assert found["decisionMicroseconds"]["count"] >= 100 and found["podToBoundMilliseconds"]["p99"] > 0
    assert found["faults"][0]["kind"] == "terminate" and found["faults"][0]["boundAfterSeconds"] > 0
    assert sum(each["name"].startswith("scheduler") for each in found["processes"]) >= 3
    assert page.read_text(encoding="utf-8").startswith("# Soak report") and "Nothing was missed" in page.read_text(
        encoding="utf-8"
    )
    for path in ("/api/v1/nodes", "/api/v1/pods"):
        assert (await api.get(path))["items"] == []
    with pytest.raises(Refused, match="404"):  # gone for good, also without a controller: the next run can make it anew
        await api.get("/api/v1/namespaces/sched-0")


async def test_wrong_words_are_one_line() -> None:
    code, _, err = await soak("--duration=fortnight")
    assert code == 2 and "'fortnight' is no length of time" in err
