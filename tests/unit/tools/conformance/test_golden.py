"""The golden runner: a wrong expectation is noticed, whatever it is about, and a broken file is told in one line."""

from __future__ import annotations

import copy
import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubesched.errors import SchedulerError
from kubesched.tools.conformance.cases import compare, read_cases, run_decision_case
from kubesched.tools.conformance.families import run_case


def node(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}},
    }


def pod(name: str, cpu: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "d", "uid": name},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
    }


SHORT = {"code": "UnschedulableAndUnresolvable", "plugin": "NodeResourcesFit", "reasons": ["Insufficient cpu"]}
CLOSED = {"code": "UnschedulableAndUnresolvable", "plugin": "NodeUnschedulable", "reasons": ["node(s) were unschedulable"]}
SCORES = {
    "TaintToleration": 300,
    "NodeResourcesFit": 86,
    "DynamicResources": 0,
    "NodeResourcesBalancedAllocation": 68,
    "ImageLocality": 0,
}
CASE: dict[str, Any] = {
    "name": "two pods",
    "objects": [node("a", "4"), node("b", "500m"), node("c", "4", unschedulable=True)],
    "pods": [pod("one", "1"), pod("two", "8")],
    "expected": {
        "results": [
            {
                "pod": "d/one",
                "feasible": ["a"],
                "rejected": {"b": SHORT, "c": CLOSED},
                "scores": {"a": SCORES},
                "decision": "a",
            },
            {
                "pod": "d/two",
                "feasible": [],
                "rejected": {"a": SHORT, "b": SHORT, "c": CLOSED},
                "fitError": "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.",
            },
        ]
    },
}


def test_a_case_that_is_decided_as_recorded_has_no_differences() -> None:
    assert run_decision_case(CASE) == []


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the case with one expectation changed; None removes it."""
    case = copy.deepcopy(CASE)
    where: Any = case["expected"]["results"]
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in way:
        where = where[step]
    if value is None:
        del where[last]
    else:
        where[last] = value
    return case


WRONG = [
    ("a node more", "0.feasible", ["a", "b"], ["feasible"]),
    ("a node less", "1.feasible", ["a"], ["feasible"]),
    ("another plugin", "0.rejected.b", {**SHORT, "plugin": "NodePorts"}, ["rejected b"]),
    ("another code", "0.rejected.b", {**SHORT, "code": "Unschedulable"}, ["rejected b"]),
    ("a reason twice", "0.rejected.b", {**SHORT, "reasons": ["Insufficient cpu"] * 2}, ["rejected b"]),
    ("no rejection", "0.rejected.c", None, ["rejected c"]),
    ("a rejection that is not there", "0.rejected.x", SHORT, ["rejected x"]),
    ("another score", "0.scores.a", {**SCORES, "NodeResourcesFit": 87}, ["scores"]),
    ("a plugin that should have been skipped", "0.scores.a", {**SCORES, "NodeAffinity": 0}, ["scores"]),
    ("another node", "0.decision", "b", ["decision"]),
    ("no decision", "0.decision", None, ["decision"]),
    ("another text", "1.fitError", "0/3 nodes are available: 3 Insufficient cpu.", ["fitError"]),
    ("an error", "0.error", "broken", ["error"]),
    ("a gate", "0.preEnqueue", {"code": "UnschedulableAndUnresolvable"}, ["preEnqueue"]),
    ("a refusal before filtering", "0.preFilter", {"code": "Unschedulable"}, ["preFilter"]),
    ("nodes that were left out", "0.otherNodes", {"code": "Unschedulable"}, ["otherNodes"]),
]


@pytest.mark.parametrize(("path", "value", "what"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_a_wrong_expectation_is_noticed(path: str, value: Any, what: list[str]) -> None:
    found = run_decision_case(changed(path, value))
    assert [difference.what for difference in found] == what
    assert str(found[0]).startswith(f"two pods d/{'one' if path[0] == '0' else 'two'}: {what[0]}: expected ")


def test_reasons_may_stand_in_any_order() -> None:
    given = {"rejected": {"a": {"code": "Unschedulable", "plugin": "P", "reasons": ["x", "y"]}}}
    found = {"rejected": {"a": {"code": "Unschedulable", "plugin": "P", "reasons": ["y", "x"]}}}
    assert compare("case", given, found) == []


@pytest.mark.parametrize(
    ("answers", "found", "is_accepted"),
    [
        ([{"node": "a", "victims": ["d/x"]}], {"node": "a", "victims": ["d/x"]}, True),
        ([{"node": "a", "victims": ["d/x"]}, {"node": "b", "victims": []}], {"node": "b", "victims": []}, True),
        ([{"node": "a", "victims": ["d/x"]}], {"node": "a", "victims": ["d/y"]}, False),
        ([{"node": "a"}], {"node": "b", "victims": []}, False),
    ],
)
def test_any_of_the_accepted_preemptions_will_do(answers: Any, found: Any, is_accepted: bool) -> None:
    assert (compare("case", {"preemption": answers}, {"preemption": found}) == []) is is_accepted


@pytest.mark.parametrize(("others", "is_accepted"), [([], False), ([{"node": "b", "victims": []}], True)])
def test_the_text_names_any_of_the_accepted_nodes(others: Any, is_accepted: bool) -> None:
    text = "preemption: found a potential placement for pod on node {}, preempting 1 victims"

    def outcome(node: str, answer: Any) -> dict[str, Any]:
        status = {"code": "Success", "reasons": [text.format(node)]}
        return {"preemption": answer, "fitError": text.format(node), "postFilter": status}

    given, found = outcome("a", [{"node": "a", "victims": []}, *others]), outcome("b", {"node": "b", "victims": []})
    assert (compare("case", given, found) == []) is is_accepted


def test_a_configuration_that_should_have_been_refused_is_noticed() -> None:
    case = {**CASE, "expected": {"error": "no such plugin"}}
    assert [difference.what for difference in run_decision_case(case)] == ["error"]


def test_a_pod_that_waits_for_its_node_holds_its_place() -> None:
    waiting = pod("waiting", "3500m")
    waiting |= {"apiVersion": "v1", "kind": "Pod", "status": {"nominatedNodeName": "a"}}
    waiting["spec"]["priority"] = 10
    found = run_decision_case({**CASE, "objects": [*CASE["objects"], waiting]})
    assert [(d.what, d.found) for d in found if "one" in d.case and d.what in ("feasible", "decision")] == [
        ("feasible", []),
        ("decision", None),
    ]


def test_a_case_that_raises_is_a_difference_and_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubesched.tools.conformance.cases.Cluster.of", lambda case: {}["nothing"])
    (difference,) = run_case(CASE)
    assert str(difference) == """two pods: raised: expected null, found "KeyError: 'nothing'\""""


