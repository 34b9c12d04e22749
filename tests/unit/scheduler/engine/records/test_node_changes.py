"""What changed about nodes is told in words, with its time, and nothing that no decision reads."""

from typing import Any

import msgspec
import pytest

from kubesched.kube.api.node import Node, NodeCondition
from kubesched.scheduler.engine.records.node_changes import NodeChanges
from kubesched.testing import node
from kubesched.testing.builders import taint


def conditions(made: Node, ready: str, heartbeat: str = "") -> Node:
    said = NodeCondition(type="Ready", status=ready, last_heartbeat_time=heartbeat or None)
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, conditions=(said,)))


CHANGES: list[tuple[str, Node | None, Node | None, list[str]]] = [
    ("one that came", None, node("a"), ["added"]),
    ("one that went", node("a"), None, ["removed"]),
    ("cordoned", node("a"), node("a", cordoned=True), ["cordoned"]),
    ("uncordoned", node("a", cordoned=True), node("a"), ["uncordoned"]),
    ("not ready", conditions(node("a"), "True"), conditions(node("a"), "Unknown"), ["is not ready"]),
    ("ready", conditions(node("a"), "False"), conditions(node("a"), "True"), ["became ready"]),
    ("a heartbeat", conditions(node("a"), "True", "t1"), conditions(node("a"), "True", "t2"), []),
    (
        "taints",
        node("a", taints=[taint("old")]),
        node("a", taints=[taint("gpu")]),
        ["taint gpu:NoSchedule added", "taint old:NoSchedule removed"],
    ),
    ("a label", node("a", labels={"tier": "x"}), node("a", labels={"tier": "y"}), ["label tier x → y"]),
    ("an amount", node("a", cpu="4"), node("a", cpu="8"), ["cpu 4 → 8"]),
    ("an amount written otherwise", node("a", cpu="4"), node("a", cpu="4000m"), []),
]


@pytest.mark.parametrize(("old", "new", "texts"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES])
def test_what_changed(old: Node | None, new: Node | None, texts: list[str]) -> None:
    changes = NodeChanges()
    changes.take(old, new, 1.0)
    assert [(change.node, change.text) for change in changes.between(0.0, 2.0)] == [("a", text) for text in reversed(texts)]


def test_the_last_are_kept_and_told_newest_first() -> None:
    changes = NodeChanges(most=3)
    for i in range(5):
        changes.take(None, node(f"n{i}"), float(i))
    found: list[Any] = [(change.at, change.node) for change in changes.between(0.0, 3.0)]
    assert found == [(3.0, "n3"), (2.0, "n2")]
    assert [change.at for change in changes.between(0.0, 9.0)] == [4.0, 3.0, 2.0]


def test_what_is_the_same_in_both_versions_is_not_kept() -> None:
    changes = NodeChanges()
    labels = {f"label-{i}": "x" for i in range(20)}
    changes.take(node("a", labels=labels), node("a", labels=labels, cordoned=True), 1.0)
    changes.take(node("a", labels=labels), node("a", labels={**labels, "label-7": "y"}), 2.0)
    changes.take(None, node("a", labels=labels), 3.0)
    kept = [facts for _, _, *versions in changes._changes for facts in versions if facts is not None]
    assert [dict(facts.labels) for facts in kept] == [{}, {}, {"label-7": "x"}, {"label-7": "y"}, {}]
    assert not any(facts.allocatable for facts in kept)
