"""A node imagined as numbers says the same as the what-if that it stands for, whatever is asked."""

from __future__ import annotations

import inspect

import pytest

from kubesched.cluster import CPU, MEMORY, Store
from kubesched.framework.lifting import NodeView
from kubesched.framework.onenode import ImaginedNode
from kubesched.framework.whatif import WhatIf
from kubesched.testing import node, pod

QUESTIONS = sorted(
    name
    for name, value in vars(NodeView).items()
    if not name.startswith("_") and (isinstance(value, property) or inspect.isfunction(value))
)


@pytest.fixture
def store() -> Store:
    store = Store()
    store.put_node(node("n0"))
    store.put_node(node("n1", cpu="3", pods=5, offers={"example.com/gpu": "4"}))
    for name, asked in (("a", {"cpu": "1"}), ("b", {"memory": "1Gi"}), ("c", {"example.com/gpu": "2"})):
        store.put_pod(pod(name, on="n1", requests=asked, priority=1))
    return store


def test_every_question_about_a_node_is_covered():
    assert QUESTIONS == [
        "allocatable",
        "counted_usage",
        "free",
        "free_pods",
        "labels",
        "name",
        "node",
        "non_zero_requested",
        "pods",
        "requested",
        "taints",
        "usage",
    ]


@pytest.mark.parametrize("question", QUESTIONS)
def test_it_answers_like_a_what_if(store: Store, question: str):
    nodes = store.snapshot()
    row = nodes.row("n1")
    here = {view.name: view for view in nodes.pods_on(row)}
    come = store.view(pod("new", requests={"cpu": "500m", "example.com/gpu": "1"}))
    imagined, truth = ImaginedNode(nodes, row), WhatIf.of(nodes, [row])
    for view, sign in ((here["a"], -1), (here["c"], -1), (come, 1), (here["a"], 1), (here["b"], -1)):
        imagined.move(view, sign)
        if sign > 0:
            truth.add(view, 0)
        else:
            truth.remove(view, 0)
        answers = [
            ask(view_of, question, nodes.resource("example.com/gpu"))
            for view_of in (imagined, imagined.copy(), NodeView(truth, 0))
        ]
        assert answers[0] == answers[1] == answers[2]
    assert NodeView(nodes, row).requested("cpu") == 1000, "the cluster itself is not touched"


def ask(view: NodeView, question: str, gpu: int) -> object:
    asked = getattr(view, question)
    if not callable(asked):
        return [other.name for other in asked] if question == "pods" else asked
    by_name = question in ("allocatable", "requested", "non_zero_requested", "free")
    return [asked(resource) for resource in ((CPU, MEMORY, gpu, *(("cpu", "nobody/knows") if by_name else ())))]
