"""Node selectors over columns say what the scalar ones say, term by term and node by node."""

from __future__ import annotations

from random import Random

import pytest
from oracles.fuzzer import Fuzzer

from kubesched.kube.api import codec, matching
from kubesched.kube.api.node import Node, NodeSelector
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.selectors import EVERYTHING, NOTHING
from kubesched.scheduler.cluster import Snapshot, Store
from kubesched.scheduler.cluster.selection import match_node_selector, match_required, match_requirement, match_selector
from kubesched.testing import node


def snapshot(*nodes: Node) -> Snapshot:
    store = Store()
    for one in nodes:
        store.put_node(one)
    return store.snapshot()


@pytest.mark.parametrize("seed", range(30))
def test_columns_agree_with_the_scalar_truth(seed: int) -> None:
    wild = Fuzzer(Random(seed), "nodes")
    wild.unreadable = 0.05
    nodes = [codec.convert(wild.node(f"n{i}"), Node) for i in range(8)]
    whole = snapshot(*nodes)
    views = [whole, whole.take([6, 0, 3])]
    for turn in range(10):
        raw = {"nodeSelectorTerms": [wild.node_term() for _ in range(wild.one(0, 1, 2, 3))]}
        selector = matching.compile_node_selector(codec.convert(raw, NodeSelector))
        pod = codec.convert(wild.pod(f"p{turn}"), Pod)
        required = matching.compile_required_node_affinity(pod)
        for view in views:
            rows = [view.node(row) for row in range(view.n)]
            assert match_node_selector(selector, view).tolist() == [
                selector.matches(n.metadata.name, n.metadata.labels) for n in rows
            ], raw
            assert match_required(required, view).tolist() == [
                required.matches(n.metadata.name, n.metadata.labels) for n in rows
            ], pod.spec


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ("ssd",), [True, False, False]),
        ("In", ("",), [False, True, False]),
        ("NotIn", ("ssd",), [False, True, True]),
        ("Exists", (), [True, True, False]),
        ("DoesNotExist", (), [False, False, True]),
        ("In", ("never seen",), [False, False, False]),
    ],
)
def test_a_label_with_an_empty_value_is_not_an_absent_one(operator: str, values: tuple[str, ...], expected: list[bool]) -> None:
    nodes = snapshot(node("a", labels={"disk": "ssd"}), node("b", labels={"disk": ""}), node("c"))
    assert match_requirement(matching.Requirement("disk", operator, values), nodes).tolist() == expected


def test_a_key_that_no_node_ever_had_is_absent_everywhere() -> None:
    nodes = snapshot(node("a"), node("b"))
    assert match_requirement(matching.Requirement("nowhere", "NotIn", ("x",)), nodes).all()
    assert not match_requirement(matching.Requirement("nowhere", "Exists"), nodes).any()


def test_the_special_selectors_match_all_and_none() -> None:
    nodes = snapshot(node("a"), node("b"))
    assert match_selector(EVERYTHING, nodes).all()
    assert not match_selector(NOTHING, nodes).any()


def test_a_value_that_a_node_no_longer_has_does_not_match_it() -> None:
    store = Store()
    store.put_node(node("a", labels={"disk": "ssd"}))
    store.put_node(node("a"))
    assert not match_requirement(matching.Requirement("disk", "In", ("ssd",)), store.snapshot()).any()
