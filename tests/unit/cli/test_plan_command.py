"""`kubesched plan` and `kubesched capacity`: what they print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from kubesched.cli import cli
from kubesched.cli.capacity import command as capacity_command
from kubesched.cli.plan import command as plan_command
from kubesched.errors import SchedulerError
from kubesched.testing import node, pod
from kubesched.tools.snapshots.captured import Captured

GROUPS = "nodeGroups: [{name: spare, capacity: {cpu: 4, memory: 16Gi}, max: 5, price: 0.25}]"
SHOP = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web, resources: {requests: {cpu: "2"}}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: report, namespace: office}
spec:
  template:
    spec:
      priorityClassName: urgent
      restartPolicy: Never
      containers: [{name: report, image: report, resources: {requests: {cpu: "4"}}}]
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: r}
---
apiVersion: v1
kind: Pod
metadata: {name: theirs}
spec: {schedulerName: volcano, containers: [{name: c, image: x}]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    objects = [
        node("a", cpu="4", zone="y"),
        node("b", cpu="4", zone="z"),
        pod("stuck", requests={"cpu": "9"}),
        pod("old", on="a", requests={"cpu": "2"}, priority=5),
        pod("other", on="b", requests={"cpu": "1"}),
    ]
    (tmp_path / "cluster.jsonl").write_bytes(b"".join(Captured(5.0, objects).lines()))
    (tmp_path / "shop.yaml").write_text(SHOP)
    return tmp_path


def run(folder: Path, *words: str, stdin: str | None = None) -> Result:
    command = plan_command if words[0] == "plan" else capacity_command
    return CliRunner().invoke(
        command, [*words[1:], "--snapshot", str(folder / "cluster.jsonl")], input=stdin, catch_exceptions=False
    )


def test_a_plan_is_a_row_a_workload_and_a_total(folder: Path) -> None:
    done = run(folder, "plan", "-f", str(folder / "shop.yaml"))
    assert done.exit_code == 0
    assert done.stderr == ("Warning: kinds that the plan knows nothing of are left out: argoproj.io/v1alpha1/Rollout (1)\n")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["WORKLOAD", "NAMESPACE", "PODS", "PLACED", "WHERE"]
    assert ["Deployment/web", "default", "3", "1", "a"] in lines
    assert ["Job/report", "office", "1", "1", "b"] in lines
    assert "report-1 evicts from b: default/other (priority 0)" in done.stdout
    assert "web-2 and 1 more wait: 0/2 nodes are available: 2 Insufficient cpu." in done.stdout
    assert "not planned: for scheduler volcano, which is not configured here" in done.stdout
    assert "Waiting in the cluster already: 1, of which 0 would be placed\n  default/stuck: 0/2 nodes" in done.stdout
    assert done.stdout.endswith(
        "\n\n4 pods on 2 nodes: 2 would be placed, 2 would wait, 1 pod would be evicted; 1 for other schedulers\n"
    )


def test_a_plan_as_a_document(folder: Path) -> None:
    done = run(folder, "plan", "-f", str(folder / "shop.yaml"), "--only", "-n", "team", "-o", "json")
    told = json.loads(done.stdout)
    assert {(each["kind"], each["namespace"], each["placed"]) for each in told["workloads"]} == {
        ("Deployment", "team", 1),
        ("Job", "office", 1),
        ("Pod", "team", 0),
    }
    assert told["otherPods"] == []
    assert told["victims"] == [
        {
            "namespace": "default",
            "name": "other",
            "node": "b",
            "priority": 0,
            "by": "office/report-1",
            "byWorkload": "Job/report",
        }
    ]
    again = run(folder, "plan", "-f", str(folder / "shop.yaml"), "--only", "-n", "team", "-o", "yaml")
    assert yaml.safe_load(again.stdout) == told


def test_manifests_may_come_by_the_standard_input(folder: Path) -> None:
    pod_yaml = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: x}]}\n"
    done = run(folder, "plan", "-f", "-", stdin=pod_yaml)
    assert (done.exit_code, "1 pod on 2 nodes: 1 would be placed" in done.stdout) == (0, True)


def test_a_pipeline_can_ask_for_a_failure(folder: Path) -> None:
    with pytest.raises(SchedulerError, match="2 of 4 pods would wait"):
        run(folder, "plan", "-f", str(folder / "shop.yaml"), "--fail-on-pending")


def test_files_must_be_given(folder: Path) -> None:
    assert run(folder, "plan").exit_code == 2
    assert run(folder, "capacity").exit_code == 2


def test_a_capacity_is_a_count_and_what_stops_it(folder: Path) -> None:
    done = run(folder, "capacity", "-f", str(folder / "shop.yaml"), "--workload", "Deployment/web")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "2 more of Deployment/default/web fit on 2 nodes",
        "zones:  y, z",
        "nodes:  a, b",
        "the next one waits: 0/2 nodes are available: 2 Insufficient cpu.",
        "  2 nodes: Insufficient cpu (a, b), says NodeResourcesFit",
    ]


def test_a_capacity_says_before_it_decides_copies_one_by_one(folder: Path) -> None:
    ported = yaml.safe_load(POD % "p")
    ported["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    (folder / "alike.yaml").write_text(POD % "p", encoding="utf-8")
    (folder / "ported.yaml").write_text(json.dumps(ported), encoding="utf-8")
    assert run(folder, "capacity", "-f", str(folder / "alike.yaml")).stderr == ""
    for limit, most in ((), 100_000), (("--limit", "1"), 1):
        asked = ("capacity", "-f", str(folder / "ported.yaml"), *limit)
        assert run(folder, *asked).stderr == f"copies of this pod are decided one by one, {most} at most (--limit)\n"
        done = run(folder, *asked, "-o", "json")
        assert (json.loads(done.stdout)["fits"], done.stderr) == (min(most, 2), "")


def test_copies_that_only_take_room_have_no_limit_but_the_one_that_is_asked_for(folder: Path) -> None:
    (folder / "large.jsonl").write_bytes(b"".join(Captured(0.0, [node("n", pods=1_000_000)]).lines()))
    (folder / "tiny.yaml").write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: tiny}, spec: {containers: [{name: c, image: x}]}}"
    )
    words = ["-f", str(folder / "tiny.yaml"), "--snapshot", str(folder / "large.jsonl"), "-o", "json"]
    done = CliRunner().invoke(capacity_command, words, catch_exceptions=False)
    assert (done.stderr, json.loads(done.stdout)["fits"]) == ("", 1_000_000)
    done = CliRunner().invoke(capacity_command, [*words, "--limit", "7"], catch_exceptions=False)
    assert json.loads(done.stdout)["fits"] == 7


def test_a_capacity_after_a_loss(folder: Path) -> None:
    words = ("capacity", "-f", str(folder / "shop.yaml"), "--workload", "Job/report", "--drain", "a")
    done = run(folder, *words)
    assert done.stdout.splitlines()[:2] == [
        "1 of 1 pods of the drained nodes found another place",
        "0 more of Job/office/report fit on 1 node",
    ]
    told = json.loads(run(folder, *words, "-o", "json").stdout)
    assert (told["fits"], told["drained"]) == (0, [{"namespace": "default", "name": "old", "from": "a", "node": "b"}])
    assert run(folder, "capacity", "-f", str(folder / "shop.yaml"), "--workload", "Pod/theirs", "--limit", "0").exit_code == 2


def test_extenders_are_not_asked(folder: Path) -> None:
    (folder / "config.yaml").write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "extenders": [{"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}],
            }
        )
    )
    done = run(folder, "plan", "-f", str(folder / "shop.yaml"), "--config", str(folder / "config.yaml"))
    assert (done.exit_code, "Warning: extenders are not asked\n" in done.stderr) == (0, True)


BROKEN = """
from kubesched import Plugin

