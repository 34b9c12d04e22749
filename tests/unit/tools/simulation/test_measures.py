"""The figures: weighed by time, sampled in steps, rounded."""

from __future__ import annotations

import pytest

from kubesched import Simulation
from kubesched.testing import node, pod
from kubesched.tools.simulation.measures import percentile


def test_utilisation_is_weighed_by_time() -> None:
    with Simulation([node("a", cpu="4", memory="4Gi"), node("b", cpu="4", memory="4Gi")]) as sim:
        sim.submit(pod("p", requests={"cpu": "4", "memory": "1Gi"}), at=25, runs=50)
        usage = sim.run(until=100)["utilisation"]
    assert usage["cpu"] == {"mean": 0.25, "peak": 0.5, "end": 0.0}
    assert usage["memory"] == {"mean": 0.0625, "peak": 0.125, "end": 0.0}


def test_fragmentation_is_free_cpu_that_pods_of_the_median_size_cannot_use() -> None:
    with Simulation([node("a", cpu="4"), node("b", cpu="4")]) as sim:
        for name in ("one", "two"):
            sim.submit(pod(name, requests={"cpu": "3"}))
        figures = sim.run(until=10)["packing"]
        assert figures["fragmentation"]["end"] == 1.0  # two nodes with one core free each, and pods of three cores
        sim.add(node("c", cpu="4"))
        sim.run(until=20)
        # one core is left of each node when the new one has taken one more pod: 3 of 6
        assert sim.metrics()["packing"]["fragmentation"]["end"] == 0.5


def test_skew_is_the_widest_gap_between_zones_within_a_workload() -> None:
    nodes = [node("a", zone="x", cpu="4"), node("b", zone="y", cpu="1")]
    with Simulation(nodes) as sim:
        for i in range(5):
            sim.submit(pod(f"p{i}", requests={"cpu": "1"}), workload="w")
        spread = sim.run(until=10)["spread"]
    assert spread == {"zones": 2, "maxSkew": {"peak": 3, "end": 3, "workload": "w"}}


def test_the_series_has_a_row_for_every_step() -> None:
    rows: list[dict[str, float]] = []
    with Simulation([node("a", cpu="2")], sample_seconds=10) as sim:
        sim.measures.on_row = rows.append
        for i in range(3):
            sim.submit(pod(f"p{i}", requests={"cpu": "1"}), at=15)
        sim.run(until=50)
    assert [row["time"] for row in rows] == [0, 10, 20, 30, 40]
    assert [(row["running"], row["pending"], row["cpu"]) for row in rows] == [(0, 0, 0)] * 2 + [(2, 1, 1)] * 3


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([], 50, 0.0),
        ([7.0], 99, 7.0),
        ([1.0, 2.0, 3.0, 4.0], 50, 2.0),
        ([float(i) for i in range(1, 101)], 99, 99.0),
    ],
)
def test_percentiles_are_values_that_were_there(values: list[float], percent: int, expected: float) -> None:
    assert percentile(values, percent) == expected
