"""Scenarios enacted: nodes, workloads and events as the file says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubesched.errors import ConfigError, SchedulerError
from kubesched.testing import node, pod
from kubesched.tools.simulation.build import build_simulation
from kubesched.tools.simulation.scenario import Scenario, check, seconds
from kubesched.tools.simulation.simulation import Simulation
from kubesched.tools.snapshots.captured import Captured

ZONE = "topology.kubernetes.io/zone"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {priorityClassName: high, containers: [{name: c, image: shop, resources: {requests: {cpu: 100m}}}]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: 5
"""
CLUSTER = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: agent, resources: {requests: {cpu: 100m}}}]}
"""


def group(**more: Any) -> dict[str, Any]:
    return {"name": "n", "count": 3, "capacity": {"cpu": 4, "memory": "8Gi"}, "labels": {ZONE: "z{i%3}"}, **more}


def run(**parts: Any) -> tuple[Simulation, list[dict[str, Any]]]:
    scenario = msgspec.convert({"cluster": {"nodes": [group()]}, **parts}, Scenario)
    check(scenario)
    said: list[dict[str, Any]] = []
    with build_simulation(scenario, journal=said.append) as sim:
        sim.run(seconds(scenario.duration) if scenario.duration is not None else None)
    return sim, said


def states(sim: Simulation, workload: str) -> Counter[str]:
    return Counter(record.state for record in sim.world.records.values() if record.workload == workload)


def test_a_workload_is_spread_and_keeps_its_number() -> None:
    sim, said = run(
        workloads=[{"name": "web", "replicas": 6, "requests": {"cpu": "100m"}}], events=[{"at": 60, "remove": {"nodes": "n-0"}}]
    )
    assert states(sim, "web") == {"running": 6, "deleted": 2}
    assert sim.metrics()["spread"]["maxSkew"]["end"] == 0
    assert [event["event"] for event in said if event["at"] >= 60][:3] == ["nodeRemoved", "deleted", "arrived"]
    assert sum(1 for key, record in sim.pods.items() if record.n_before == 1 and key.endswith("-r1")) == 2


def test_a_workload_is_scaled_up_and_down() -> None:
    sim, _ = run(
        workloads=[{"name": "web", "replicas": 2, "requests": {"cpu": "100m"}}],
        events=[
            {"at": 10, "scale": {"workload": "web", "replicas": 5}},
            {"at": 20, "scale": {"workload": "web", "replicas": 1}},
        ],
    )
    assert states(sim, "web") == {"running": 1, "deleted": 4}
    assert sim.pods["default/web-1"].state == "running" and sim.pods["default/web-5"].why == "scaled"


def test_nodes_fail_recover_and_are_added() -> None:
    sim, said = run(
        workloads=[{"name": "w", "replicas": 3, "requests": {"cpu": "3"}}],
        events=[
            {"at": 10, "fail": {"nodes": "n-0", "lostAfter": 30}},
            {"at": 20, "add": group(count=1, startup=15)},
            {"at": 200, "recover": {}},
        ],
    )
    assert [(event["at"], event["event"]) for event in said if event["event"].startswith("node")] == [
        (10.0, "nodeFailed"),
        (35.0, "nodeAdded"),
        (200.0, "nodeRecovered"),
    ]
    lost = next(record for record in sim.pods.values() if record.why == "lost")
    assert lost.ended == pytest.approx(40)
    assert sim.pods[f"{lost.key}-r1"].node == "n-3" and not sim.world.down


def test_cordon_drain_resize_and_chance() -> None:
    sim, said = run(
        workloads=[{"name": "w", "replicas": 3, "requests": {"cpu": "1"}}],
        events=[
            {"at": 10, "cordon": {"count": 1}},
            {"at": 20, "uncordon": {}},
            {"at": 30, "drain": {"nodes": "n-1"}},
            {"at": 40, "resize": {"nodes": "n-2", "capacity": {"cpu": 16}}},
        ],
    )
    kinds = Counter(event["event"] for event in said)
    assert (kinds["nodeCordoned"], kinds["nodeUncordoned"], kinds["nodeDrained"], kinds["nodeResized"]) == (2, 1, 1, 1)
    assert sim.nodes["n-2"].status.allocatable["cpu"] == 16
    assert {record.node for record in sim.pods.values() if record.state == "running"} <= {"n-0", "n-2"}


def test_manifests_make_what_their_controllers_would(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "shop.yaml").write_text(DEPLOYMENT)
    sim, _ = run(
        folder=str(tmp_path),
        cluster={"nodes": [group()], "manifests": ["cluster.yaml"]},
        workloads=[{"name": "shop", "manifest": "shop.yaml", "arrivals": {"at": [0, 10]}}],
        events=[{"at": 30, "add": group(count=1)}],
    )
    assert states(sim, "agent") == {"running": 4} and states(sim, "shop") == {"running": 6}
    assert sorted(key for key in sim.pods if "shop" in key) == [
        "default/shop-1",
        "default/shop-1-2",
        "default/shop-2",
        "default/shop-2-2",
        "default/shop-3",
        "default/shop-3-2",
    ]
    assert sim.pods["default/shop-1"].pod.priority == 1000
    assert sim.metrics()["packing"]["nodesUsed"]["end"] == 3  # what a DaemonSet owns does not make a node used


def test_a_trace_brings_its_own_sizes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("time,name,cpu,duration,priority\n0,a,1,50,\n10,b,2500m,,100\n")
    sim, _ = run(folder=str(tmp_path), workloads=[{"name": "t", "arrivals": {"trace": "t.csv"}}])
    a, b = sim.pods["default/a"], sim.pods["default/b"]
    assert (a.cpu_milli, a.ended, b.cpu_milli, b.pod.priority) == (1000, pytest.approx(50, abs=0.1), 2500, 100)


def test_a_snapshot_is_where_it_begins(tmp_path: Path) -> None:
    there = Captured(7_000_000.0, [pod("old", on="a", requests={"cpu": "1"}), node("a"), pod("waits")], seed=3)
    (tmp_path / "s.jsonl").write_bytes(b"".join(there.lines()))
    sim, _ = run(folder=str(tmp_path), cluster={"snapshot": "s.jsonl"}, workloads=[{"name": "new"}])
    assert sim.metrics()["pods"]["there"] == 1 and {record.node for record in sim.pods.values()} == {"a"}
    assert sim.pods["default/new-1"].pod.metadata.creation_timestamp == "1970-03-23T00:26:40Z"


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ({"workloads": [{"name": "w", "arrivals": {"rate": 1}}]}, r"workloads\[0\].arrivals: pods would come forever"),
        (
            {"workloads": [{"name": "w", "pod": {"spec": {"tolerations": [{"operator": "Never"}]}}}]},
            r"workloads\[0\].pod: .*operator",
        ),
        ({"workloads": [{"name": "w", "manifest": "none.yaml"}]}, "none.yaml cannot be read"),
        ({"workloads": [{"name": "w", "arrivals": {"trace": "none.csv"}}]}, "none.csv: cannot be read"),
        ({"cluster": {"snapshot": "none.jsonl"}}, "none.jsonl"),
        ({"cluster": {"nodes": [group(), group()]}}, r"cluster.nodes\[1\].name: there are nodes named n already"),
    ],
)
def test_what_cannot_be_enacted_is_said_in_one_line(parts: dict[str, Any], complaint: str) -> None:
    with pytest.raises((ConfigError, SchedulerError), match=complaint):
        run(**parts)
