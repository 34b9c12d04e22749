"""A pod's story: where it stands, and which plugin's group or gate holds it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubesched.kube.api.pod import Pod
from kubesched.scheduler import config
from kubesched.scheduler.engine.assembly import default_configuration
from kubesched.scheduler.engine.explaining.pod_report import pod_report
from kubesched.scheduler.engine.loop import Engine
from kubesched.testing import node, pod
from kubesched.tools.snapshots.captured import Captured

GATES = config.Gates.defaults()


def engine_with(*objects: Any) -> Engine:
    return Captured(7.5, list(objects)).engine(default_configuration(GATES), GATES)


def story(wanted: Pod, *objects: Any, **how: Any) -> dict[str, Any]:
    engine = engine_with(node("a"), wanted, *objects)
    return pod_report(engine, engine.store.pod(wanted.metadata.uid) or engine.store.view(wanted), **how)


def ended(phase: str) -> Pod:
    return msgspec.structs.replace(pod(), status=msgspec.structs.replace(pod().status, phase=phase))


STATES = [
    ("a pod with a node", pod(on="a"), "placed", True),
    ("a pod with a node of a scheduler that is not here", pod(on="a", scheduler="other"), "placed", False),
    ("a pod without one", pod(), "pending", True),
    ("a pod with gates", pod(gates=["x"]), "gated", True),
    ("a pod that goes", pod(deleted_at="2026-01-01T00:00:00Z"), "leaving", False),
    ("a pod of another scheduler", pod(scheduler="other"), "notOurs", False),
    ("a pod that is done", ended("Succeeded"), "finished", False),
    ("a pod that failed", ended("Failed"), "finished", False),
]


@pytest.mark.parametrize(("sentence", "wanted", "state", "is_explained"), STATES, ids=[case[0] for case in STATES])
def test_where_a_pod_stands(sentence: str, wanted: Pod, state: str, is_explained: bool) -> None:
    found = story(wanted)
    assert (found["state"], "refusals" in found) == (state, is_explained)


def test_a_gate_says_what_it_waits_for() -> None:
    found = story(pod(gates=["wait/for-me"]))
    assert found["gate"] == {"plugin": "SchedulingGates", "text": "waiting for scheduling gates: [wait/for-me]"}
    assert [each["text"] for each in found["wakesOn"]] == ["a pod loses its scheduling gates"]


def test_whether_the_node_would_take_one_more() -> None:
    assert story(pod(on="a"))["nodeNow"] == {"takesOneMore": True, "reasons": ()}
    full = story(pod(on="a", requests={"cpu": "3"}))
    assert full["nodeNow"] == {"takesOneMore": False, "reasons": ("Insufficient cpu",)}


def test_one_more_like_it_has_no_nominated_node() -> None:
    nominated = story(pod(on="a", nominated="b"), node("b"))
    assert nominated["feasibleCount"] == 2


def test_preemption_is_tried_where_it_is_asked_for() -> None:
    low, high = pod("low", on="a", priority=1, requests={"cpu": "4"}), pod("high", priority=9, requests={"cpu": "1"})
    assert "preemption" not in story(high, low)
    assert story(high, low, preempts=True)["preemption"] == {
        "helps": True,
        "node": "a",
        "victimCount": 1,
        "victims": [{"pod": "default/low", "priority": 1}],
        "budgetsBroken": 0,
    }
