"""The scenario file: what it may say, and how it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.errors import ConfigError
from kubesched.solver.node_groups import numbered
from kubesched.tools.simulation.scenario import read_scenario, seconds

NODES = "cluster: {nodes: [{name: n, capacity: {cpu: 4}}]}\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sede: 1", "unknown field `sede`"),
        ("cluster: {nodes: [{name: n}]}", "cluster.nodes[0]: missing required field `capacity`"),
        ("cluster: {nodes: [{name: n, capacity: {cpu: 4}, cuont: 2}]}", "cluster.nodes[0]: unknown field `cuont`"),
        ("seed: one", "seed: expected `int`, got `str`"),
        ("duration: soon", "duration: 'soon' is no time"),
        ("duration: -5", "duration: must not be negative"),
        ("sampleEvery: 0", "sampleEvery: must be longer than 0"),
        (
            "workloads: [{name: w, arrivals: {at: 1, every: 2}}]",
            "workloads[0].arrivals: expected one of at, every, rate and trace",
        ),
        ("workloads: [{name: w, arrivals: {every: 0}}]", "workloads[0].arrivals.every: must be longer than 0"),
        ("workloads: [{name: w, arrivals: {rate: 0}}]", "workloads[0].arrivals.rate: must be more than 0"),
        (
            "workloads: [{name: w, arrivals: {every: 1m, within: 2m}}]",
            "workloads[0].arrivals.within: must not be longer than `every`",
        ),
        ("workloads: [{name: w, arrivals: {rate: 1, within: 2}}]", "workloads[0].arrivals.within: has no part in `rate`"),
        ("workloads: [{name: w, runs: {}}]", "workloads[0].runs: expected either exponential or uniform"),
        ("workloads: [{name: w, runs: soon}]", "workloads[0].runs: 'soon' is no time"),
        ("workloads: [{name: w, manifest: m.yaml, requests: {cpu: 1}}]", "workloads[0].manifest: a workload has either"),
        ("workloads: [{name: w, pod: {}, requests: {cpu: 1}}]", "workloads[0].requests: a workload has either"),
        ("workloads: [{name: w}, {name: w}]", "workloads[1].name: there is another workload named w"),
        ("workloads: [{name: w, arrivals: {every: 1, count: -1}}]", "workloads[0].arrivals.count: must not be negative"),
        ("autoscaler: {scanInterval: 0}", "autoscaler.scanInterval: must be longer than 0"),
        ("events: [{at: [1]}]", "events[0].at: expected"),
        ("events: [{at: -1, drain: {count: 1}}]", "events[0].at: must not be negative"),
        ("events: [{at: 1, drain: {count: -1}}]", "events[0].drain.count: must not be negative"),
        ("events: [{at: 1, add: {name: n, capacity: {}, spot: {meanLife: 0}}}]", "add.spot.meanLife: must be longer than 0"),
        ("events: [{at: 1}]", "events[0]: expected one thing to happen, found none"),
        ("events: [{at: 1, cordon: {}, drain: {}}]", "events[0]: expected one thing to happen, found drain, cordon"),
        ("events: [{at: 1, scale: {workload: w, replicas: 1}}]", "events[0].scale.workload: 'w' is none of the workloads"),
        ("a: [", "not YAML"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_scenario(file)
    assert str(caught.value).startswith(str(file)) and complaint in str(caught.value) and "\n" not in str(caught.value)


def test_json_is_read_as_well(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"seed": 3, "duration": "1h30m", "workloads": [{"name": "w"}]}')
    found = read_scenario(tmp_path / "s.json")
    assert (found.seed, seconds(found.duration), found.folder) == (3, 5400.0, str(tmp_path))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("zone-a", "zone-a"),
        ("rack-{i}", "rack-7"),
        ("zone-{i%3}", "zone-1"),
        ("row-{i/5}-{i%5}", "row-1-2"),
        ("{j}", "{j}"),
    ],
)
def test_labels_follow_a_pattern(pattern: str, expected: str) -> None:
    assert numbered(pattern, 7) == expected
