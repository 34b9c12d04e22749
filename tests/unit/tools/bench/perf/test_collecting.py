"""How throughput is sampled, and what becomes of a histogram."""

from __future__ import annotations

import math

import pytest

from kubesched.tools.bench.perf.collecting import Throughput, histogram, latency_ms, quantile
from kubesched.tools.bench.perf.informer import SeenPod


def pod(namespace: str = "test", seen_at: float = 0.0, **labels: str) -> SeenPod:
    return SeenPod(namespace, "p", labels, seen_at)


def sampled(counts: list[int]) -> list[float]:
    """Return the samples of pods that get nodes, so many in each second."""
    found = Throughput(["test"], clock=lambda: 0.0)
    for second, count in enumerate(counts, 1):
        for _ in range(count):
            found.take(pod(), float(second))
        found.sample(float(second))
    return found.samples


@pytest.mark.parametrize(
    ("case", "counts", "samples"),
    [
        ("nothing happened", [0, 0], []),
        ("the first second with a pod is left out", [0, 0, 50], []),
        ("every second after it counts", [50, 100, 200], [100.0, 200.0]),
        ("idle seconds share the rate of the next", [50, 0, 0, 300, 10], [100.0, 100.0, 100.0, 10.0]),
        ("idle seconds at the end are none", [50, 100, 0, 0], [100.0]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_samples(case: str, counts: list[int], samples: list[float]) -> None:
    assert sampled(counts) == samples


def test_only_pods_of_the_namespaces_and_labels_count() -> None:
    found = Throughput(["a", "b"], {"color": "blue"}, clock=lambda: 0.0)
    for one in (pod("a", color="blue"), pod("b", color="blue"), pod("a", color="red"), pod("c", color="blue"), pod("a")):
        found.take(one, 1.0)
    assert found.n_scheduled == 2


def test_figures_of_a_run_that_was_long_enough() -> None:
    found = Throughput(["test"], clock=lambda: 10.0)
    for i in range(4):
        found.take(pod(seen_at=10.0 + i), 12.0 + i)
    found.samples = [30.0, 10.0, 20.0, 40.0]
    figures = found.figures()
    assert (figures["throughput"], figures["samples"], figures["scheduled"], figures["seconds"]) == (25.0, 4, 4, 5.0)
    assert figures["throughput_percentiles"] == {"Perc50": 20.0, "Perc90": 40.0, "Perc95": 40.0, "Perc99": 40.0}
    assert figures["wait_ms"] == {"p50": 2000.0, "p90": 2000.0, "p95": 2000.0, "p99": 2000.0}


def test_a_run_without_samples_has_its_pods_over_their_time() -> None:
    found = Throughput(["test"], clock=lambda: 10.0)
    assert found.figures()["throughput"] is None
    found.take(pod(), 10.5)
    figures = found.figures()
    assert (figures["throughput"], figures["samples"], figures["throughput_percentiles"]) == (2.0, 0, None)


PAGE = """# TYPE h histogram
h_bucket{result="scheduled",profile="a",le="0.1"} 10
h_bucket{result="scheduled",profile="a",le="0.2"} 30
h_bucket{result="scheduled",profile="a",le="+Inf"} 40
h_sum{result="scheduled",profile="a"} 4
h_count{result="scheduled",profile="a"} 40
h_bucket{result="scheduled",profile="b",le="0.1"} 1
h_bucket{result="scheduled",profile="b",le="0.2"} 1
h_bucket{result="scheduled",profile="b",le="+Inf"} 1
h_bucket{result="error",profile="a",le="0.1"} 5
h_bucket{result="error",profile="a",le="0.2"} 5
h_bucket{result="error",profile="a",le="+Inf"} 5
"""


def test_buckets_are_added_up_over_series() -> None:
    found = histogram(PAGE, "h", {"result": "scheduled"})
    assert found == {0.1: 11.0, 0.2: 31.0, math.inf: 41.0}
    assert histogram(PAGE, "other", {}) == {}


def test_a_quantile_is_interpolated_in_its_bucket() -> None:
    buckets = {0.1: 10.0, 0.2: 30.0, math.inf: 40.0}
    assert quantile(buckets, 0.25) == pytest.approx(0.1)
    assert quantile(buckets, 0.5) == pytest.approx(0.15)
    assert quantile(buckets, 0.99) == 0.2, "beyond the last bound nothing is known"
    assert quantile({}, 0.5) is None and quantile({0.1: 0.0, math.inf: 0.0}, 0.5) is None
    assert latency_ms({0.1: 10.0, 0.2: 30.0, math.inf: 40.0}, {0.1: 20.0, 0.2: 40.0, math.inf: 50.0}) == {
        "p50": 50.0,
        "p90": 90.0,
        "p95": 95.0,
        "p99": 99.0,
    }
    assert latency_ms(buckets, buckets) is None
