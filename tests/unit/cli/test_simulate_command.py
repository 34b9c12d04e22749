"""`kubesched simulate` and `kubesched compare`."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from msgspec.structs import replace

from kubesched.cli.compare import command as compare_command
from kubesched.cli.simulate import command as simulate_command
from kubesched.errors import SchedulerError
from kubesched.kube.api import codec
from kubesched.kube.api.meta import OwnerReference
from kubesched.server.web.page.report import report_page
from kubesched.testing import node, pod
from kubesched.tools.snapshots.captured import Captured

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


def document_in(report: Path) -> dict[str, Any]:
    (found,) = re.findall(
        r'<script type="application/json" id="document">(.*?)</script>', report.read_text(encoding="utf-8"), re.DOTALL
    )
    return json.loads(found)  # type: ignore[no-any-return]


def test_a_report_of_a_simulation_holds_its_figures_and_series_and_names_no_other_host(small: str, tmp_path: Path) -> None:
    first, again = tmp_path / "r.html", tmp_path / "again.html"
    figures = json.loads(simulate(small, "--html", str(first), "-o", "json"))
    simulate(small, "--html", str(again))
    assert first.read_bytes() == again.read_bytes()
    assert not re.search(r'(src|href)="(?!data:,)', first.read_text(encoding="utf-8")), "everything is in the file"
    told = document_in(first)
    (run,) = told["runs"]
    assert run["document"] == figures and len(told["figures"]) > 20 and "moves" not in told
    assert len(run["series"]["time"]) == 500 and sum(run["series"]["placed"]) <= figures["pods"]["placed"]
    assert run["nodes"]["names"] == ["n-0", "n-1", "n-2"]


def test_a_report_of_two_configurations_has_both_and_what_moved(small: str, tmp_path: Path) -> None:
    report = tmp_path / "r.html"
    words = ["default", str(EXAMPLES / "packing.yaml"), "--scenario", small]
    moves = json.loads(compare(*words, "--html", str(report), "-o", "json").output)["moves"]
    told = document_in(report)
    assert [run["name"] for run in told["runs"]] == ["default", "packing.yaml"]
    assert told["moves"] == moves and moves["moved"] > 0


def test_a_name_cannot_end_the_document_in_a_report() -> None:
    assert "</script><b>" not in report_page("t", {"title": "</script><b>"})


def test_a_report_that_cannot_be_written_is_one_line(small: str, tmp_path: Path) -> None:
    with pytest.raises(SchedulerError, match=r"nowhere/r\.html cannot be written: No such file or directory"):
        simulate(small, "--html", str(tmp_path / "nowhere" / "r.html"))


def test_events_and_series_are_written(small: str, tmp_path: Path) -> None:
    events, series = tmp_path / "e.jsonl", tmp_path / "s.csv"
    figures = json.loads(simulate(small, "--events", str(events), "--series", str(series), "-o", "json"))
    said = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
    assert sum(event["event"] == "placed" for event in said) == figures["pods"]["placed"]
    assert [event["at"] for event in said] == sorted(event["at"] for event in said)
    rows = list(csv.DictReader(series.open()))
    assert len(rows) == 500 and rows[1]["nodes"] == "3" and float(rows[0]["time"]) == 0


def test_events_and_series_are_tables_where_the_file_is_named_so(small: str, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: Parquet is not tested")
    for text, table, option in (("e.jsonl", "e.parquet", "--events"), ("s.csv", "s.parquet", "--series")):
        simulate(small, option, str(tmp_path / text))
        simulate(small, option, str(tmp_path / table))
    events = parquet.read_table(tmp_path / "e.parquet").to_pylist()
    lines = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [{name: value for name, value in event.items() if value is not None} for event in events] == lines
    series = parquet.read_table(tmp_path / "s.parquet")
    rows = list(csv.reader((tmp_path / "s.csv").open()))
    assert series.column_names == rows[0] and series.column("time").to_pylist() == [float(row[0]) for row in rows[1:]]


def test_a_log_is_simulated_as_well(snapshot: str) -> None:
    figures = json.loads(simulate(snapshot, "-o", "json"))
    assert (figures["pods"]["there"], figures["pods"]["placed"]) == (6, 1)


def test_what_cannot_be_written_is_said(small: str) -> None:
    with pytest.raises(SchedulerError, match="cannot be written"):
        simulate(small, "--events", "/nowhere/e.jsonl")


def test_a_duration_that_is_none_is_wrong_usage(small: str) -> None:
    result = CliRunner().invoke(simulate_command, [small, "--duration", "soon"])
    assert result.exit_code == 2 and "'soon' is no length of time" in result.output


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


def test_an_event_on_nodes_that_there_never_are_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SMALL + "events: [{at: 1m, drain: {nodes: n-2}}, {at: 2m, fail: {nodes: 'm-*'}}]\n")
    with pytest.raises(SchedulerError, match=r"events\[1\].fail.nodes: there is never a node m-\*"):
        simulate(str(tmp_path / "s.yaml"))
    added = "events: [{at: 1m, add: {name: m, count: 1, capacity: {cpu: 1}}}, {at: 2m, fail: {nodes: 'm-*'}}]\n"
    (tmp_path / "s.yaml").write_text(SMALL + added)
    assert "placed" in simulate(str(tmp_path / "s.yaml"))


def test_where_nothing_was_placed_there_is_no_time_to_placement(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SMALL.replace("cpu: 500m", "cpu: '99'").replace("rate: 0.05", "count: 0, rate: 0.05"))
    rows = [line.split("  ") for line in simulate(str(tmp_path / "s.yaml")).splitlines()]
    assert {row[-1].strip() for row in rows if row[0].startswith("time to placement")} == {"-"}


WRONG_FILES = [
    (
        "a scenario for a configuration",
        ["default", "small.yaml", "--snapshot", "s.jsonl"],
        "small.yaml: Object 'Kind' is missing",
    ),
    (
        "a configuration for a snapshot",
        ["default", "default", "--snapshot", "small.yaml"],
        "small.yaml, document 1: apiVersion: ",
    ),
    ("a snapshot for a configuration", ["default", "s.jsonl", "--snapshot", "s.jsonl"], "s.jsonl: couldn't get version/kind"),
]


@pytest.mark.parametrize(("words", "error"), [case[1:] for case in WRONG_FILES], ids=[case[0] for case in WRONG_FILES])
def test_a_wrong_kind_of_file_is_one_line(
    tmp_path: Path, small: str, snapshot: str, monkeypatch: pytest.MonkeyPatch, words: list[str], error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SchedulerError) as raised:
        compare(*words)
    assert str(raised.value).startswith(error) and "\n" not in str(raised.value) and len(str(raised.value)) < 250


def test_pods_with_claims_of_templates_stay_and_come_again(tmp_path: Path) -> None:
    request = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}]}}
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    result = {"request": "gpu", "driver": "g", "pool": "a", "device": "g0"}
    claimed = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [{"resource": "pods", "name": "t", "uid": "t"}]}
    spec = {
        "nodeName": "a",
        "schedulerName": "default-scheduler",
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
        "containers": [{"name": "c", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}],
    }
    objects = [
        ("resource.k8s.io/v1", "DeviceClass", "gpu", "", {"spec": {}}),
        (
            "resource.k8s.io/v1",
            "ResourceSlice",
            "a",
            "",
            {"spec": {"driver": "g", "nodeName": "a", "devices": [{"name": "g0"}], "pool": pool}},
        ),
        ("resource.k8s.io/v1", "ResourceClaim", "t-gpu", "default", {"spec": request, "status": claimed}),
        (
            "v1",
            "Pod",
            "t",
            "default",
            {"spec": spec, "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "t-gpu"}]}},
        ),
    ]
    decoded = [
        codec.decode({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": space, "uid": name}, **rest})
        for version, kind, name, space, rest in objects
    ]
    owner = OwnerReference(api_version="v1", kind="Pod", name="t", uid="t", controller=True)
    decoded[2] = replace(decoded[2], metadata=replace(decoded[2].metadata, owner_references=(owner,)))
    (tmp_path / "s.jsonl").write_bytes(b"".join(Captured(9.0, [*map(node, "ab"), *decoded, pod("new")]).lines()))
    for words, running in (((), 2), (("--reschedule",), 2)):
        done = compare("default", "default", "--snapshot", str(tmp_path / "s.jsonl"), "-o", "json", *words)
        assert json.loads(done.stdout)["a"]["pods"]["running"] == running, words


def test_a_plugin_that_one_of_the_two_enables_does_something(tmp_path: Path, snapshot: str) -> None:
    (tmp_path / "idle.py").write_text(
        "from kubesched import Plugin\n\nclass Idle(Plugin):\n"
        "    def filter_node(self, pod, node, state):\n        return None\n"
    )
    (tmp_path / "b.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {multiPoint: {enabled: [{name: Idle}]}}}]\n"
    )
    words = ("--snapshot", snapshot, "--plugin", str(tmp_path / "idle.py"))
    assert compare("default", str(tmp_path / "b.yaml"), *words).stderr == ""
    assert compare("default", "default", *words).stderr.count("plugin Idle does nothing") == 1
