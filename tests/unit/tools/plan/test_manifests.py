"""Manifests: what kubectl would read is read, and what is wrong is said with the place where it stands."""

from __future__ import annotations

import json
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from kubesched.errors import SchedulerError
from kubesched.tools.plan.manifests import read_manifests

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n"


def names(folder: Path, *files: str) -> list[tuple[str, str]]:
    found = read_manifests([folder / file for file in files])
    return [(each.where.removeprefix(f"{folder}/"), each.content["metadata"]["name"]) for each in found]


def test_documents_are_cut_at_their_separators_and_empty_ones_do_not_count(tmp_path: Path) -> None:
    text = "# who made this\n---\n" + POD % "a" + "--- # the second\n" + POD % "b" + "---\n---\n# nothing\n---\n" + POD % "c"
    (tmp_path / "x.yaml").write_text(text)
    assert names(tmp_path, "x.yaml") == [("x.yaml, document 1", "a"), ("x.yaml, document 2", "b"), ("x.yaml, document 3", "c")]


def test_lists_are_taken_apart(tmp_path: Path) -> None:
    a, b, c = ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}} for name in "abc")
    (tmp_path / "x.json").write_text(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [a, b]}) + json.dumps(c))
    assert names(tmp_path, "x.json") == [
        ("x.json, document 1, item 1", "a"),
        ("x.json, document 1, item 2", "b"),
        ("x.json, document 2", "c"),
    ]


def test_yaml_may_begin_with_a_brace(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n" + POD % "b")
    assert names(tmp_path, "x.yaml") == [("x.yaml, document 1", "a"), ("x.yaml, document 2", "b")]


def test_a_folder_is_its_files_in_order_and_not_those_of_folders_in_it(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("b.yml", "a.json", "c.yaml", "d.txt", "in/e.yaml"):
        (tmp_path / name).write_text(POD % name[0])
    assert names(tmp_path, "") == [("a.json, document 1", "a"), ("b.yml, document 1", "b"), ("c.yaml, document 1", "c")]
    with pytest.raises(SchedulerError, match=r"no .yaml, .yml or .json file"):
        (tmp_path / "empty").mkdir()
        read_manifests([tmp_path / "empty"])
    found = read_manifests([tmp_path], recursive=True)
    assert [each.content["metadata"]["name"] for each in found] == ["a", "b", "c", "i"]


def test_a_dash_is_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO((POD % "a").encode()), encoding="utf-8"))
    (found,) = read_manifests(["-"])
    assert (found.where, found.kind) == ("standard input, document 1", "Pod")


def test_words_mean_what_they_mean_to_kubectl(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(POD % "a" + "spec: {hostNetwork: yes, priority: 0o17}\n")
    (found,) = read_manifests([tmp_path / "x.yaml"])
    assert found.content["spec"] == {"hostNetwork": True, "priority": 15}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (POD % "a" + "---\nkind: Pod\nmetadata: {}\n", "x.yaml, document 2: apiVersion: invalid value None"),
        (POD % "a" + "---\n- 1\n", "x.yaml, document 2: not an object but [1]"),
        (POD % "a" + "---\na: [\n", "x.yaml, document 2: yaml: "),
        ("apiVersion: v1\nkind: Pod\n", "x.yaml, document 1: metadata: invalid value None"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {}\n",
            "x.yaml, document 1: metadata.name: invalid value None: a name is needed",
        ),
        ('{"apiVersion": }', "x.yaml: not JSON"),
    ],
    ids=["no version", "a list", "broken YAML", "no metadata", "no name", "broken JSON"],
)
def test_what_is_no_object_is_said_with_file_and_document(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(SchedulerError) as caught:
        read_manifests([tmp_path / "x.yaml"])
    assert complaint in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SchedulerError, match="cannot be read"):
        read_manifests([tmp_path / "x.yaml"])
