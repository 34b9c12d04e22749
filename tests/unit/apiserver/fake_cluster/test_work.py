"""The queue of the controllers' work."""

from __future__ import annotations

import pytest

from kubesched.apiserver import ManualClock
from kubesched.apiserver.fake_cluster.work import Worker


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
