"""`kubesched simulate` and `kubesched compare`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from kubesched.cli.commands.compare import command as compare_command
from kubesched.cli.commands.simulate import command as simulate_command
from kubesched.errors import SchedulerError
from kubesched.simulator.captured import Captured
from kubesched.testing import node, pod

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
SMALL = """
seed: 3
duration: 10m
cluster: {nodes: [{name: n, count: 3, capacity: {cpu: 4, memory: 16Gi}, labels: {topology.kubernetes.io/zone: "z{i%3}"}}]}
workloads:
- {name: web, replicas: 4, requests: {cpu: 500m}}
- {name: job, arrivals: {rate: 0.05}, runs: {exponential: 1m}, requests: {cpu: "1"}}
"""


def simulate(*words: str) -> str:
    result = CliRunner().invoke(simulate_command, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def compare(*words: str) -> Result:
    return CliRunner().invoke(compare_command, list(words), catch_exceptions=False)


@pytest.fixture
def small(tmp_path: Path) -> str:
    (tmp_path / "small.yaml").write_text(SMALL)
    return str(tmp_path / "small.yaml")


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    placed = [pod(f"p{i}", on="abc"[i % 3], requests={"cpu": "500m"}) for i in range(6)]
    cluster = Captured(9.0, [*map(node, "abc"), *placed, pod("new", requests={"cpu": "500m"})])
    (tmp_path / "s.jsonl").write_bytes(b"".join(cluster.lines()))
    return str(tmp_path / "s.jsonl")


def test_it_prints_a_table_and_the_same_as_a_document(small: str) -> None:
    table = simulate(small)
    figures = json.loads(simulate(small, "-o", "json"))
    assert table.startswith("small.yaml: 600 s of virtual time, seed 3\n") and "time to placement, 99 %" in table
    assert figures == yaml.safe_load(simulate(small, "-o", "yaml"))
    assert figures["pods"]["running"] + figures["pods"]["finished"] == figures["pods"]["arrived"] > 20


def test_seed_and_duration_win_over_the_scenario(small: str) -> None:
    figures = json.loads(simulate(small, "--seed", "8", "--duration", "1m", "-o", "json"))
    assert (figures["seed"], figures["seconds"]) == (8, 60)
    assert simulate(small, "-o", "json") == simulate(small, "--seed", "3", "-o", "json")


def test_events_and_series_are_written(small: str, tmp_path: Path) -> None:
    events, series = tmp_path / "e.jsonl", tmp_path / "s.csv"
    figures = json.loads(simulate(small, "--events", str(events), "--series", str(series), "-o", "json"))
    said = [json.loads(line) for line in events.read_text().splitlines()]
    assert sum(event["event"] == "placed" for event in said) == figures["pods"]["placed"]
    assert [event["at"] for event in said] == sorted(event["at"] for event in said)
    rows = list(csv.DictReader(series.open()))
    assert len(rows) == 500 and rows[1]["nodes"] == "3" and float(rows[0]["time"]) == 0


def test_a_log_is_simulated_as_well(snapshot: str) -> None:
    figures = json.loads(simulate(snapshot, "-o", "json"))
    assert (figures["pods"]["there"], figures["pods"]["placed"]) == (6, 1)


def test_what_cannot_be_written_is_said(small: str) -> None:
    with pytest.raises(SchedulerError, match="cannot be written"):
        simulate(small, "--events", "/nowhere/e.jsonl")


def test_a_duration_that_is_none_is_wrong_usage(small: str) -> None:
    result = CliRunner().invoke(simulate_command, [small, "--duration", "soon"])
    assert result.exit_code == 2 and "'soon' is no time" in result.output


@pytest.mark.parametrize("name", ["batch.yaml", "shop.yaml", "trace.yaml"])
def test_every_example_can_be_used(name: str) -> None:
    assert json.loads(simulate(str(EXAMPLES / name), "--duration", "5m", "-o", "json"))["pods"]["placed"]


def test_a_configuration_compared_with_itself_moves_nothing(small: str) -> None:
    document = json.loads(compare("default", "default", "--scenario", small, "-o", "json").output)
    assert document["a"] == document["b"] and document["moves"]["moved"] == 0 == len(document["moves"]["pods"])


def test_packing_uses_fewer_nodes() -> None:
    words = ("default", str(EXAMPLES / "packing.yaml"), "--scenario", str(EXAMPLES / "batch.yaml"), "--duration", "20m")
    document = json.loads(compare(*words, "-o", "json").output)
    used = [document[side]["packing"]["nodesUsed"]["mean"] for side in "ab"]
    assert used[1] < used[0] and document["moves"]["moved"] == len(document["moves"]["pods"]) > 0
    table = compare(*words).output
    assert "A: default" in table and "B: packing.yaml" in table and "land on another node" in table


def test_a_cluster_is_decided_anew_and_rescheduled(snapshot: str) -> None:
    packing = str(EXAMPLES / "packing.yaml")
    document = json.loads(compare("default", packing, "--snapshot", snapshot, "-o", "json").output)
    assert document["moves"]["placed"] == 1
    document = json.loads(compare("default", packing, "--snapshot", snapshot, "--reschedule", "-o", "json").output)
    assert [document[side]["packing"]["nodesUsed"]["end"] for side in "ab"] == [3, 1]
    assert document["moves"]["placed"] == 7


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--scenario", "{small}", "--reschedule"), "--scenario brings its own cluster"),
        (("--snapshot", "{snapshot}", "--seed", "1"), "--duration and --seed are for scenarios"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(
    words: tuple[str, ...], complaint: str, small: str, snapshot: str
) -> None:
    result = compare("default", "default", *(word.format(small=small, snapshot=snapshot) for word in words))
    assert result.exit_code == 2 and complaint in result.output


def test_a_configuration_that_is_not_there_is_said() -> None:
    with pytest.raises(SchedulerError, match=r"nothing\.yaml"):
        compare("default", "nothing.yaml", "--scenario", str(EXAMPLES / "trace.yaml"))
