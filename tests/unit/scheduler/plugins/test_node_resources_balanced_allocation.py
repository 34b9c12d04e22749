"""NodeResourcesBalancedAllocation."""

from __future__ import annotations

from typing import Any

import pytest
from plugin_bench import Bench

from kubesched.kube.api import codec
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.plugins import NodeResourcesBalancedAllocation
from kubesched.testing import node, pod

GPU = "example.com/gpu"


def resources(*names: str) -> dict[str, Any]:
    return {"resources": [{"name": name, "weight": 1} for name in names]}


def test_the_worked_example_of_the_specification() -> None:
    bench = Bench(
        NodeResourcesBalancedAllocation,
        node("a", cpu="4", memory="16Gi"),
        pod("A", on="a", requests={"cpu": "500m", "memory": "1Gi"}),
        pod("B", on="a"),
    )
    assert bench.scores(pod(requests={"cpu": "250m", "memory": "512Mi"})) == {"a": 74}


def test_with_three_resources_the_deviation_counts() -> None:
    bench = Bench(
        NodeResourcesBalancedAllocation,
        node("a", cpu="3500m", memory="40000", offers={GPU: "8"}),
        pod("x", on="a", requests={"cpu": "3", "memory": "5000", GPU: "3"}),
        args=resources("cpu", "memory", GPU),
    )
    assert bench.scores(pod(requests={GPU: "1"})) == {"a": 75}


@pytest.mark.parametrize(
    ("sentence", "names", "wanted", "score"),
    [
        ("one resource is always in balance", ("cpu",), {"cpu": "1"}, 75),
        ("resources that the node does not offer", ("other.org/x",), {"other.org/x": "1"}, 75),
        ("a resource that nobody knows", ("cpu", "unknown"), {"cpu": "1"}, 75),
        ("evenly more of both", ("cpu", "memory"), {"cpu": "1", "memory": "8Gi"}, 75),
        ("out of balance", ("cpu", "memory"), {"cpu": "4"}, 50),
        ("an extended resource that is not asked for is left out", ("cpu", GPU), {"cpu": "4"}, 75),
    ],
)
def test_balance(sentence: str, names: tuple[str, ...], wanted: dict[str, str], score: int) -> None:
    bench = Bench(NodeResourcesBalancedAllocation, node("a", cpu="4", memory="32Gi", offers={GPU: "4"}), args=resources(*names))
    assert bench.scores(pod(requests=wanted)) == {"a": score}, sentence


def test_a_pod_that_evens_things_out_is_worth_most() -> None:
    bench = Bench(NodeResourcesBalancedAllocation, node("a", cpu="4", memory="4Gi"), pod("x", on="a", requests={"cpu": "4"}))
    assert bench.scores(pod(requests={"memory": "4Gi"})) == {"a": 100}


def test_pods_that_ask_for_nothing_are_not_scored() -> None:
    bench = Bench(NodeResourcesBalancedAllocation, node("a"))
    assert bench.pre_score(pod()) == "Skip"
    assert bench.pre_score(pod(requests={GPU: "1"})) == "Skip"
    assert bench.pre_score(pod(requests={"cpu": "0"})) == "Skip"


def test_pod_level_requests_count() -> None:
    whole = codec.convert(
        {
            "metadata": {"name": "p", "namespace": "d", "uid": "u"},
            "spec": {"containers": [{"name": "c"}], "resources": {"requests": {"cpu": "4"}}},
        },
        Pod,
    )
    assert Bench(NodeResourcesBalancedAllocation, node("a", cpu="4")).scores(whole) == {"a": 50}


def test_no_node_is_more_than_full() -> None:
    bench = Bench(
        NodeResourcesBalancedAllocation,
        node("a", cpu="1", memory="1Gi"),
        pod("x", on="a", requests={"cpu": "9", "memory": "9Gi"}),
    )
    assert bench.scores(pod(requests={"cpu": "1"})) == {"a": 75}
