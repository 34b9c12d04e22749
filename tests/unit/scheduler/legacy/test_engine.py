"""A legacy scheduler in the ordinary engine: queue, loop, messages, turns."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from legacy_clusters import node, pod

from kubesched.kube.api import codec
from kubesched.scheduler import config
from kubesched.scheduler.engine.assembly import EngineOptions, Ports, assemble, default_configuration, new_handle, queue_options
from kubesched.scheduler.engine.deciding.extenders import Poster
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.legacy import (
    Algorithm,
    ComponentConfig,
    LegacyScheduler,
    load_policy,
    profile_from_policy,
    profile_from_provider,
    release_of,
    ties_of,
)
from kubesched.testing import FakeClock, FakeRecorder


class Answering:
    """An extender that gives these answers one after the other, the last one for ever."""

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        self._answers = answers

    def post(self, url: str, body: bytes, extender: Any) -> bytes:
        return json.dumps(self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]).encode()


def engine_of(
    version: str,
    objects: list[dict[str, Any]],
    policy: str = "",
    clock: FakeClock | None = None,
    poster: Poster | None = None,
) -> tuple[Engine, FakeRecorder, list[str]]:
    gates, recorder, release = config.Gates.defaults(), FakeRecorder(), release_of(version)
    world = LegacyScheduler(release, ComponentConfig().defaulted(release))
    configuration = world.over(default_configuration(gates))
    ports = Ports(recorder=recorder, ties=ties_of(release), clock=clock or FakeClock(), poster=poster)
    store, handle = new_handle(gates, ports)
    algorithm: Algorithm = (
        profile_from_policy(load_policy(policy, version), handle, version)
        if policy
        else profile_from_provider("", handle, version)
    )
    profiles = {algorithm.profile.name: algorithm.profile}
    engine = assemble(
        replace(configuration, extenders=algorithm.extenders),
        gates,
        ports,
        profiles=profiles,
        prepared=(store, handle),
        options=EngineOptions(remembers=False),
        queue_as=world.queueing(queue_options(configuration, gates)),
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


def tried_at(version: str, seconds: int) -> list[int]:
    """Return the seconds in which a pod that fits nowhere is tried while nothing happens."""
    clock = FakeClock()
    engine, _, _ = engine_of(version, [node("a"), waiting("big", requests={"cpu": "9"})], clock=clock)
    tried = []
    for second in range(seconds):
        engine.queue.flush_backoff(clock.now())
        tried += [second] * sum(1 for _ in iter(engine.step, False))
        clock.time += 1.0
    return tried


def test_up_to_1_6_a_refused_pod_is_tried_again_after_its_pause_whether_or_not_anything_happened() -> None:
    """1, 2, 4, ... 60 seconds, and up to one more as the queue looks once a second."""
    assert tried_at("1.6", 270) == [0, 2, 5, 10, 19, 36, 69, 130, 191, 252]
    assert tried_at("1.4", 8) == [0, 2, 5]


def test_up_to_1_6_an_extender_that_lets_a_pod_pass_meanwhile_is_asked_again_after_the_pause() -> None:
    """No watch tells that an extender changed its mind. Its refusals and its errors double one and the same pause."""
    policy = json.dumps(
        {
            "kind": "Policy",
            "apiVersion": "v1",
            "predicates": [],
            "priorities": [],
            "extenders": [{"urlPrefix": "http://extender", "filterVerb": "filter"}],
        }
    )
    refuses, breaks = {"nodes": {"items": []}, "failedNodes": {"a": "no licence"}}, {"error": "no answer"}
    passes = {"nodes": {"items": [node("a")]}}
    for version in ("1.4", "1.6"):
        clock = FakeClock()
        poster = Answering([refuses, refuses, breaks, passes])
        engine, recorder, placed = engine_of(version, [node("a"), waiting("licensed")], policy, clock, poster)
        tried = []
        for second in range(20):
            engine.queue.flush_backoff(clock.now())
            tried += [second] * sum(1 for _ in iter(engine.step, False))
            clock.time += 1.0
        assert tried == [0, 2, 5, 10] and placed == ["licensed on a"]
        assert [event.reason for event in recorder.events] == ["FailedScheduling"] * 3


@pytest.mark.parametrize("version", ["1.13", "1.17"])
def test_later_a_refused_pod_waits_for_something_to_happen(version: str) -> None:
    assert tried_at(version, 50) == [0]


OWN_CHANGES: list[tuple[str, dict[str, Any], bool]] = [
    (
        "its condition",
        {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}},
        False,
    ),
    ("a number of its version", {"metadata": {"generation": 7}}, False),
    ("who wrote its condition", {"metadata": {"managedFields": [{"manager": "kube-scheduler"}]}}, False),
    ("a label", {"metadata": {"labels": {"a": "b"}}}, True),
    ("a toleration", {"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}, True),
]


@pytest.mark.parametrize(("what", "change", "wakes"), OWN_CHANGES, ids=[case[0] for case in OWN_CHANGES])
@pytest.mark.parametrize("version", ["1.6", "1.13", "1.17"])
def test_a_pod_is_not_woken_by_its_own_status(version: str, what: str, change: dict[str, Any], wakes: bool) -> None:
    """One attempt and one event. 1.17 read managedFields, which its own status patch changes: two attempts, two events."""
    engine, recorder, _ = engine_of(version, [node("a")])
    raw = waiting("big", requests={"cpu": "9"})
    raw["metadata"]["resourceVersion"] = "1"
    before = codec.decode(raw)
    engine.intake.apply("Pod", None, before)
    assert engine.step() and not engine.step()
    for name, fields in {**change, "metadata": {**change.get("metadata", {}), "resourceVersion": "2"}}.items():
        raw[name] = {**raw.get(name, {}), **fields}
    engine.intake.apply("Pod", before, codec.decode(raw))
    assert engine.step() is wakes
    assert len(recorder.events) == 1 + wakes
