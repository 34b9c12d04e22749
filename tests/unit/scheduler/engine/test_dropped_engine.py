"""An engine that is dropped is freed, although Python's cycle collector does not see what its pods hold."""

from __future__ import annotations

import gc
import weakref

import pytest

from kubesched.scheduler.engine import Engine
from kubesched.tools.bench import workloads
from kubesched.tools.bench.engine import Bench, build_engine

KINDS = [kind for kind in workloads.KINDS if kind not in ("churn", "mixed", "gang")]
"""Not gangs: their members wait in tasks and timers of the event loop, which keep the engine."""


def with_pods(kind: str) -> weakref.ref[Engine]:
    """Return a weak reference to an engine with placed, waiting and refused pods of a kind."""
    engine = build_engine(Bench(kind=kind, nodes=5, init=5, pods=8))
    for obj in workloads.cluster(kind, 5, 5, 8):
        engine.intake.apply(obj.kind, None, obj)
    engine.bookings.hand_over = lambda binding: engine.queue.done(binding.booked.uid)
    engine.failures.writes = False
    for pod in workloads.pods(8, kind, 5):
        engine.intake.apply("Pod", None, pod)
    for _ in range(6):
        engine.step()
    assert engine.store.n_pods
    return weakref.ref(engine)


@pytest.mark.parametrize("kind", KINDS)
def test_an_engine_is_freed_with_its_pods(kind: str) -> None:
    engine = with_pods(kind)
    gc.collect()
    assert engine() is None
