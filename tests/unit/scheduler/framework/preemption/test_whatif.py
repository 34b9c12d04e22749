"""An imagined node says the same as a real one with the same pods, whatever is asked."""

from __future__ import annotations

import inspect

import pytest

from kubesched.scheduler.cluster import CPU, MEMORY, Store
from kubesched.scheduler.framework.preemption.whatif import WhatIf
from kubesched.scheduler.framework.runtime.lifting import NodeView
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
def test_it_answers_like_a_node_with_these_pods(store: Store, question: str):
    nodes = store.snapshot()
    row = nodes.row("n1")
    here = {view.name: view for view in nodes.pods_on(row)}
    come = store.view(pod("new", on="n1", requests={"cpu": "500m", "example.com/gpu": "1"}))
    imagined, truth = WhatIf.of(nodes, [row]), Store()
    for each in (*nodes.node_objects, *(view.pod for view in here.values())):
        truth.put(each)
    for view, sign in ((here["a"], -1), (here["c"], -1), (come, 1), (here["a"], 1), (here["b"], -1)):
        imagined.move(view, sign)
        if sign > 0:
            truth.put_pod(view.pod)
        else:
            truth.remove_pod(view.uid)
        real = truth.snapshot()
        expected = ask(NodeView(real, real.row("n1")), question)
        assert ask(NodeView(imagined, 0), question) == expected
        assert ask(NodeView(imagined.take([0]), 0), question) == expected
        column = imagined.requested(CPU).tolist(), imagined.non_zero_requested(CPU).tolist(), imagined.pod_count.tolist()
        there = real.take([real.row("n1")])
        assert column == (there.requested(CPU).tolist(), there.non_zero_requested(CPU).tolist(), there.pod_count.tolist())
    assert NodeView(nodes, row).requested("cpu") == 1000, "the cluster itself is not touched"


def ask(view: NodeView, question: str) -> object:
    asked = getattr(view, question)
    if not callable(asked):
        return sorted(other.name for other in asked) if question == "pods" else asked
    gpu = view.nodes.resource("example.com/gpu")
    by_name = question in ("allocatable", "requested", "non_zero_requested", "free")
    return [asked(resource) for resource in ((CPU, MEMORY, gpu, *(("cpu", "nobody/knows") if by_name else ())))]
