"""`kubesched shadow` beside a scheduler that has everything to decide at once: churn, preemption, spread, volumes, devices.

It is kube-scheduler where KUBEBUILDER_ASSETS has one, else our own; on the embedded API server, and on etcd and
kube-apiserver where KUBEBUILDER_ASSETS has these. The shadow has the rights that `deploy/kustomize/shadow` grants, and a proxy
writes down what it asks. Every placement must be explained: the same node, an equal one, the best of a sample, or one of these
on a state that the scheduler may have seen.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path

import pytest
from busy_cluster import KINDS, busy_cluster
from control_planes import PROGRAM, ControlPlane, Object, process, scheduler_program
from faulty_proxy import Recorder

from kubesched.tools.bench.processes import cpu_seconds

PATIENCE_SECONDS = 60.0
N_NODES = int(os.environ.get("SHADOW_NODES", "24"))
N_PLACED = int(os.environ.get("SHADOW_PLACEMENTS", "500"))
RATE = float(os.environ.get("SHADOW_RATE", "60"))
"""Pods that come a second: no more than the machine decides, binds and judges, or only want of CPU is measured."""


def live_command(plane: ControlPlane) -> tuple[str, ...]:
    """Return how to start the scheduler that is judged."""
    options = ("--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=1000")
    return (*scheduler_program(), f"--kubeconfig={plane.kubeconfig('admin')}", *options)


async def judged(
    plane: ControlPlane, folder: Path, n_nodes: int, n_placed: int, seed: int
) -> tuple[Object, dict[str, int], set[str]]:
    """Return what the shadow found, what happened in the cluster, and the verbs that the shadow used."""
    log, kept = folder / "shadow.log", folder / "differences"
    recorder = Recorder(plane.url, plane.tls)
    async with recorder, busy_cluster(plane, n_nodes, seed) as cluster:
        kubeconfig = plane.kubeconfig("shadow", recorder.url)
        words = (
            *PROGRAM,
            "shadow",
            f"--kubeconfig={kubeconfig}",
            "-o",
            "json",
            "--window=5",
            "--control=0.3",
            f"--snapshots={kept}",
            "--max-snapshots=20",
        )
        async with process(*words, log=log) as shadow, process(*live_command(plane), log=folder / "live.log"):
            deadline = time.monotonic() + PATIENCE_SECONDS
            while f"Following {n_nodes} nodes" not in log.read_text(encoding="utf-8"):
                assert shadow.poll() is None and time.monotonic() < deadline, log.read_text(encoding="utf-8")
                await asyncio.sleep(0.05)
            await cluster.run(n_placed, RATE)
            await asyncio.sleep(3.0)  # what is bound by now has arrived
            print(f"the shadow has used {cpu_seconds(shadow.pid)} s of CPU")
            shadow.send_signal(signal.SIGINT)
            out, _ = await asyncio.to_thread(shadow.communicate, None, 10 * PATIENCE_SECONDS)
            assert shadow.returncode == 0, log.read_text(encoding="utf-8")
    found = json.loads(out)
    assert found["judged"] + found["missed"] == cluster.n_placed, "none is overlooked"
    return found, cluster.kinds, {verb for verb, _ in recorder.asked}


async def check(plane: ControlPlane, folder: Path, n_nodes: int, n_placed: int, seed: int) -> None:
    found, kinds, verbs = await judged(plane, folder, n_nodes, n_placed, seed)
    print(json.dumps({**found, "happened": kinds, "differences": found["differences"][:5]}, indent=1))
    assert (found["explainedPercent"], found["missed"], found["differences"]) == (100.0, 0, [])
    assert verbs == {"GET"}
    control = found["control"]
    # Some 8 of a hundred are excused. A dozen draws would tell little: by chance two or three of them are.
    assert control["drawn"] > 100 and control["foundOut"] > 5 * control["passedAsRaces"], (
        "a node drawn by lot is hardly ever excused"
    )
    assert kinds.keys() >= {*KINDS, "nominated", "provisioned"}, "all of it happened"


@pytest.mark.nightly
async def test_every_placement_is_explained(control_plane: ControlPlane, tmp_path: Path) -> None:
    await check(control_plane, tmp_path, N_NODES, N_PLACED, seed=1)
