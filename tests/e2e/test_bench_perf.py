"""`kubesched bench perf`: a small workload of our own from files to figures, on the embedded API server and on a given one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from control_planes import PROGRAM, Api, ControlPlane

CASES = """
- name: Small
  labels: [performance, short]
  schedulerConfigPath: scheduler.yaml
  workloadTemplate:
  - {opcode: createNodes, countParam: $nodes}
  - {opcode: createAny, namespace: test, templatePath: claim-template.yaml}
  - {opcode: createAny, templatePath: class.yaml}
  - {opcode: createNodes, count: 2, nodeTemplatePath: node.yaml}
  - {opcode: createResourceDriver, driverName: d.example.com, nodes: dra-*, maxClaimsPerNode: 10}
  - {opcode: createPods, namespace: init, count: 5}
  - {opcode: createPods, namespace: test, count: 20, podTemplatePath: pod.yaml, collectMetrics: true}
  workloads:
  - {name: runs, params: {nodes: 3}, threshold: 1, featureGates: {DRAConsumableCapacity: false}}
  - {name: cannot, params: {nodes: 3}, featureGates: {PodSchedulingReadiness: false}}
- name: Plain
  workloadTemplate:
  - {opcode: createNodes, count: 3}
  - {opcode: createAny, templatePath: class.yaml}
  - {opcode: createAny, namespace: test, templatePath: claim-template.yaml}
  - {opcode: createPods, namespace: test, count: 20, collectMetrics: true}
  workloads:
  - {name: once}
"""
FILES = {
    "performance-config.yaml": CASES,
    "scheduler.yaml": "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    "profiles: [{schedulerName: default-scheduler}]\n",
    "node.yaml": "metadata: {name: 'dra-{{.Index}}'}\nstatus: {allocatable: {cpu: '4', memory: 8Gi, pods: '110'}}\n",
    "class.yaml": "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: test-class}\n"
    "spec: {selectors: [{cel: {expression: 'device.driver == \"d.example.com\"'}}]}\n",
    "claim-template.yaml": "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: t}\n"
    "spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: test-class}}]}}}\n",
    "pod.yaml": "metadata: {generateName: pod-}\nspec: {containers: [{name: c, image: i}],"
    " resourceClaims: [{name: r, resourceClaimTemplateName: t}]}\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


async def bench(*words: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, "bench", "perf", *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def test_workloads_run_and_those_that_cannot_are_named(folder: Path) -> None:
    code, out, err = await bench(str(folder), "-o", "json")
    runs, cannot = json.loads(out)
    assert (runs["case"], runs["workload"], runs["threshold"], runs["error"]) == ("Small", "runs", 1.0, None)
    assert runs["scheduled"] == 20 and runs["throughput"] > 0 and runs["ratio"] == round(runs["throughput"], 2)
    assert runs["attempt_ms"]["p99"] >= runs["attempt_ms"]["p50"] > 0 and runs["wait_ms"]["p50"] > 0
    assert runs["feature_gates"] == {"DRAConsumableCapacity": False} and runs["rss_mib"] > 20
    assert (cannot["workload"], cannot["throughput"]) == ("cannot", None)
    assert cannot["error"] == "cannot set feature gate PodSchedulingReadiness to false, feature is locked to true"
    assert code == 1 and err.splitlines()[-1] == "Error: 1 of 2 workloads did not run to their end"


async def test_a_given_cluster_is_left_as_it_was(folder: Path, control_plane: ControlPlane, api: Api) -> None:
    given = ("--kubeconfig", str(control_plane.kubeconfig("admin")), "--case", "Plain", "-o", "json")
    before = [one["metadata"]["name"] for one in (await api.get("/api/v1/namespaces"))["items"]]
    code, out, err = await bench(str(folder), *given)
    assert code == 0, err
    assert [row["scheduled"] for row in json.loads(out)] == [20]
    for path in ("/api/v1/nodes", "/api/v1/pods", "/apis/resource.k8s.io/v1/deviceclasses"):
        assert (await api.get(path))["items"] == [], path
    assert [one["metadata"]["name"] for one in (await api.get("/api/v1/namespaces"))["items"]] == before
