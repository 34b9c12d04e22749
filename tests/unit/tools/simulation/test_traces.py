"""Traces of real clusters, and how a scenario takes them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
import yaml

from kubesched.contrib.gpu_table import COUNT, MILLI, MODEL
from kubesched.errors import ConfigError
from kubesched.tools.simulation.build import build_simulation
from kubesched.tools.simulation.scenario import Arrivals, read_scenario
from kubesched.tools.simulation.traces import TracedPod, arranged, read_nodes, read_trace

OPENB_PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p-2,6000,12288,1,460,V100M16|T4,LS,Running,20,120,30
p-1,1000,512,0,0,,LS,Running,10,,
"""
OPENB_NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-2,64000,262144,2,P100\nn-1,32000,131072,0,\n"
DLRM = """instance_sn,role,app_name,cpu_request,gpu_request,memory_request,disk_request,creation_time,scheduled_time,\
deletion_time
instance_7,HN,app_0,12,1,120.0,0,,,
instance_8,CN,app_1,0.5,0,8,64,100,105,400
"""


def file_with(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_openb_pods_and_nodes(tmp_path: Path) -> None:
    pods = read_trace(file_with(tmp_path, "pods.csv", OPENB_PODS), "openb")
    gpus = {COUNT: "1", MILLI: "460", MODEL: "V100M16|T4"}
    assert pods == [
        TracedPod(10.0, "p-1", requests={"cpu": "1000m", "memory": "512Mi"}),
        TracedPod(20.0, "p-2", duration=90.0, requests={"cpu": "6000m", "memory": "12288Mi"}, annotations=gpus),
    ]
    assert [pod.amount("gpu") for pod in pods] == [0.0, 0.46] and pods[1].amount("cpu") == 6.0
    nodes = read_nodes(file_with(tmp_path, "nodes.csv", OPENB_NODES), "openb")
    assert [(node.metadata.name, node.status.allocatable[COUNT]) for node in nodes] == [("n-1", "0"), ("n-2", "2")]
    assert (nodes[1].metadata.labels or {})[MODEL] == "P100"


def test_dlrm_instances(tmp_path: Path) -> None:
    first, second = read_trace(file_with(tmp_path, "dlrm.csv", DLRM), "dlrm")
    assert first == TracedPod(
        0.0,
        "instance-7",
        requests={"cpu": "12", "memory": "120Gi", "nvidia.com/gpu": "1"},
        labels={"app": "app_0", "role": "HN"},
    )
    assert (second.time, second.duration) == (100.0, 295.0)
    assert second.requests == {"cpu": "0.5", "memory": "8Gi", "ephemeral-storage": "64Gi"}
    with_nan = "\n".join(f"{line[:-3]},NaN,NaN,NaN" if line.endswith(",,,") else line for line in DLRM.splitlines())
    assert with_nan != DLRM.rstrip() and read_trace(file_with(tmp_path, "nan.csv", with_nan), "dlrm") == [first, second]


BAD = [
    ("openb", OPENB_PODS.replace("6000", "six"), "pods.csv, line 2: cpu_milli: 'six' is no whole number"),
    ("openb", "name\np\n", "pods.csv, line 2: cpu_milli: missing"),
    ("dlrm", DLRM.replace("12,1", "nan,1"), "pods.csv, line 2: cpu_request: 'nan' is out of range"),
    ("openb", OPENB_PODS.replace("6000", "9" * 200_000), "pods.csv, line 1: field larger than field limit"),
]


@pytest.mark.parametrize(("name", "text", "expected"), BAD, ids=["a word", "a column is missing", "not a number", "long"])
def test_a_bad_row_is_refused_in_one_line(tmp_path: Path, name: str, text: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected) as refused:
        read_trace(file_with(tmp_path, "pods.csv", text), name)
    assert len(str(refused.value)) < 400


PODS = [TracedPod(float(i), f"p{i}", requests={"cpu": "1"}) for i in range(6)]


def test_a_load_cuts_a_trace_or_draws_more_from_it() -> None:
    def names(load: float, order: str = "time", seed: int = 1) -> list[str]:
        arrivals = Arrivals(trace="t.csv", load={"cpu": load}, order=order)  # type: ignore[arg-type]
        return [pod.name for pod in arranged(PODS, arrivals, Random(seed), {"cpu": 4.0})]

    assert names(1.0) == ["p0", "p1", "p2", "p3"]
    assert len(names(2.0)) == 8 and names(2.0)[:6] == [pod.name for pod in PODS] and "-copy-1" in names(2.0)[6]
    assert names(1.5, "shuffled") != names(1.5, "shuffled", 2)
    assert sorted(names(1.5, "shuffled")) == [pod.name for pod in PODS]
    with pytest.raises(ConfigError, match="no pod of the trace asks for gpu"):
        arranged(PODS, Arrivals(trace="t.csv", load={"gpu": 1.0}), Random(1), {"gpu": 1.0})


def test_shuffled_pods_come_one_by_one_go_first_by_name_and_leave_when_they_find_no_node(tmp_path: Path) -> None:
    file_with(tmp_path, "pods.csv", OPENB_PODS)
    file_with(tmp_path, "nodes.csv", OPENB_NODES.replace("64000", "12000"))
    arrivals = {"trace": "pods.csv", "format": "openb", "order": "shuffled", "load": {"cpu": 1.2}, "durations": "forever"}
    scenario = {
        "ties": "name",
        "decisionTime": 0,
        "duration": 100,
        "cluster": {"nodeLists": [{"file": "nodes.csv", "format": "openb"}]},
        "workloads": [{"name": "w", "restarts": False, "patience": "500ms", "arrivals": arrivals}],
    }
    sim = build_simulation(read_scenario(file_with(tmp_path, "s.yaml", yaml.safe_dump(scenario))))
    figures = sim.run(100)
    came = [record.arrived for record in sim.pods.values()]
    assert sorted(came) == [float(i) for i in range(len(came))]
    assert figures["pods"]["pending"] == figures["pods"]["finished"] == 0
    assert figures["pods"]["deletedBecause"] == {"withdrawn": figures["pods"]["deleted"]} and figures["pods"]["deleted"] > 0


def test_what_belongs_to_a_trace_is_refused_without_one(tmp_path: Path) -> None:
    text = yaml.safe_dump({"workloads": [{"name": "w", "arrivals": {"rate": 1, "order": "shuffled"}}]})
    with pytest.raises(ConfigError, match="format, order, load and durations are of a trace"):
        read_scenario(file_with(tmp_path, "s.yaml", text))
