"""Which changes matter to a decision, and which states are looked at."""

from __future__ import annotations

from itertools import islice

import msgspec
import pytest

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.simulator.shadow.history import Change
from kubesched.simulator.shadow.races import MOST_STATES, Moment, matters, surroundings
from kubesched.testing import node, pod, taint

PLACED = pod("p", on="n1", requests={"cpu": "1"})
RUNNING = msgspec.structs.replace(PLACED, status=msgspec.structs.replace(PLACED.status, phase="Running"))
HEARTBEAT = msgspec.structs.replace(node("n1"), status=msgspec.structs.replace(node("n1").status, conditions=()))


@pytest.mark.parametrize(
    ("old", "new", "is_of_concern"),
    [
        (PLACED, None, True),
        (None, PLACED, True),
        (PLACED, RUNNING, False),
        (PLACED, pod("p", on="n1", labels={"app": "x"}, requests={"cpu": "1"}), True),
        (PLACED, pod("p", on="n1", requests={"cpu": "1"}, deleted_at="2026-01-01T00:00:00Z"), True),
        (None, pod("waits"), False),
        (pod("waits"), None, False),
        (node("n1"), HEARTBEAT, False),
        (node("n1"), node("n1", cordoned=True), True),
        (node("n1"), node("n1", taints=[taint("gpu")]), True),
        (node("n1"), node("n1", cpu="8"), True),
        (node("n1"), None, True),
    ],
)
def test_what_matters(old: Pod | Node | None, new: Pod | Node | None, is_of_concern: bool) -> None:
    assert matters(Change(0.0, (old or new).kind, old, new)) is is_of_concern  # type: ignore[union-attr]


def placement(number: int, at: float) -> Change:
    waiting = pod(f"p{number}")
    return Change(at, "Pod", waiting, pod(f"p{number}", on="n1"))


def test_states_are_bounded_and_begin_with_the_nearest_placements() -> None:
    changes = [
        change
        for number in range(200)
        for change in (placement(number, number / 100), Change(number / 100, "Pod", pod(f"x{number}", on="n1"), None))
    ]
    around = surroundings(
        enumerate(changes), pod("p100"), 200, {200}, names={"default-scheduler"}, seconds=0.5, at=changes[200].at
    )
    assert around.own_before[:2] == [198, 196] and around.own_after[:2] == [202, 204]
    assert around.others_before[:2] == [199, 197] and around.others_after == []
    assert min(around.own_before) >= 100 and max(around.own_after) <= 300, "within half a second"
    moments = list(islice(around.moments(), MOST_STATES))
    assert moments[:2] == [Moment(200, 203), Moment(200, 205)]
    assert len(moments) == len(set(moments)) <= MOST_STATES
    assert around.words_for(Moment(200, 205)) == "with 2 of its placements that arrived later"
    assert around.words_for(Moment(195, 196)) == "without 2 of its placements that arrived earlier, before 3 changes by others"
    assert around.words_for(Moment(200, 200, frozenset({196}))) == "without 1 of its placements that arrived earlier"


@pytest.mark.parametrize(
    ("moment", "undone"),
    [
        (Moment(4, 4), {4, 5, 6, 7}),
        (Moment(4, 6), {5, 6, 7}),
        (Moment(2, 4), {3, 4, 5, 6, 7}),
        (Moment(4, 2), {2, 4, 5, 6, 7}),
        (Moment(4, 4, frozenset({2, 6})), {2, 4, 5, 7}),
    ],
)
def test_a_state_leaves_out_what_others_did_from_one_change_and_own_placements_from_another(
    moment: Moment, undone: set[int]
) -> None:
    """Even numbers are the scheduler's own."""
    assert {number for number in range(8) if moment.is_undone(number, number % 2 == 0)} == undone
