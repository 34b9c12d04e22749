"""SIGUSR2's comparer and dump: what differs from the watches is named, and everything that is believed is shown."""

from __future__ import annotations

import logging

import msgspec
import pytest

from kubesched.kube.api.pod import PodStatus
from kubesched.scheduler import config
from kubesched.scheduler.engine.arrivals.inbox import Changed
from kubesched.scheduler.engine.assembly import assemble, default_configuration
from kubesched.scheduler.engine.cache_debugger import Mismatch, compare, debug, debug_later, dump_nodes, dump_queue
from kubesched.scheduler.engine.loop import Engine
from kubesched.testing.builders import node, pod


@pytest.fixture
def engine() -> Engine:
    gates = config.Gates.defaults()
    return assemble(default_configuration(gates), gates)


NODES = [node("a"), node("b", offers={"example.com/gpu": "2"})]
PLACED = [pod("p1", requests={"cpu": "500m", "memory": "1Gi"}, on="a"), pod("p2", requests={"example.com/gpu": "1"}, on="b")]
PENDING = [pod("p3")]


def fill(engine: Engine) -> None:
    for one in (*NODES, *PLACED, *PENDING):
        engine.intake.apply(type(one).__name__, None, one)


def test_what_was_taken_in_differs_in_nothing(engine: Engine) -> None:
    fill(engine)
    assert compare(engine, NODES, [*PLACED, *PENDING]) == Mismatch()


def test_differences_are_named(engine: Engine) -> None:
    fill(engine)
    other = pod("other", scheduler="somebody-else")
    over = msgspec.structs.replace(pod("over"), status=PodStatus(phase="Succeeded"))
    found = compare(engine, [NODES[0], node("c")], [PLACED[0], other, over])
    assert found == Mismatch(
        ("c",), ("b",), (other.metadata.uid,), tuple(sorted(one.metadata.uid for one in (PLACED[1], PENDING[0])))
    )


def test_the_dump_shows_nodes_their_pods_and_nodes_that_are_gone(engine: Engine) -> None:
    fill(engine)
    engine.intake.apply("Node", NODES[0], None)
    b, a = dump_nodes(engine)
    assert b == (
        "Node name: b\nDeleted: false\n"
        "Requested Resources: &{MilliCPU:0 Memory:0 EphemeralStorage:0 AllowedPodNumber:0 "
        "ScalarResources:map[example.com/gpu:1]}\n"
        "Allocatable Resources:&{MilliCPU:4000 Memory:34359738368 EphemeralStorage:0 AllowedPodNumber:110 "
        "ScalarResources:map[example.com/gpu:2]}\n"
        "Scheduled Pods(number: 1):\n"
        f"name: p2, namespace: default, uid: {PLACED[1].metadata.uid}, phase: , nominated node: \n"
    )
    assert a.startswith("Node name: a\nDeleted: true\n") and "name: p1, namespace: default" in a


def test_nominated_pods_are_shown_with_their_node(engine: Engine) -> None:
    fill(engine)
    engine.intake.apply("Pod", None, pod("p4", nominated="a"))
    first = next(iter(dump_nodes(engine)))
    assert "Nominated Pods(number: 1):\nname: p4, namespace: default" in first


def test_the_queue_is_summed_up_and_listed(engine: Engine) -> None:
    fill(engine)
    engine.intake.apply("Pod", None, pod("gated", gates=["wait"]))
    summary, lines = dump_queue(engine)
    assert summary == "activeQ:1; backoffQ:0; unschedulablePods:1"
    assert [line.split(",")[0] for line in lines] == ["name: p3", "name: gated"]


def test_only_a_mismatch_is_logged_as_one(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    fill(engine)
    caplog.set_level(logging.INFO)
    debug(engine, NODES, [*PLACED, *PENDING])
    assert [record.getMessage() for record in caplog.records] == ["Dump of cached NodeInfo", "Dump of scheduling queue"]
    caplog.clear()
    debug(engine, [], [])
    assert [record.getMessage() for record in caplog.records][:2] == ["Cache mismatch", "Cache mismatch"]


def test_what_is_still_in_the_inbox_is_no_mismatch(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    debug_later(engine, lambda: NODES, lambda: [*PLACED, *PENDING])
    for one in (*NODES, *PLACED, *PENDING):
        engine.inbox.post(Changed(type(one).__name__, None, one))
    engine.take_in()
    messages = [record.getMessage() for record in caplog.records]
    assert "Dump of cached NodeInfo" in messages
    assert "Cache mismatch" not in messages
