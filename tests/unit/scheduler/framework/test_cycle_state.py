"""What an attempt remembers, and what it may not disturb."""

from __future__ import annotations

import pytest

from kubesched.scheduler.framework import CycleState
from kubesched.scheduler.framework.cycle_state import StateMissing


class Count:
    def __init__(self, n: int) -> None:
        self.n = n

    def clone(self) -> Count:
        return Count(self.n)


def test_what_was_not_written_is_missing_in_the_words_of_the_reference() -> None:
    with pytest.raises(StateMissing) as error:
        CycleState().read("PreFilterNodeResourcesFit")
    assert str(error.value) == 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'
    assert CycleState().find("x") is None


def test_reads_fall_through_and_writes_stay_on_top() -> None:
    base = CycleState()
    base.write("x", 1)
    top = CycleState(base)
    assert top.read("x") == 1
    top.write("x", 2)
    assert (top.read("x"), base.read("x")) == (2, 1)


def test_a_value_is_made_once() -> None:
    state, made = CycleState(), []
    for _ in range(2):
        assert state.get("x", lambda: made.append(1) or "made") == "made"
    assert made == [1]


def test_a_clone_can_be_changed_alone() -> None:
    base = CycleState()
    base.write("deep", Count(1))
    state = CycleState(base)
    state.write("own", Count(1))
    state.skip_filter |= {"A"}
    copy = state.clone()
    copy.read("own").n = copy.read("deep").n = 5
    copy.skip_filter |= {"B"}
    assert (state.read("own").n, state.read("deep").n, state.skip_filter) == (1, 1, {"A"})
    assert "A" in copy.skip_filter
