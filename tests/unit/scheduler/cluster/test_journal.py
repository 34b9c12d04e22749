"""The journal: which changes are written down, and when it is too late to ask."""

from __future__ import annotations

import msgspec
import pytest

from kubesched.kube.api.node import Node
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.cluster.journal import ALLOCATABLE, NODE, SPEC, STARTED, USAGE, Change
from kubesched.testing import node, pod, taint

OLD = node("a", labels={"disk": "ssd"})
WRITTEN: list[tuple[str, Node, int, set[str]]] = [
    (
        "nothing that a decision reads",
        msgspec.structs.replace(OLD, metadata=msgspec.structs.replace(OLD.metadata, annotations={"note": "x"})),
        0,
        set(),
    ),
    ("what it offers", node("a", cpu="8", labels={"disk": "ssd"}), ALLOCATABLE, set()),
    ("a label's value", node("a", labels={"disk": "hdd"}), NODE, {"disk"}),
    ("a label more", node("a", labels={"disk": "ssd", "zone": "z"}), NODE, {"zone"}),
    ("a label less", node("a"), NODE, {"disk"}),
    ("a taint", node("a", labels={"disk": "ssd"}, taints=[taint("gpu")]), NODE | SPEC, set()),
    ("the cordon", node("a", labels={"disk": "ssd"}, cordoned=True), NODE | SPEC, set()),
    ("an image", node("a", labels={"disk": "ssd"}, images={"app": 5}), NODE, set()),
    ("a feature", node("a", labels={"disk": "ssd"}, features=["UserNamespacesHostNetworkSupport"]), NODE, set()),
    ("a feature that nobody knows", node("a", labels={"disk": "ssd"}, features=["Tomorrow"]), 0, set()),
    ("an offer and a label", node("a", cpu="8"), ALLOCATABLE | NODE, {"disk"}),
]


@pytest.mark.parametrize(("new", "what", "labels"), [w[1:] for w in WRITTEN], ids=[w[0] for w in WRITTEN])
def test_a_changed_node_is_written_down_as_far_as_it_matters(new: Node, what: int, labels: set[str]) -> None:
    store = Store()
    store.put_node(OLD)
    before = store.journal.end
    store.put_node(new)
    assert store.journal.since(before) == ([Change(0, what, labels=frozenset(labels))] if what else [])


def test_pods_that_come_and_go_are_written_down_with_their_sign() -> None:
    store = Store()
    store.put_node(node("a"))
    before = store.journal.end
    placed = store.put_pod(pod("web", on="a"))
    store.remove_pod(placed.uid)
    assert store.journal.since(before) == [Change(0, USAGE, placed, 1), Change(0, USAGE, placed, -1)]


def test_a_pod_that_only_started_is_written_down_as_such() -> None:
    store = Store()
    store.put_node(node("a"))
    store.put_pod(pod("web", on="a"))
    before = store.journal.end
    store.put_pod(pod("web", on="a", start_time="2026-01-01T00:00:00Z"))
    assert store.journal.since(before) == [Change(0, STARTED)]


def test_a_node_more_or_less_makes_everybody_start_afresh() -> None:
    store = Store()
    store.put_node(node("a"))
    before, structure = store.journal.end, store.structure
    store.put_node(node("b"))
    assert store.journal.since(before) is None
    assert store.structure == structure + 1
    before = store.journal.end
    store.remove_node("b")
    assert store.journal.since(before) is None
