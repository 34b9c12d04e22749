"""SchedulingGates, PrioritySort and DefaultBinder: the plugins that look at no node."""

from __future__ import annotations

import pytest

from kubesched.errors import Conflict
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework import CycleState
from kubesched.scheduler.framework.verdicts import failed, unresolvable
from kubesched.scheduler.plugins import DefaultBinder, PrioritySort, SchedulingGates
from kubesched.testing import FakeWriter, pod


def test_gates_are_named_in_their_order() -> None:
    store = Store()
    plugin = SchedulingGates(None, EngineHandle(store.objects))
    assert plugin.pre_enqueue(store.view(pod())) is None
    assert plugin.pre_enqueue(store.view(pod(gates=["g2", "g1"]))) == unresolvable("waiting for scheduling gates: [g2 g1]")


@pytest.mark.parametrize(
    ("sentence", "first", "second"),
    [
        ("the higher priority first", (10, 5.0), (1, 1.0)),
        ("among equals the one that waited longer", (1, 1.0), (1, 2.0)),
        ("no priority is zero", (1, 9.0), (None, 1.0)),
        ("which is above a negative one", (None, 9.0), (-1, 1.0)),
    ],
)
def test_pods_are_sorted_by_priority_and_age(
    sentence: str, first: tuple[int | None, float], second: tuple[int | None, float]
) -> None:
    store = Store()
    plugin = PrioritySort(None, EngineHandle(store.objects))
    keys = [plugin.sort_key(store.view(pod(priority=priority)), queued_at) for priority, queued_at in (first, second)]
    assert keys[0] < keys[1], sentence


async def test_a_binding_is_written_and_a_refusal_is_an_error() -> None:
    store = Store()
    writer = FakeWriter()
    plugin = DefaultBinder(None, EngineHandle(store.objects, writer=writer))
    assert await plugin.bind(store.view(pod("web")), "a", CycleState()) is None
    assert writer.calls == [("bind", "web", "a")]
    writer.failures = [Conflict(409, "Conflict", 'pod web is already assigned to node "b"')]
    assert await plugin.bind(store.view(pod("web")), "a", CycleState()) == failed('pod web is already assigned to node "b"')
