"""Which pods are tried: not those that are being deleted, and at once those that a plugin activates."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from kubesched.scheduler import config
from kubesched.scheduler.engine.acting.bookings import PODS_TO_ACTIVATE
from kubesched.scheduler.engine.assembly import Ports, assemble, registry_with
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.framework import CycleState, Plugin, Status
from kubesched.scheduler.framework.runtime.building import catalogue
from kubesched.testing import FakeClock, FakeRecorder, node, pod


def engine_with(*plugins: type[Plugin]) -> tuple[Engine, FakeRecorder, list[str]]:
    """Return an engine, its events, and the names of the pods that it places."""
    gates, registry, recorder = config.Gates.defaults(), registry_with(plugins), FakeRecorder()
    text = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"reserve": {"enabled": [{"name": cls.name} for cls in plugins]}}}],
    }
    configuration = config.load(json.dumps(text), gates=gates, registry=catalogue(registry))
    engine = assemble(configuration, gates, Ports(clock=FakeClock(), recorder=recorder), registry=registry)
    placed: list[str] = []
    engine.bookings.hand_over = lambda placement: placed.append(placement.booked.name)
    engine.failures.writes = False
    return engine, recorder, placed


def test_a_pod_that_is_being_deleted_is_not_tried() -> None:
    engine, recorder, placed = engine_with()
    engine.intake.apply("Node", None, node("n"))
    leaving = pod("leaving")
    metadata = msgspec.structs.replace(leaving.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    engine.intake.apply("Pod", None, msgspec.structs.replace(leaving, metadata=metadata))
    assert not engine.step() and placed == []
    assert [(event.reason, event.note) for event in recorder.events] == [
        ("FailedScheduling", f"skip schedule deleting pod: {leaving.metadata.namespace}/leaving")
    ]
    assert engine.queue.n_in_flight == 0


class Wakes(Plugin):
    """Has the pod `waiting` tried again when another pod got a node."""

    waiting: Any = None

    def reserve(self, pod: Any, node_name: str, state: CycleState) -> Status | None:
        state.write(PODS_TO_ACTIVATE, {self.waiting.key: self.waiting})
        return None


def test_a_plugin_activates_pods_when_its_pod_got_a_node() -> None:
    engine, recorder, placed = engine_with(Wakes)
    engine.intake.apply("Node", None, node("n", cpu="4"))
    engine.intake.apply("Pod", None, pod("waiting", requests={"cpu": "9"}))
    assert engine.step() and not engine.step()
    [waiting] = engine.queue
    assert engine.queue.place_of(waiting.key) == "unschedulable"
    Wakes.waiting = waiting.view
    engine.intake.apply("Pod", None, pod("other"))
    assert engine.step() and placed == ["other"]
    assert engine.step() and len(recorder.events) == 2  # at once, without an event that could help it