class Clumsy(Plugin):
    def filter(self, pod, nodes, state):
        return 1 / 0
"""


def test_a_plugin_that_breaks_is_named_and_the_plan_ends(folder: Path) -> None:
    (folder / "clumsy.py").write_text(BROKEN)
    (folder / "config.yaml").write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"plugins": {"filter": {"enabled": [{"name": "Clumsy"}]}}}],
            }
        )
    )
    done = run(
        folder,
        "plan",
        "-f",
        str(folder / "shop.yaml"),
        "--only",
        "--config",
        str(folder / "config.yaml"),
        "--plugin",
        f"{folder / 'clumsy.py'}:Clumsy",
    )
    assert done.exit_code == 0
    assert "4 pods on 2 nodes: 0 would be placed, 4 would wait" in done.stdout
    assert "division by zero" in done.stdout
    assert "Warning: plugin Clumsy broke at Filter for pod office/report-1: " in done.stderr
    assert "ZeroDivisionError: division by zero\n" in done.stderr
    assert "Traceback" not in done.output


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: x}]}\n"


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n---\n"], ids=["empty", "a comment", "separators"])
@pytest.mark.parametrize("command", ["plan", "capacity"])
def test_no_objects_are_an_error(folder: Path, command: str, text: str) -> None:
    (folder / "none.yaml").write_text(text)
    with pytest.raises(SchedulerError, match=r"none.yaml: no objects in it$"):
        run(folder, command, "-f", str(folder / "none.yaml"))


def test_several_files_may_follow_one_option(folder: Path) -> None:
    for name in ("one", "two", "three"):
        (folder / f"{name}.yaml").write_text(POD % name)
    files = [str(folder / f"{name}.yaml") for name in ("one", "two", "three")]
    assert "3 pods on 2 nodes: 3 would be placed" in run(folder, "plan", "-f", files[0], files[1], "-f", files[2]).stdout


def test_folders_of_folders_are_read_with_recursive(folder: Path) -> None:
    (folder / "all" / "in").mkdir(parents=True)
    (folder / "all" / "in" / "a.yaml").write_text(POD % "a")
    with pytest.raises(SchedulerError, match=r"no .yaml, .yml or .json file in this folder; -R looks deeper"):
        run(folder, "plan", "-f", str(folder / "all"))
    assert "1 pod on 2 nodes: 1 would be placed" in run(folder, "plan", "-R", "-f", str(folder / "all")).stdout


def _kubectl(folder: Path, script: str) -> dict[str, str]:
    """Return an environment in which `kubectl` is a script."""
    (folder / "bin").mkdir()
    (folder / "bin" / "kubectl").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bin" / "kubectl").chmod(0o755)
    return {"PATH": f"{folder / 'bin'}:/usr/bin:/bin"}


KUSTOMIZED = [
    ("built", 'test "$1" = kustomize && cat "$2/made.yaml"', "", "1 pod on 2 nodes: 1 would be placed"),
    ("refused", "echo 'error: no resources here' >&2; exit 1", "base: no resources here", ""),
    ("empty", "true", "base: no objects in it", ""),
]


@pytest.mark.parametrize(("script", "error", "said"), [case[1:] for case in KUSTOMIZED], ids=[case[0] for case in KUSTOMIZED])
def test_a_kustomization_is_built_by_kubectl(
    folder: Path, monkeypatch: pytest.MonkeyPatch, script: str, error: str, said: str
) -> None:
    (folder / "base").mkdir()
    (folder / "base" / "made.yaml").write_text(POD % "p")
    monkeypatch.setenv("PATH", _kubectl(folder, script)["PATH"])
    if error:
        with pytest.raises(SchedulerError) as raised:
            run(folder, "plan", "-k", str(folder / "base"))
        assert str(raised.value) == f"{folder}/{error}"
    else:
        assert said in run(folder, "plan", "-k", str(folder / "base")).stdout


def test_a_kustomization_without_kubectl_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(SchedulerError, match="kubectl, which builds kustomizations, is not in the PATH"):
        run(folder, "plan", "-k", str(folder))


@pytest.mark.parametrize("words", [["-f", "x.yaml", "-k", "."], ["x.yaml"], []], ids=["both", "no option", "neither"])
def test_files_or_a_kustomization(folder: Path, words: list[str]) -> None:
    assert run(folder, "plan", *words).exit_code == 2


IDLE = "from kubesched import Plugin\n\nclass Idle(Plugin):\n    def filter(self, pod, nodes, state):\n        return None\n"
IDLE_WARNING = "Warning: plugin Idle does nothing: no profile enables it (profiles[].plugins.multiPoint.enabled in --config)\n"


def test_a_plugin_that_no_profile_enables_is_said_to_do_nothing(folder: Path) -> None:
    (folder / "idle.py").write_text(IDLE)
    (folder / "pod.yaml").write_text(POD % "p")
    words = ("-f", str(folder / "pod.yaml"), "--plugin", str(folder / "idle.py"))
    assert run(folder, "plan", *words).stderr == IDLE_WARNING
    assert run(folder, "capacity", *words).stderr == IDLE_WARNING
    config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n%s"
    (folder / "without.yaml").write_text(config % "")
    (folder / "with.yaml").write_text(config % "profiles: [{plugins: {multiPoint: {enabled: [{name: Idle}]}}}]")
    assert run(folder, "plan", *words, "--config", str(folder / "without.yaml")).stderr == IDLE_WARNING
    assert "does nothing" not in run(folder, "plan", *words, "--config", str(folder / "with.yaml")).stderr
    for file, said in (("without.yaml", IDLE_WARNING), ("with.yaml", "")):
        done = CliRunner().invoke(cli, ["config", "check", str(folder / file), "--plugin", str(folder / "idle.py")])
        assert (done.exit_code, done.stderr) == (0, said)


def test_node_groups_say_which_nodes_to_add(folder: Path) -> None:
    (folder / "groups.yaml").write_text(GROUPS)
    grown = ("--node-groups", str(folder / "groups.yaml"))
    done = run(folder, "plan", "-f", str(folder / "shop.yaml"), *grown, "--consolidate")
    assert ["spare", "1", "2", "0.25"] in [line.split() for line in done.stdout.splitlines()]
    assert "0 would wait, 1 node would be added for 0.25 an hour, 1 pod would be evicted" in done.stdout
    assert "Nodes that could go: 0" in done.stdout
    told = json.loads(run(folder, "plan", *grown, "-o", "json").stdout)
    assert told["newNodes"] == [] and told["pricePerHour"] == 0  # nine cores for the one that waits are nowhere to be had
    counted = run(folder, "capacity", "-f", str(folder / "shop.yaml"), "--workload", "Deployment/web", *grown)
    assert "12 more of Deployment/default/web fit on 7 nodes\n5 more nodes for 1.25 an hour: spare x5" in counted.stdout


def test_consolidate_needs_node_groups(folder: Path) -> None:
    done = run(folder, "plan", "-f", str(folder / "shop.yaml"), "--consolidate")
    assert done.exit_code == 2 and "--consolidate goes with --node-groups" in done.stderr
