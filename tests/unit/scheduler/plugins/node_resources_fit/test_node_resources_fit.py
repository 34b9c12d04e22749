"""NodeResourcesFit: arguments, arithmetic and scores; the golden families `resources` and tests/oracles compare what fits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from plugin_bench import Bench

from kubesched.kube.api import codec
from kubesched.kube.api.meta import ObjectMeta
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.resource import DeviceClass, DeviceClassSpec
from kubesched.scheduler.framework import CycleState
from kubesched.scheduler.kernels import round_half_up
from kubesched.scheduler.plugins import NodeResourcesFit
from kubesched.scheduler.plugins.shared.allocation import shape_table
from kubesched.testing import node, pod

GPU = "example.com/gpu"


def asking(**spec: Any) -> Pod:
    return codec.convert({"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": spec}, Pod)


def container(cpu: str, memory: str = "0", **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}, **more}


def refused(wanted: Pod, on: Any = None, *others: Pod, args: dict[str, Any] | None = None) -> Any:
    return Bench(NodeResourcesFit, on or node("a", cpu="2", memory="4Gi"), *others, args=args).refusals(wanted).get("a")


NO, NEVER = "Unschedulable", "UnschedulableAndUnresolvable"


def test_very_many_resources_that_no_node_has_are_all_named() -> None:
    names = [f"example.com/x{i}" for i in range(60)]
    assert refused(pod(requests=dict.fromkeys(names, "1"))) == (NEVER, [f"Insufficient {name}" for name in names])


@pytest.mark.parametrize(
    ("sentence", "name", "args", "fits"),
    [
        ("by name", GPU, {"ignoredResources": [GPU]}, True),
        ("by group", GPU, {"ignoredResourceGroups": ["example.com"]}, True),
        ("another group", GPU, {"ignoredResourceGroups": ["other.org"]}, False),
        ("huge pages are nobody's extension", "hugepages-2Mi", {"ignoredResources": ["hugepages-2Mi"]}, False),
        ("nor is what Kubernetes names itself", "x.kubernetes.io/y", {"ignoredResourceGroups": ["x.kubernetes.io"]}, False),
    ],
)
def test_extended_resources_can_be_left_to_others(sentence: str, name: str, args: dict[str, Any], fits: bool) -> None:
    assert (refused(pod(requests={name: "1"}), args=args) is None) is fits, sentence


@pytest.mark.parametrize(
    ("sentence", "name", "offered", "fits"),
    [
        ("a class serves the name", GPU, None, True),
        ("a class serves its own implicit name", "deviceclass.resource.kubernetes.io/gpus", None, True),
        ("the node offers none of it", GPU, "0", True),
        ("the node offers some, and is held to it", GPU, "1", False),
        ("no class serves it", "other.org/fpga", None, False),
    ],
)
def test_what_devices_serve_is_not_asked_of_the_node(sentence: str, name: str, offered: str | None, fits: bool) -> None:
    served = DeviceClass(metadata=ObjectMeta(name="gpus"), spec=DeviceClassSpec(extended_resource_name=GPU))
    bench = Bench(NodeResourcesFit, node("a", offers={name: offered} if offered else None), served)
    assert (bench.fits(pod(requests={name: "2"})) == ["a"]) is fits, sentence


# Scores

A = pod("A", on="a", requests={"cpu": "500m", "memory": "1Gi"})
B = pod("B", on="a")
INCOMING = pod(requests={"cpu": "250m", "memory": "512Mi"})
RATIO = {
    "type": "RequestedToCapacityRatio",
    "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]},
}


@pytest.mark.parametrize(
    ("strategy", "score"), [({"type": "LeastAllocated"}, 83), ({"type": "MostAllocated"}, 15), (RATIO, 16)]
)
def test_the_worked_example_of_the_specification(strategy: dict[str, Any], score: int) -> None:
    args = {"scoringStrategy": {**strategy, "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]}}
    bench = Bench(NodeResourcesFit, node("a", cpu="4", memory="16Gi"), A, B, args=args)
    assert bench.scores(INCOMING) == {"a": score}


LEAST_ALLOCATED_OF_CPU_AND_FOO = {
    "scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 1}, {"name": "foo", "weight": 1}]}
}


def scored(resources: dict[str, int], wanted: Pod, strategy: dict[str, Any] | None = None, **offers: str) -> int:
    given = {
        **(strategy or {"type": "LeastAllocated"}),
        "resources": [{"name": name, "weight": weight} for name, weight in resources.items()],
    }
    bench = Bench(
        NodeResourcesFit, node("a", cpu="1", memory="1Gi", offers={GPU: "4", **offers}), args={"scoringStrategy": given}
    )
    return bench.scores(wanted)["a"]


def test_weights_average() -> None:
    assert scored({"cpu": 3, "memory": 1}, pod(requests={"cpu": "500m", "memory": "0"})) == (3 * 50 + 100) // 4


def test_an_extended_resource_counts_only_where_it_is_asked_for() -> None:
    assert scored({"cpu": 1, GPU: 1}, pod(requests={"cpu": "500m"})) == 50
    assert scored({"cpu": 1, GPU: 1}, pod(requests={"cpu": "500m", GPU: "1"})) == (50 + 75) // 2


def test_a_resource_that_nobody_knows_is_left_out() -> None:
    assert scored({"cpu": 1, "unknown": 9, "pods": 9}, pod(requests={"cpu": "500m"})) == 50


def test_a_resource_that_only_another_plugin_has_named_is_left_out() -> None:
    bench = Bench(NodeResourcesFit, node("a", cpu="1"), args=LEAST_ALLOCATED_OF_CPU_AND_FOO)
    bench.store.templates.resources.id("foo")  # as NodeResourcesBalancedAllocation does: there is no column for it
    wanted = bench.store.view(pod(requests={"cpu": "500m"}))
    assert bench.scores(wanted.pod)["a"] == 50


def test_an_amount_that_wrapped_below_zero_is_scored_alike_among_all_nodes_and_alone() -> None:
    bench = Bench(NodeResourcesFit, *[node(name, cpu=cpu) for name, cpu in (("a", "4"), ("b", "5"))])
    wanted = bench.store.view(pod(requests={"cpu": str((1 << 63) - 1), "memory": "1Gi"}))
    nodes = bench.store.snapshot()
    alone = [bench.plugin.score(wanted, nodes.take([row]), CycleState()).item() for row in range(2)]
    assert bench.plugin.score(wanted, nodes, CycleState()).tolist() == alone


def test_pod_level_requests_are_not_looked_at_in_scores() -> None:
    wanted = asking(containers=[{"name": "c"}], resources={"requests": {"cpu": "1"}})
    assert scored({"cpu": 1}, wanted) == 90, "100m for the container that says nothing"


def test_with_a_ratio_a_resource_that_scores_nothing_is_left_out_of_the_average() -> None:
    shape = [{"utilization": 50, "score": 0}, {"utilization": 100, "score": 10}]
    ratio = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}
    assert scored({"cpu": 1, "memory": 1}, pod(requests={"cpu": "1", "memory": "0"}), ratio) == 100


def test_a_ratio_is_rounded_half_up() -> None:
    assert scored({"cpu": 1, "memory": 1}, pod(requests={"cpu": "210m", "memory": "107374182"}), RATIO) == 15
    assert scored({"cpu": 1, "memory": 1}, pod(requests={"cpu": "210m", "memory": "107374183"}), RATIO) == 16


@pytest.mark.parametrize(
    ("points", "percent", "value"),
    [
        ([(0, 100), (40, 30)], 33, 43),
        ([(10, 1), (90, 9)], 19, 1),
        ([(10, 1), (90, 9)], 20, 2),
        ([(10, 1), (90, 9)], 89, 8),
        ([(10, 5), (90, 9)], 0, 5),
        ([(10, 5), (90, 9)], 100, 9),
        ([(50, 7)], 3, 7),
    ],
)
def test_shapes_round_towards_zero_also_downhill(points: list[tuple[int, int]], percent: int, value: int) -> None:
    assert shape_table(points)[percent] == value


@given(st.floats(min_value=0, max_value=2.0**53))
@example(0.5)
@example(math.nextafter(0.5, 0))
@example(1.5)
@example(math.nextafter(2.5, 0))
@example(2.0**52 + 1)
def test_halves_are_rounded_up_and_nothing_below_them(value: float) -> None:
    whole, rest = divmod(value, 1.0)
    assert round_half_up(np.array([value])).tolist() == [int(whole) + (rest >= 0.5)]


def test_a_node_that_offers_fewer_pods_than_can_be_counted_is_full() -> None:
    other = pod("x", on="a")
    assert refused(pod(), node("a", pods=-(1 << 63)), other) == (NO, ["Too many pods"])
