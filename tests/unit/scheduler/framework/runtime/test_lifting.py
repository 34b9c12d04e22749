"""Plugins written for one node at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from framework_fakes import profile_of, small_store

from kubesched.errors import PluginError
from kubesched.scheduler.cluster import CPU, Store
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework import CycleState, NodeView, Plugin, Reason
from kubesched.scheduler.framework.verdicts import SUCCESS, Status, failed, unresolvable, unschedulable
from kubesched.testing import node, pod, taint


def lifted(answers: dict[str, Any]) -> dict[str, Status]:
    """Return the verdicts of a plugin that answers with these, node by node."""

    class Scalar(Plugin):
        def filter_node(self, pod: Any, node: NodeView, state: CycleState) -> Any:
            return answers[node.name]

    store = small_store(*answers)
    plugin = Scalar(None, EngineHandle(store.objects))
    verdicts = profile_of(plugin).filter_one(plugin, store.view(pod()), store.snapshot(), CycleState())
    return {name: verdicts.status(row) for row, name in enumerate(store.snapshot().names)}


def test_an_answer_may_be_nothing_a_text_a_status_or_reasons() -> None:
    assert lifted(
        {
            "a": None,
            "b": "too small",
            "c": unresolvable("never", "ever"),
            "d": SUCCESS,
            "e": (Reason("x"), Reason("y", resolvable=False)),
        }
    ) == {
        "a": SUCCESS,
        "b": unschedulable("too small"),
        "c": unresolvable("never", "ever"),
        "d": SUCCESS,
        "e": unresolvable("x", "y"),
    }


def test_an_error_names_the_plugin() -> None:
    with pytest.raises(PluginError, match='running "Scalar" filter plugin: no answer'):
        lifted({"a": failed("no answer")})


def test_scores_are_asked_for_feasible_nodes_only() -> None:
    asked = []

    class Scalar(Plugin):
        def score_node(self, pod: Any, node: NodeView, state: CycleState) -> int:
            asked.append(node.name)
            return len(asked)

    store = small_store("a", "b", "c")
    plugin = Scalar(None, EngineHandle(store.objects))
    column = profile_of(plugin).raw_score(
        plugin, store.view(pod()), store.snapshot(), np.array([True, False, True]), CycleState()
    )
    assert column.tolist() == [1, 0, 2]
    assert asked == ["a", "c"]


def test_a_node_is_shown_with_its_numbers_by_name_or_number() -> None:
    store = Store()
    store.put_node(node("a", cpu="2", pods=3, labels={"disk": "ssd"}, taints=[taint("gpu")], offers={"x.y/z": "5"}))
    store.put_pod(pod("web", on="a", requests={"cpu": "500m", "x.y/z": "2"}))
    store.put_pod(pod("idle", on="a"))
    view = NodeView(store.snapshot(), 0)
    assert (view.name, view.labels["disk"], view.taints[0].key) == ("a", "ssd", "gpu")
    assert [p.name for p in view.pods] == ["web", "idle"]
    assert (view.allocatable("cpu"), view.requested(CPU), view.free("cpu")) == (2000, 500, 1500)
    assert view.non_zero_requested("cpu") == 600
    assert (view.free("x.y/z"), view.free("nobody/knows")) == (3, 0)
    assert view.free_pods == 1
