"""The benchmark's cluster and pods have the shape that everybody else measures with."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from kubesched.contrib import gpu_table
from kubesched.kube.api.core import Service
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.cluster.pods import sign
from kubesched.scheduler.engine.assembly import default_configuration
from kubesched.tools.bench import gpu_pods, workloads
from kubesched.tools.bench.engine import Bench, build_engine, first_of_class, run
from kubesched.tools.bench.workloads import KINDS

BLUE, GREEN = {"matchLabels": {"color": "blue"}}, {"matchLabels": {"color": "green"}}
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"


def wire(obj: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(obj))


def test_nodes_have_4_cores_32_gibibytes_and_one_of_ten_zones() -> None:
    nodes = [obj for obj in workloads.cluster("basic", 25, 0, 0) if isinstance(obj, Node)]
    assert len({node.metadata.name for node in nodes}) == 25
    for i, node in enumerate(nodes):
        assert dict(node.status.allocatable) == {"cpu": "4", "memory": "32Gi", "pods": "110"}
        assert node.metadata.labels == {HOST: node.metadata.name, ZONE: f"zone-{i % 10}"}
        assert not node.spec.taints


def test_init_pods_are_plain_blue_and_placed_in_turn() -> None:
    objects = list(workloads.cluster("basic", 4, 6, 0))
    nodes, pods = objects[:4], objects[4:]
    for i, pod in enumerate(pods):
        assert isinstance(pod, Pod)
        assert (pod.metadata.namespace, pod.metadata.labels) == ("sched-0", {"color": "blue"})
        assert pod.spec.node_name == nodes[i % 4].metadata.name
        assert not pod.spec.containers[0].resources.requests and pod.spec.affinity is None


SPREAD = {"maxSkew": 5, "topologyKey": ZONE, "labelSelector": BLUE}
KIND_ADDS: dict[str, tuple[str, Any, Any]] = {
    "basic": ("blue", None, None),
    "spread": ("blue", None, [{**SPREAD, "whenUnsatisfiable": "DoNotSchedule"}]),
    "softspread": ("blue", None, [{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}]),
    "affinity": ("blue", {"podAffinity": {REQUIRED: [{"labelSelector": BLUE, "topologyKey": ZONE}]}}, None),
    "antiaffinity": ("green", {"podAntiAffinity": {REQUIRED: [{"labelSelector": GREEN, "topologyKey": HOST}]}}, None),
    "prefaffinity": (
        "blue",
        {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {"labelSelector": BLUE, "topologyKey": HOST}}]}},
        None,
    ),
}


@pytest.mark.parametrize("kind", KIND_ADDS)
def test_measured_pods_of_a_kind(kind: str) -> None:
    color, affinity, spread = KIND_ADDS[kind]
    for pod in workloads.pods(3, kind):
        told = wire(pod)
        assert told["metadata"]["labels"] == {"color": color}
        assert told["metadata"]["namespace"] == "sched-0"
        asked = {"cpu": "100m", "memory": "500Mi"}
        assert told["spec"]["containers"][0]["resources"] == {"requests": asked, "limits": asked}
        assert told["spec"].get("affinity") == affinity
        assert (told["spec"].get("topologySpreadConstraints") or None) == spread
        assert "nodeName" not in told["spec"]


def test_mixed_takes_four_kinds_in_turn() -> None:
    mixed = list(workloads.pods(8, "mixed"))
    for i, kind in enumerate(("basic", "spread", "prefaffinity", "softspread") * 2):
        assert mixed[i] == workloads.pod(i, kind)


def test_churn_has_one_new_class_in_ten_pods() -> None:
    labels = [dict(pod.metadata.labels) for pod in workloads.pods(30, "churn")]
    assert [label for label in labels if label != {"color": "blue"}] == [{"color": "blue", "class": f"c{i}"} for i in range(3)]


@pytest.mark.parametrize("kind", KINDS)
def test_pods_have_names_and_uids_of_their_own_and_follow_from_the_arguments(kind: str) -> None:
    pods = list(workloads.pods(20, kind))
    assert len({pod.metadata.name for pod in pods}) == len({pod.metadata.uid for pod in pods}) == 20
    assert pods == list(workloads.pods(20, kind))


def test_no_two_pods_of_kind_unlike_ask_for_the_same_unless_classes_are_named() -> None:
    def classes(*, classes: int = 0) -> set[bytes]:
        return {sign(pod) for pod in workloads.pods(2000, "unlike", classes=classes)}

    assert (len(classes()), len(classes(classes=7))) == (2000, 7)


def test_daemons_are_pinned_to_the_nodes_in_turn() -> None:
    pinned = []
    for pod in workloads.pods(4, "daemonset", 3):
        (term,) = wire(pod)["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
        assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": term["matchFields"][0]["values"]}]}
        pinned += term["matchFields"][0]["values"]
    assert pinned == ["node-00000", "node-00001", "node-00002", "node-00000"]


@pytest.mark.parametrize("kind", ["owned", "statefulset", "apart"])
def test_owned_pods_have_an_owner_and_a_service_that_select_them(kind: str) -> None:
    objects = list(workloads.cluster(kind, 1, 0, 60))
    for pod in workloads.pods(60, kind):
        owner = next(
            o
            for o in objects
            if o.kind == pod.metadata.owner_references[0].kind and o.metadata.uid == pod.metadata.owner_references[0].uid
        )
        service = next(o for o in objects if isinstance(o, Service) and o.metadata.name == owner.metadata.name)
        assert service.spec.selector is not None and service.spec.selector.items() <= pod.metadata.labels.items()


@pytest.mark.parametrize("kind", ["owned", "gang", "daemonset", "unlike", "appspread"])
def test_pods_of_controllers_are_all_placed(kind: str) -> None:
    figures = run(Bench(kind, nodes=20, init=0, pods=20))
    assert (figures["kind"], figures["scheduled"]) == (kind, 20)


def test_no_two_pods_of_an_app_that_keeps_apart_share_a_node() -> None:
    assert run(Bench("apart", nodes=20, init=0, pods=70))["scheduled"] == 40, "20 of the first app, and 20 of the second"


def test_gpu_pods_and_nodes_come_as_often_as_in_the_openb_trace() -> None:
    pods = Counter(sign(pod) for pod in workloads.pods(3000, "gpu"))
    assert len(pods) == len(gpu_pods.PODS)
    total = sum(shape.frequency for shape in gpu_pods.PODS)
    wanted = sorted(3000 * shape.frequency / total for shape in gpu_pods.PODS)
    assert sorted(pods.values()) == pytest.approx(wanted, abs=3)
    nodes = [obj for obj in workloads.cluster("gpu", 1000, 0, 0) if isinstance(obj, Node)]
    models = Counter(node.metadata.labels[gpu_table.MODEL] for node in nodes)
    assert models["G2"] == pytest.approx(1000 * 549 / 1153, abs=3) and len(models) == 6
    asked = wire(gpu_pods.pod(0))["spec"]["containers"][0]["resources"]
    assert asked["requests"] == asked["limits"] == {"cpu": "3152m", "memory": "5600Mi", gpu_table.MILLI: "810"}


def test_the_first_pod_of_each_class_is_known() -> None:
    assert first_of_class(list(workloads.pods(40, "churn"))).tolist() == [0, 9, 19, 29, 39]
    assert first_of_class(list(workloads.pods(5, "unlike", classes=3))).tolist() == [0, 1, 2]
    figures = run(Bench("unlike", nodes=5, init=0, pods=6, classes=3))
    assert figures["classes"] == 3 and figures["first_p99_us"] > 0
    assert run(Bench("gang", nodes=5, init=0, pods=8))["first_p99_us"] is None


def test_a_configuration_says_how_many_nodes_are_looked_at() -> None:
    sampled = replace(default_configuration(), percentage_of_nodes_to_score=10)
    by_percentage = {100: Bench(nodes=5, pods=3), 10: Bench(nodes=5, pods=3, configuration=sampled)}
    for percentage, bench in by_percentage.items():
        assert run(bench)["nodes_evaluated_percent"] == percentage
        assert build_engine(bench).attempts.rules.percentage_of_nodes == percentage % 100
