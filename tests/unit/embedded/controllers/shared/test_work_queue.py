"""The queue of the controllers' work."""

from __future__ import annotations

import errno

import pytest

from kubesched.embedded import ManualClock
from kubesched.embedded.controllers.shared.work_queue import Worker
from kubesched.errors import ApiError


def test_a_key_that_breaks_its_controller_costs_the_others_nothing() -> None:
    clock, seen = ManualClock(), []

    def reconcile(key: str) -> None:
        seen.append(key)
        if key == "bad" and seen.count("bad") == 1:
            raise KeyError("port")

    work = Worker(clock, "things", reconcile)
    for key in ("bad", "good", "better"):
        work.add(key)
    with pytest.raises(KeyError):  # loud: whoever runs the clock hears of it
        clock.advance(0.01)
    clock.advance(1)
    assert seen == ["bad", "good", "better", "bad"]


@pytest.mark.parametrize("refusal", [ApiError(500, "InternalError", "no"), OSError(errno.ENOSPC, "No space left on device")])
def test_what_the_api_or_its_disk_refuses_is_tried_again_without_a_word(refusal: Exception) -> None:
    clock, done, refusals = ManualClock(), [], [refusal]

    def reconcile(key: str) -> None:
        if key == "a" and refusals:
            raise refusals.pop()
        done.append(key)

    worker = Worker(clock, "things", reconcile)
    worker.add("a")
    worker.add("b")
    clock.advance(0.01)
    assert done == ["b"]
    clock.advance(1.0)
    assert done == ["b", "a"]