@pytest.mark.parametrize("text", ["1", "new", "1.x", 1.37])
def test_a_version_that_is_none_is_told(text: Any) -> None:
    with pytest.raises(SchedulerError, match="is no release"):
        run_case({**CASE, "version": text})


# Files


def test_cases_are_read_from_files_and_folders_plain_or_packed(tmp_path: Path) -> None:
    line = msgspec.json.encode(CASE)
    (tmp_path / "one.jsonl").write_bytes(line + b"\n\n" + line + b"\n")
    (tmp_path / "two.jsonl.gz").write_bytes(gzip.compress(line))
    (tmp_path / "readme.md").write_text("not a case")
    assert [family for family, _ in read_cases([tmp_path])] == ["one", "one", "two"]
    assert [case for _, case in read_cases([tmp_path / "two.jsonl.gz"])] == [CASE]
    (tmp_path / "v1.37").mkdir()
    (tmp_path / "v1.37" / "two.jsonl").write_bytes(line)
    assert [family for family, _ in read_cases([tmp_path])] == ["one", "one", "two", "v1.37/two"]


BROKEN = [
    ("no JSON", "x.jsonl", b'{"name": "a"}\nnot json', "line 2 is not JSON"),
    ("not packed", "x.jsonl.gz", b"\x1f\x8bplain", "not compressed with gzip"),
    ("packed and cut off", "x.jsonl.gz", gzip.compress(b"x" * 100)[:-10], "cut off"),
    ("no object", "x.jsonl", b"[1]", "not a golden case: an object with a name is wanted"),
    ("a field missing", "x.jsonl", b'{"name": "a", "expected": {}}', "golden case a: field 'objects' is missing"),
    (
        "no list",
        "x.jsonl",
        b'{"name": "a", "expected": {"results": []}, "objects": 5, "pods": []}',
        "golden case a: field 'objects': a list of objects is wanted",
    ),
    (
        "too few results",
        "x.jsonl",
        b'{"name": "a", "expected": {"results": []}, "objects": [], "pods": [{}]}',
        "golden case a: field 'expected': one result is wanted for each of 1 pods",
    ),
]


@pytest.mark.parametrize(("name", "content", "text"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN])
def test_a_broken_file_is_told_in_one_line(tmp_path: Path, name: str, content: bytes, text: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SchedulerError) as error:
        for _, case in read_cases([tmp_path / name]):
            if isinstance(case, list) or "expected" in case:
                run_case(case)
    assert text in str(error.value)
    assert "\n" not in str(error.value)
