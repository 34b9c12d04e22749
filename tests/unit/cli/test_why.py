"""`kubesched why` on a file: what it says, in which words, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from kubesched.cli.why import command as why_command
from kubesched.errors import SchedulerError
from kubesched.kube.api import codec
from kubesched.kube.api.meta import OwnerReference
from kubesched.kube.api.pod import Pod, PodCondition, PodResourceClaim, PodSchedulingGroup
from kubesched.testing import node, pod, taint
from kubesched.tools.snapshots.captured import Captured
from kubesched.tools.snapshots.sources import namespace_of

REFUSED = "0/3 nodes are available: as it was written."


def over(finished: Pod) -> Pod:
    return msgspec.structs.replace(finished, status=msgspec.structs.replace(finished.status, phase="Succeeded"))


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    told = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=REFUSED)
    objects = [
        node("a", cpu="4"),
        node("b", cpu="4"),
        node("gpu-1", cpu="16", taints=[taint("gpu")]),
        pod("low", on="a", priority=1, requests={"cpu": "3"}),
        pod("high", on="b", priority=99, requests={"cpu": "3"}),
        pod("large", requests={"cpu": "2"}, priority=50, conditions=[told]),
        pod("whale", requests={"cpu": "99"}),
        pod("small", requests={"cpu": "500m"}),
        pod("held", gates=["wait/for-me"]),
        pod("alien", scheduler="other"),
        pod("elsewhere", namespace="team-a"),
        pod("twice", namespace="team-a"),
        pod("twice", namespace="team-b"),
        pod(
            "broken",
            affinity={
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "preference": {"matchExpressions": [{"key": "x", "operator": "Gt", "values": ["much"]}]}}
                    ]
                }
            },
        ),
        pod("leaving", deleted_at="2026-01-01T00:00:00Z"),
        over(pod("done")),
    ]
    file = tmp_path / "cluster.jsonl"
    file.write_bytes(b"".join(Captured(7.5, objects).lines()))
    return file


def run(cluster: Path, *words: str) -> Result:
    return CliRunner().invoke(why_command, [*words, "--snapshot", str(cluster)], env={"COLUMNS": "100", "NO_COLOR": "1"})


def said(cluster: Path, *words: str) -> str:
    result = run(cluster, *words)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def story(cluster: Path, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said(cluster, *words, "-o", "json"))
    return found


VERDICTS = [
    ("large", "default/large is pending: none of 3 nodes takes it"),
    ("whale", "default/whale is pending: none of 3 nodes takes it, and none ever could"),
    ("small", "default/small is pending, and 2 of 3 nodes would take it now; it would go to "),
    ("held", "default/held is gated by SchedulingGates: waiting for scheduling gates: [wait/for-me]; without the gate 2 of 3"),
    ("alien", "default/alien waits for a scheduler that is not configured here: other"),
    ("broken", "default/broken is pending, and trying to place it fails"),
    ("low", "default/low is on a"),
    ("leaving", "default/leaving is being deleted; it is not scheduled any more"),
    ("done", "default/done is finished (Succeeded); it is not scheduled any more"),
]


@pytest.mark.parametrize(("name", "verdict"), VERDICTS, ids=[case[0] for case in VERDICTS])
def test_the_first_line_is_the_answer(cluster: Path, name: str, verdict: str) -> None:
    assert said(cluster, name).splitlines()[0].startswith(verdict)


def test_a_pending_pod_is_explained_from_the_reasons_to_what_wakes_it(cluster: Path) -> None:
    text = said(cluster, "large")
    assert "asks for 2 cpu; priority 50; scheduler default-scheduler" in text
    assert "2  NodeResourcesFit  may help  Insufficient cpu (a, b)" in text
    assert "- tolerating gpu:NoSchedule, 1 node would take it (gpu-1)" in text
    assert "would help: on a it would evict default/low (priority 1)" in text
    assert f"The scheduler's message\n  {REFUSED}" in text
    assert "TaintToleration: a node comes or changes its taints; a pod tolerates more" in text
    places = [
        text.index(title)
        for title in ("who refuses", "What would help", "Preemption", "Will it ever fit", "message", "It is tried again when")
    ]
    assert places == sorted(places)
    assert "\x1b" not in text


def test_a_placed_pod_is_explained_by_scores(cluster: Path) -> None:
    text = said(cluster, "low")
    assert "a would not take one more like it: Insufficient cpu" in text
    assert "What would help" not in text and "Preemption" not in text
    text = said(cluster, "small", "--top", "1")
    assert text.count("TaintToleration 300") == 1


def test_the_document_has_stable_keys(cluster: Path) -> None:
    found = story(cluster, "large")
    assert list(found) == [
        "pod",
        "state",
        "phase",
        "node",
        "scheduler",
        "requests",
        "priority",
        "priorityClass",
        "nominatedNode",
        "message",
        "nodeCount",
        "feasibleCount",
        "wouldSay",
        "wouldGoTo",
        "refusals",
        "ranking",
        "advice",
        "wakesOn",
        "ever",
        "preemption",
    ]
    assert (found["pod"], found["state"], found["message"], found["nodeCount"]) == ("default/large", "pending", REFUSED, 3)
    assert found["refusals"][0] == {
        "plugin": "NodeResourcesFit",
        "reason": "Insufficient cpu",
        "count": 2,
        "helpsToEvict": True,
        "examples": ["a", "b"],
    }
    assert found["advice"][0] == {
        "kind": "tolerate",
        "text": "tolerating gpu:NoSchedule, 1 node would take it (gpu-1)",
        "plugin": "TaintToleration",
        "nodeCount": 1,
        "examples": ["gpu-1"],
        "change": {"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]},
        "patches": [
            {
                "kind": "Pod",
                "namespace": "default",
                "name": "large",
                "type": "merge",
                "patch": {"spec": {"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]}},
                "command": "kubectl patch -n default pod large --type=merge -p "
                """'{"spec":{"tolerations":[{"key":"gpu","operator":"Exists","effect":"NoSchedule"}]}}'""",
            }
        ],
    }
    assert found["preemption"] == {
        "helps": True,
        "node": "a",
        "victimCount": 1,
        "budgetsBroken": 0,
        "victims": [{"pod": "default/low", "priority": 1}],
    }
    assert found["ever"]["fits"] is True
    assert yaml.safe_load(said(cluster, "large", "-o", "yaml")) == found


def test_a_pod_of_a_scheduler_that_is_not_configured_is_told_as_it_is(cluster: Path) -> None:
    found = story(cluster, "alien")
    assert (found["state"], found["scheduler"], "refusals" in found) == ("notOurs", "other", False)


def test_the_configuration_says_how_it_is_decided(cluster: Path, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    profiles = [{"schedulerName": "other", "plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}}]
    file.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": profiles,
                "extenders": [{"urlPrefix": "http://127.0.0.1:1", "filterVerb": "f"}],
            }
        )
    )
    result = run(cluster, "alien", "--config", str(file), "-o", "json")
    assert "Warning: extenders are not asked" in result.stderr
    assert json.loads(result.stdout)["feasibleCount"] == 3


FAILURES = [
    (["nobody"], "there is no pod default/nobody"),
    (["elsewhere"], "there is no pod default/elsewhere, but there is team-a/elsewhere"),
    (["twice"], "there is no pod default/twice; pods of that name are in team-a, team-b"),
    (["large", "-n", "team-a"], "there is no pod team-a/large, but there is default/large"),
]


@pytest.mark.parametrize(("words", "complaint"), FAILURES, ids=[case[1] for case in FAILURES])
def test_a_pod_that_is_not_there(cluster: Path, words: list[str], complaint: str) -> None:
    error = run(cluster, *words).exception
    assert isinstance(error, SchedulerError) and str(error) == complaint


def test_a_namespace_can_be_given_either_way(cluster: Path) -> None:
    for words in (["team-a/elsewhere"], ["elsewhere", "-n", "team-a"], ["team-a/elsewhere", "-n", "team-a"]):
        assert story(cluster, *words)["pod"] == "team-a/elsewhere"


WRONG = [
    ["team-a/x", "-n", "team-b"],
    ["team-a/"],
    ["x", "--server", "https://127.0.0.1:1"],
    ["x", "--token", "t"],
    ["a/b/c"],
    ["x", "--kubeconfig", "k"],
    ["x", "--top", "0"],
]


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_usage(cluster: Path, words: list[str]) -> None:
    assert run(cluster, *words).exit_code == 2


def test_a_file_that_is_no_snapshot_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("nothing of the kind\n")
    error = run(tmp_path / "x", "web").exception
    assert isinstance(error, SchedulerError) and "\n" not in str(error)


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("nonsense", "--server: 'nonsense' is not an address like https://127.0.0.1:10259"),
        ("http://127.0.0.1:1", "connection refused"),
    ],
)
def test_a_scheduler_that_cannot_be_asked(address: str, complaint: str) -> None:
    error = CliRunner().invoke(why_command, ["web", "--server", address]).exception
    assert isinstance(error, SchedulerError) and complaint in str(error) and "\n" not in str(error)


def test_the_namespace_of_a_context(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    contexts = [{"name": "one", "context": {"namespace": "team-a"}}, {"name": "two", "context": {}}]
    file.write_text(yaml.safe_dump({"current-context": "one", "contexts": contexts}))
    found = [namespace_of("", None, str(file), context) for context in ("", "one", "two", "three")]
    assert found == ["team-a", "team-a", "default", "default"]
    assert namespace_of("", None, f"{tmp_path}/absent:{file}", "") == "team-a"
    assert namespace_of("mine", None, str(file), "") == "mine"
    assert namespace_of("", file, str(file), "") == "default", "a file has no context"


def claim_objects() -> list[Any]:
    """Return two nodes with a device each, of which one is taken, a claim for such a device, and its pod."""
    request = {
        "devices": {
            "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}]
        }
    }
    taken = {"allocation": {"devices": {"results": [{"request": "gpu", "driver": "g", "pool": "a", "device": "g0"}]}}}
    rows: list[tuple[str, str, str, dict[str, Any]]] = [
        ("DeviceClass", "gpu", "", {"spec": {}}),
        ("ResourceClaim", "mine", "default", {"spec": request}),
        ("ResourceClaim", "theirs", "default", {"spec": request, "status": taken}),
    ]
    for name in ("a", "b"):
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        rows.append(
            ("ResourceSlice", name, "", {"spec": {"driver": "g", "nodeName": name, "devices": [{"name": "g0"}], "pool": pool}})
        )
    made = [
        codec.decode({"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": meta, **rest})
        for kind, name, space, rest in rows
        for meta in [{"name": name, "namespace": space, "uid": name}]
    ]
    asks = pod("train")
    claiming = msgspec.structs.replace(
        asks.spec,
        resource_claims=(
            PodResourceClaim(name="x", resource_claim_name="mine"),
            PodResourceClaim(name="y", resource_claim_template_name="later"),
        ),
    )
    return [node("a"), node("b"), node("c"), *made, msgspec.structs.replace(asks, spec=claiming)]


def test_claims_are_listed_with_the_nodes_that_have_such_devices(tmp_path: Path) -> None:
    file = tmp_path / "devices.jsonl"
    file.write_bytes(b"".join(Captured(7.5, claim_objects()).lines()))
    assert (
        "Devices\n"
        " - claim mine asks for 1 of class gpu: 2 nodes have such devices (a, b), 1 of them enough that are free\n"
        " - claim y: is not made yet from ResourceClaimTemplate later\n"
    ) in said(file, "train")


@pytest.fixture
def workloads(tmp_path: Path) -> Path:
    def of(name: str, kind: str, owner: str, **spec: Any) -> Pod:
        made = pod(name, labels={"pod-template-hash": "7f"}, **spec)
        reference = OwnerReference(api_version="apps/v1", kind=kind, name=owner, uid=owner, controller=True)
        return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, owner_references=(reference,)))

    objects = [
        node("a", cpu="4"),
        node("gpu-1", cpu="16", taints=[taint("gpu")]),
        of("web-1", "ReplicaSet", "web-7f", requests={"cpu": "8"}),
        of("web-2", "ReplicaSet", "web-7f", requests={"cpu": "8"}),
        of("web-0", "ReplicaSet", "web-7f", on="a", requests={"cpu": "1"}),
        of("api-1", "StatefulSet", "api", requests={"cpu": "7"}),
        of("db-0", "StatefulSet", "db", on="a", requests={"cpu": "1"}),
        pod("whale", requests={"cpu": "99"}),
        pod("held", gates=["wait/for-me"]),
    ]
    file = tmp_path / "workloads.jsonl"
    file.write_bytes(b"".join(Captured(7.5, objects).lines()))
    return file


def test_all_pods_that_wait_are_grouped_by_what_would_help(workloads: Path) -> None:
    found = story(workloads)
    assert found["pendingCount"] == 5
    assert [(group["pods"], group["advice"][0]["kind"] if group["advice"] else "") for group in found["groups"]] == [
        (["default/web-1", "default/web-2", "default/api-1"], "tolerate"),
        (["default/whale"], "lower"),
        (["default/held"], ""),
    ]
    text = said(workloads)
    assert text.startswith("5 pods wait\n\n3 pods: default/api-1, default/web-1, default/web-2\n")
    assert "  - tolerating gpu:NoSchedule, 1 node would take it (gpu-1)\n" in text
    assert "1 pod: default/held\n  gated by SchedulingGates: waiting for scheduling gates: [wait/for-me]\n" in text
    assert said(workloads, "-n", "elsewhere") == "no pod waits\n"


ASKED = [
    ("deploy/web", "default/web-1 is pending: none of 2 nodes takes it"),
    ("deployments.apps/web", "default/web-1 is pending"),
    ("default/rs/web-7f", "default/web-1 is pending"),
    ("sts/db", "default/db-0 is on a"),
    ("pod/whale", "default/whale is pending"),
    ("default/pods/whale", "default/whale is pending"),
]


@pytest.mark.parametrize(("what", "verdict"), ASKED, ids=[case[0] for case in ASKED])
def test_workloads_and_pods_are_called_as_kubectl_calls_them(workloads: Path, what: str, verdict: str) -> None:
    text = said(workloads, what)
    assert text.startswith(verdict)
    assert ("of Deployment default/web, like 1 more" in text) == ("deploy" in what)


def test_a_workload_without_pods_is_named(workloads: Path) -> None:
    found = run(workloads, "ds/agent").exception
    assert isinstance(found, SchedulerError) and str(found) == "DaemonSet default/agent has no pods, or is not there"


def test_changes_are_offered_as_patches(workloads: Path) -> None:
    assert said(workloads, "deploy/web", "-o", "patch") == (
        "# tolerating gpu:NoSchedule, 1 node would take it (gpu-1)\n"
        "kubectl patch -n default deployment web --type=merge -p "
        """'{"spec":{"template":{"spec":{"tolerations":[{"key":"gpu","operator":"Exists","effect":"NoSchedule"}]}}}}'\n"""
        "# closest is a: it would fit with 6 more cpu; asking for 2 cpu, 1 node would take it (a)\n"
        "kubectl patch -n default deployment web --type=strategic -p "
        """'{"spec":{"template":{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"2"}}}]}}}}'\n"""
    )
    assert said(workloads, "sts/db", "-o", "patch") == "# no change of one object would help\n"
    assert said(workloads, "-o", "patch").count("kubectl patch") == 3


def test_a_group_changes_the_answer(tmp_path: Path) -> None:
    members = [pod(f"m{i}", labels={"scheduling.x-k8s.io/pod-group": "gang"}) for i in range(2)]
    file, config = tmp_path / "gang.jsonl", tmp_path / "config.yaml"
    file.write_bytes(b"".join(Captured(7.5, [node("a"), *members]).lines()))
    ignored = "the label scheduling.x-k8s.io/pod-group=gang is ignored: no profile enables Coscheduling"
    assert ignored in said(file, "m0")
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- plugins:\n"
        "    multiPoint: {enabled: [{name: Coscheduling}]}\n"
        "    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: '*'}]}\n"
    )
    text = said(file, "m0", "--config", str(config))
    assert ignored not in text
    assert "group default/gang is tried as a whole: 0 of its 2 pods are placed" in text


def test_a_pod_group_that_the_gates_ignore_is_said_to_be(tmp_path: Path) -> None:
    lone = pod("lone")
    lone = msgspec.structs.replace(
        lone, spec=msgspec.structs.replace(lone.spec, scheduling_group=PodSchedulingGroup(pod_group_name="gang"))
    )
    file = tmp_path / "group.jsonl"
    file.write_bytes(b"".join(Captured(7.5, [node("a"), lone]).lines()))
    ignored = (
        "PodGroup gang is ignored: the feature gate GenericWorkload is off; --feature-gates GenericWorkload=true switches it on"
    )
    assert ignored in said(file, "lone").replace("\n", " ")
    text = said(file, "lone", "--feature-gates", "GenericWorkload=true,GangScheduling=true")
    assert "is ignored" not in text
    assert "group default/gang is tried as a whole: 0 of its 1 pods are placed" in text


MANIFESTS = """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: there, uid: there}
spec: {nodeName: a, containers: [{name: main, image: x, resources: {requests: {cpu: "2"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, uid: web}
spec: {containers: [{name: main, image: x, resources: {requests: {cpu: "1"}}}]}
"""


def test_a_cluster_may_be_a_file_of_manifests(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(MANIFESTS)
    done = CliRunner().invoke(why_command, ["web", "--snapshot", str(file), "-o", "json"])
    (refusal,) = json.loads(done.stdout)["refusals"]
    assert (refusal["reason"], refusal["examples"]) == ("Insufficient cpu", ["a"])


def test_what_is_wrong_with_manifests_is_one_line_with_the_document(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(MANIFESTS.replace("nodeName: a", "nodeNam: a"))
    done = CliRunner().invoke(why_command, ["web", "--snapshot", str(file)])
    assert isinstance(done.exception, SchedulerError)
    assert "cluster.yaml, document 2" in str(done.exception) and "nodeNam" in str(done.exception)
