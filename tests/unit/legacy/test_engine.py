"""A legacy scheduler in the ordinary engine: queue, loop, messages, turns."""

from __future__ import annotations

from typing import Any

import pytest
from legacy_clusters import node, pod

from kubesched import config
from kubesched.api import codec
from kubesched.engine.assembly import Ports, assemble, default_configuration, new_handle
from kubesched.engine.loop import Engine, EngineOptions
from kubesched.legacy import Algorithm, load_policy, profile_from_policy, profile_from_provider, release_of, ties_of
from kubesched.testing import FakeRecorder


def engine_of(version: str, objects: list[dict[str, Any]], policy: str = "") -> tuple[Engine, FakeRecorder, list[str]]:
    gates, recorder = config.Gates.defaults(), FakeRecorder()
    ports = Ports(recorder=recorder, ties=ties_of(release_of(version)))
    store, handle = new_handle(gates, ports)
    algorithm: Algorithm = (
        profile_from_policy(load_policy(policy, version), handle, version)
        if policy
        else profile_from_provider("", handle, version)
    )
    profiles = {algorithm.profile.name: algorithm.profile}
    engine = assemble(
        default_configuration(gates),
        gates,
        ports,
        profiles=profiles,
        prepared=(store, handle),
        options=EngineOptions(remembers=False),
    )
    placed: list[str] = []
    engine.bookings.hand_over = lambda placement: placed.append(f"{placement.booked.name} on {placement.node_name}")
    engine.failures.writes = False
    for raw in objects:
        engine.intake.apply(raw["kind"], None, codec.decode(raw))
    return engine, recorder, placed


def waiting(name: str, **spec: Any) -> dict[str, Any]:
    raw = pod(name, **spec)
    raw["spec"]["schedulerName"] = "default-scheduler"
    return raw


@pytest.mark.parametrize(
    ("version", "order"),
    [
        ("1.6", ["first on b", "second on a", "third on b"]),
        ("1.13", ["third on a", "first on b", "second on a"]),
    ],
)
def test_pods_go_round_equal_nodes(version: str, order: list[str]) -> None:
    """1.6 knows no priorities of pods, and lists nodes by falling names."""
    policy = '{"kind": "Policy", "apiVersion": "v1", "predicates": [], "priorities": []}'
    engine, _, placed = engine_of(
        version, [node("a"), node("b"), waiting("first"), waiting("second"), waiting("third", priority=9)], policy
    )
    while engine.step():
        pass
    assert placed == order


@pytest.mark.parametrize(
    ("version", "note"),
    [
        ("1.4", "pod (big) failed to fit in any node\nfit failure on node (a): Insufficient cpu\n"),
        ("1.6", "No nodes are available that match all of the following predicates:: Insufficient cpu (1)."),
        ("1.13", "0/1 nodes are available: 1 Insufficient cpu."),
        ("1.17", "0/1 nodes are available: 1 Insufficient cpu."),
    ],
)
def test_people_are_told_in_the_words_of_the_release(version: str, note: str) -> None:
    engine, recorder, placed = engine_of(version, [node("a"), waiting("big", requests={"cpu": "9"})])
    assert engine.step() and not placed
    assert [(event.name, event.note) for event in recorder.events] == [("big", note)]


def test_a_refused_pod_is_tried_again_after_any_event() -> None:
    engine, _, placed = engine_of("1.17", [node("a"), waiting("big", requests={"cpu": "9"})])
    assert engine.step() and not engine.step()
    engine.intake.apply("Node", None, codec.decode(node("b", allocatable={"cpu": "16"})))
    engine.queue.flush_backoff(engine.handle.clock.now() + 60)
    assert engine.step() and placed == ["big on b"]
