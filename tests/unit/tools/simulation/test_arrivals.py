"""When pods come, and how long they run."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from random import Random

import pytest

from kubesched.errors import ConfigError
from kubesched.tools.simulation.arrivals import running_time, times
from kubesched.tools.simulation.scenario import Arrivals, Law
from kubesched.tools.simulation.traces import TracedPod, read_trace


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (Arrivals(at="1m"), [60.0]),
        (Arrivals(at=(20, 10)), [10.0, 20.0]),
        (Arrivals(at=5, size=3), [5.0, 5.0, 5.0]),
        (Arrivals(every=10, count=3), [0.0, 10.0, 20.0]),
        (Arrivals(every=10, start=5, end=25), [5.0, 15.0]),
        (Arrivals(every=10, size=2, count=2), [0.0, 0.0, 10.0, 10.0]),
    ],
)
def test_even_steps(given: Arrivals, expected: list[float]) -> None:
    assert list(times(given, Random(1))) == expected


def test_by_chance_so_many_come_a_second_on_average() -> None:
    found = list(times(Arrivals(rate=5, end=1000), Random(1)))
    assert 4700 < len(found) < 5300 and found == sorted(found) and found[-1] < 1000
    assert found == list(times(Arrivals(rate=5, end=1000), Random(1)))


def test_a_burst_comes_within_its_time() -> None:
    found = list(times(Arrivals(every=100, size=50, within=10, count=2), Random(1)))
    assert len(found) == 100 and found == sorted(found)
    assert all(0 <= at <= 10 for at in found[:50]) and all(100 <= at <= 110 for at in found[50:])


def test_steps_without_an_end_go_on() -> None:
    assert list(islice(times(Arrivals(every=1), Random(1)), 3)) == [0.0, 1.0, 2.0]


def test_running_times() -> None:
    assert running_time("forever", Random(1))() is None
    assert running_time("90s", Random(1))() == 90.0
    uniform = running_time(Law(uniform=("1m", 120)), Random(1))
    assert all(60 <= (uniform() or 0) <= 120 for _ in range(100))
    exponential = running_time(Law(exponential=10), Random(1))
    assert 9 < sum(exponential() or 0 for _ in range(10000)) / 10000 < 11


def test_a_trace_is_read_from_csv_and_from_json_lines(tmp_path: Path) -> None:
    expected = [
        TracedPod(5.0, "a", "", 60.0, None, {"cpu": "2", "memory": "1Gi"}),
        TracedPod(10.0, "b", "team", None, 100, {"cpu": "500m", "nvidia.com/gpu": "1"}),
    ]
    (tmp_path / "t.csv").write_text(
        "time,name,namespace,cpu,memory,duration,priority,nvidia.com/gpu\n10,b,team,500m,,,100,1\n5,a,,2,1Gi,1m,,\n"
    )
    (tmp_path / "t.jsonl").write_text(
        '{"time": 10, "name": "b", "namespace": "team", "cpu": "500m", "priority": 100, "nvidia.com/gpu": 1}\n'
        '{"time": "5s", "name": "a", "cpu": 2, "memory": "1Gi", "duration": 60}\n'
    )
    assert read_trace(tmp_path / "t.csv") == expected == read_trace(tmp_path / "t.jsonl")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("time,name\nsoon,a\n", "t.csv, line 2: time: 'soon' is no time"),
        ("name\na\n", "t.csv, line 2: time: missing"),
        ("time,cpus\n1,1\n", "t.csv, line 2: cpus: unknown column"),
        ("time,cpu\n1,many\n", "t.csv, line 2: cpu: 'many' is no quantity"),
        ("time,priority\n1,high\n", "t.csv, line 2: priority: 'high' is no whole number"),
    ],
)
def test_a_bad_trace_is_refused_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_trace(tmp_path / "t.csv")
    assert complaint in str(caught.value) and "\n" not in str(caught.value)
