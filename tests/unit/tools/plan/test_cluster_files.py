"""Files with a cluster: what is in them says what they are, and one line says what is not."""

from __future__ import annotations

import gzip
import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubesched.cli import cli
from kubesched.errors import SchedulerError
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.kube.values import bounds
from kubesched.kube.values.bounds import Content
from kubesched.testing import node
from kubesched.tools.plan.cluster_files import cluster_in, holds_cluster, inbox_log_in, is_inbox_log, read_cluster_file
from kubesched.tools.snapshots.captured import Captured

BORN = "2026-01-01T00:00:07Z"


def stored(kind: str, name: str, version: str = "v1", spec: Any = None, status: Any = None, **metadata: Any) -> dict[str, Any]:
    meta = {"name": name, "uid": f"uid-{name}", "creationTimestamp": BORN, **metadata}
    given = {"spec": spec, "status": status}
    return {"apiVersion": version, "kind": kind, "metadata": meta, **{k: v for k, v in given.items() if v is not None}}


def a_node(name: str) -> dict[str, Any]:
    return stored("Node", name, status={"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}})


def a_pod(name: str, status: Any = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    return stored("Pod", name, spec={"containers": containers, **spec}, status=status, namespace="shop")


def listed(*objects: dict[str, Any], kind: str = "List") -> dict[str, Any]:
    return {"apiVersion": "v1", "items": list(objects), "kind": kind, "metadata": {"resourceVersion": ""}}


def read(data: bytes | str) -> tuple[Captured, list[str]]:
    said: list[str] = []
    return cluster_in("f", Content(data.encode() if isinstance(data, str) else data, True), said.append), said


def test_what_a_server_has_stored_is_taken_as_it_stands() -> None:
    objects = [a_node("n"), a_pod("p", nodeName="n", priority=7), a_pod("over", {"phase": "Succeeded"}, nodeName="n")]
    cluster, _ = read(json.dumps(listed(*objects), indent=4))
    (pod,) = cluster.of(Pod)
    assert (pod.uid, pod.spec.priority, pod.spec.node_name, pod.spec.scheduler_name) == ("uid-p", 7, "n", "default-scheduler")
    assert [each.uid for each in cluster.of(Node)] == ["uid-n"]
    assert cluster.at == 1767225607.0


def test_the_workloads_of_stored_pods_make_no_more_of_them_and_manifests_do() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    there = stored("Deployment", "web", "apps/v1", spec, namespace="shop")
    cluster, _ = read(json.dumps(listed(a_node("n"), a_pod("web-1"), there)))
    assert [pod.name for pod in cluster.of(Pod)] == ["web-1"]
    given = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    assert len(read(json.dumps(listed(a_node("n"), given)))[0].of(Pod)) == 3


def test_the_items_of_a_pod_list_need_not_name_their_kind() -> None:
    bare = {key: value for key, value in a_pod("p").items() if key not in ("apiVersion", "kind")}
    assert [pod.key for pod in read(json.dumps(listed(bare, kind="PodList")))[0].of(Pod)] == ["shop/p"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_files_that_powershell_wrote_are_read(encoding: str) -> None:
    text = json.dumps(listed(a_node("n")), indent=4)
    assert [each.name for each in read(text.encode(encoding))[0].objects] == ["n"]


def test_a_log_is_known_by_its_first_line(tmp_path: Path) -> None:
    lines = b"".join(Captured(7.5, [node("a")], 3).lines())
    text = json.dumps(listed(a_node("n")))
    assert is_inbox_log(lines) and is_inbox_log(lines.split(b"\n")[0]) and not is_inbox_log(text.encode())
    for data in (text, json.dumps(a_node("n"), indent=1), "# mine\n---\nkind: Pod\n", "apiVersion: v1\n"):
        assert holds_cluster(data.encode())
    assert not holds_cluster(b"# # " * 1000)
    assert not holds_cluster(b"cluster:\n  nodes:\n  - apiVersion: v1\n")
    file = tmp_path / "cluster.yaml"
    file.write_bytes(gzip.compress(lines)[:-8])
    assert [each.name for each in read_cluster_file(file).objects] == ["a"]
    assert inbox_log_in("f", bounds.content_of(file, may_be_cut_off=True)) == lines.splitlines(keepends=True)


CLAIM = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
NEAR = {"labelSelector": {}, "topologyKey": "zone", "namespaceSelector": {"matchLabels": {"a": "b"}}}
OWNED = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
SAID = [
    ("nothing else is needed", [a_pod("p")], "1 node, 1 pod"),
    (
        "claims",
        [a_pod("p", **CLAIM)],
        "1 node, 1 pod; no persistentvolumeclaims, persistentvolumes, storageclasses, csinodes in it: volume binding is judged "
        "without them",
    ),
    (
        "some of them",
        [a_pod("p", **CLAIM)]
        + [stored("PersistentVolumeClaim", "c"), stored("PersistentVolume", "v")]
        + [stored(kind, "x", "storage.k8s.io/v1") for kind in ("StorageClass", "CSINode")],
        "1 node, 1 pod, 1 persistentvolumeclaim, 1 persistentvolume, 1 storageclass, 1 csinode",
    ),
    (
        "namespaces and priorities",
        [
            a_pod("p", priority=7, affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NEAR]}}),
            a_pod("q"),
        ],
        "1 node, 2 pods; no namespaces, poddisruptionbudgets in it: affinity by namespace labels and preemption are judged "
        "without them",
    ),
    (
        "devices",
        [a_pod("p", resourceClaims=[{"name": "d", "resourceClaimName": "d"}])],
        "1 node, 1 pod; no resourceclaims, resourceslices, deviceclasses in it: device allocation is judged without them",
    ),
    (
        "siblings",
        [stored("Pod", "p", spec={}, labels={"a": "b"}, ownerReferences=[OWNED])],
        "1 node, 1 pod; no services, replicasets in it: default spreading is judged without them",
    ),
    ("a kind of somebody", [stored("Certificate", "p", "cert-manager.io/v1")], "1 node, 1 Certificate"),
]


@pytest.mark.parametrize(("objects", "line"), [case[1:] for case in SAID], ids=[case[0] for case in SAID])
def test_one_line_says_what_is_there_and_what_a_decision_lacks(objects: list[dict[str, Any]], line: str) -> None:
    assert read(json.dumps(listed(a_node("n"), *objects)))[1] == [f"f: {line}"]


def test_of_snapshots_and_manifests_nothing_is_said() -> None:
    assert read(b"".join(Captured(7.5, [node("a")]).lines()))[1] == []
    assert read("apiVersion: v1\nkind: Node\nmetadata: {name: one}\n")[1] == []


WRONG: list[tuple[str, bytes, str]] = [
    ("cut off", json.dumps(listed(a_node("n")))[:-30].encode(), "f: not JSON: Input data was truncated"),
    ("packed and cut off", gzip.compress(json.dumps(listed(a_node("n"))).encode())[:-9], "f: cut off: the end of what was"),
    (
        "a wrong field",
        json.dumps(listed(a_node("n"), a_pod("p", nodeName=5))).encode(),
        "f, document 1, item 2: pod shop/p: spec.n",
    ),
    ("no object", json.dumps(listed(5)).encode(), "f, document 1, item 1: not an object but 5"),  # type: ignore[arg-type]
    (
        "no kind",
        b'{"apiVersion": "v1", "metadata": {"name": "a"}}',
        "f, document 1: kind: invalid value None: a text is needed",
    ),
    ("a table", b"NAME   STATUS\nnode-1 Ready\n", "f, document 1: not an object but"),
    ("twice", json.dumps(listed(a_node("n"), a_node("n"))).encode(), "Node n stands in f, document 1, item 1 too"),
    (
        "a time",
        json.dumps(stored("Node", "n", creationTimestamp="soon")).encode(),
        "f, document 1: Node n: metadata.creationTimestamp: ",
    ),
    ("no UTF-8", b"apiVersion: \xff\xfe", "f cannot be read: it is not UTF-8"),
    ("no UTF-8 in JSON", b'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "\xff"}}', "not JSON"),
    ("nothing", b"", "f: no objects in it"),
    ("zstd", b"\x28\xb5\x2f\xfd123", "f: packed with zstd, which is not read here: unpack it first, with zstd -d"),
    ("deep JSON", b'{"a":' * 50_000, "f: nested too deep"),
    ("deep YAML", b"a: " + b"[" * 50_000, "nested deeper than 500"),
]


@pytest.mark.parametrize(("data", "text"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_what_is_wrong_is_said_in_one_line(data: bytes, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f").write_bytes(data)
    with pytest.raises(SchedulerError) as caught:
        read_cluster_file(Path("f"))
    assert text in str(caught.value) and "\n" not in str(caught.value)
    result = CliRunner().invoke(cli, ["why", "--snapshot", "f"])
    assert isinstance(result.exception, SchedulerError) and "f" in str(result.exception)


def test_lists_in_lists_end_somewhere() -> None:
    nested = a_node("n")
    for _ in range(10):
        nested = listed(nested)
    assert [each.name for each in read(json.dumps(nested))[0].objects] == ["n"]
    for _ in range(90):
        nested = listed(nested)
    with pytest.raises(SchedulerError, match="Lists in Lists, deeper than 10 levels"):
        read(json.dumps(nested))


def test_a_file_that_unpacks_to_much_more_than_it_takes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "bomb"
    file.write_bytes(gzip.compress(b" " * 10_000_000))
    assert len(bounds.content_of(file).data) == 10_000_000
    monkeypatch.setattr(bounds, "_SMALL_BYTES", 1 << 20)
    with pytest.raises(bounds.Unbounded, match="bomb: unpacks to more than 200 times its size"):
        read_cluster_file(file)


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: new}\nspec: {containers: [{name: c, image: i}]}\n"
FROM_STDIN = [
    ("plan", "--snapshot", "-", "-f", "pod.yaml"),
    ("plan", "--snapshot", "cluster", "-f", "-"),
    ("capacity", "--snapshot", "-", "-f", "pod.yaml"),
    ("why", "--snapshot", "-"),
    ("rebalance", "--snapshot", "-", "--goal=fewer-nodes"),
    ("compare", "default", "default", "--snapshot", "-"),
    ("compare", "default", "default", "--scenario", "-"),
    ("replay", "-"),
    ("simulate", "-"),
    ("simulate", "base.yaml"),
    ("decisions", "--inbox-log", "-"),
    ("snapshot", "out", "--snapshot", "-"),
]


@pytest.mark.parametrize("words", FROM_STDIN, ids=[" ".join(words) for words in FROM_STDIN])
def test_every_command_reads_a_list_from_the_standard_input(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cluster = gzip.compress(json.dumps(listed(a_node("n"), a_pod("p"))).encode())
    Path("cluster").write_bytes(cluster)
    Path("pod.yaml").write_text(POD, encoding="utf-8")
    Path("base.yaml").write_text("duration: 10\ncluster: {snapshot: '-'}\n", encoding="utf-8")
    printed = ["-o", "json"] if words[0] not in ("replay", "snapshot") else []
    given = POD.encode() if words[-1] == "-" and words[-2] == "-f" else cluster
    result = CliRunner().invoke(cli, [*words, *printed], input=given)
    assert result.exit_code == 0, (result.output, result.exception)
    if printed:
        json.loads(result.stdout)
    if words[1:] != ("base.yaml",):
        assert ": 1 node, 1 pod" in result.stderr


def test_the_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(POD.encode()), encoding="utf-8"))
    result = CliRunner().invoke(cli, ["plan", "--snapshot", "-", "-f", "-"], input=POD)
    assert "standard input is empty; it can be read only once" in str(result.exception)
