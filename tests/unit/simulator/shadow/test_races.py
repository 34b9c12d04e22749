"""Which changes matter to a decision, and which states are looked at."""

from __future__ import annotations

from itertools import islice

import msgspec
import pytest

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.engine.agreement import Agreement, Comparison
from kubesched.simulator.shadow.history import Change
from kubesched.simulator.shadow.races import MOST_OVERTAKEN, MOST_STATES, Moment, Surroundings, matters, surroundings
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


def never(around: Surroundings, ours: str = "n2") -> list[Moment]:
    """Return the states that are tried where none explains the choice of n1."""
    compare = lambda moment: Comparison(Agreement.WORSE, "n1", ours)  # noqa: E731
    return [moment for moment, _ in islice(around.search(compare), MOST_STATES)]


def test_what_lies_around_a_placement_is_what_happened_within_some_time() -> None:
    changes = [
        change
        for number in range(200)
        for change in (placement(number, number / 100), Change(number / 100, "Pod", pod(f"x{number}", on="n1"), None))
    ]
    at = changes[200].at
    around = surroundings(
        enumerate(changes), pod("p100"), 200, {200}, names={"default-scheduler"}, seconds=0.5, at=at, arrived={}
    )
    assert around.own_before[:2] == [198, 196] and around.own_after[:2] == [202, 204]
    assert around.others_before[:2] == [199, 197] and around.others_after == []
    assert min(around.own_before) >= 100 and max(around.own_after) <= 300, "within half a second"
    assert around.words_for(Moment(200, frozenset({202, 204}))) == "with 2 of its placements that arrived later"
    both = "without 2 of its placements that arrived earlier, before 3 changes by others"
    assert around.words_for(Moment(195, frozenset({196, 198}))) == both
    assert {Moment(199), Moment(197)} <= set(never(around))


def test_only_what_happened_on_the_nodes_in_question_makes_another_state() -> None:
    gone = [Change(0.0, "Pod", pod(f"x{number}", on=f"n{number % 4}"), None) for number in range(12)]
    around = surroundings(
        enumerate([*gone, placement(12, 0.0)]),
        pod("p12"),
        12,
        {12},
        names={"default-scheduler"},
        seconds=1,
        at=0.0,
        arrived={},
    )
    assert [moment.others for moment in never(around)] == [12, 10, 9, 6, 5, 2, 1]


PLACED_BEFORE_AND_AFTER = {  # priority of the pod in question, then of one placed before it and one after it, both of which
    "equal, and both came first": (0, (0, 1), (0, 2), 9, {6}),
    "equal, and both came later": (0, (0, 8), (0, 9), 1, {4}),
    "the one after is more important and came first": (0, (0, 1), (5, 2), 9, {6}),
    "the one before is less important and came later": (0, (-5, 8), (0, 9), 1, {4}),
}


@pytest.mark.parametrize(
    ("priority", "before", "after", "came", "reordered"), PLACED_BEFORE_AND_AFTER.values(), ids=PLACED_BEFORE_AND_AFTER
)
def test_placements_are_put_in_the_order_of_the_queue(
    priority: int, before: tuple[int, int], after: tuple[int, int], came: int, reordered: set[int]
) -> None:
    around = of_three(priority, before, after, came)
    assert around.reordered == reordered
    first = never(around)[0]
    assert (first.others, first.swapped) == (5, frozenset(reordered))


@pytest.mark.parametrize(
    ("priority", "before", "after", "came", "swapped"),
    [
        (0, (0, 1), (5, 9), 2, [set(), {6}]),  # more important and came later: it may have been there when our turn came
        (0, (-5, 1), (-5, 2), 9, [set(), {4}, {4, 6}]),  # less important and came first: some of the nearest on the other side
    ],
)
def test_pods_of_another_priority_may_have_been_decided_before_or_after(
    priority: int, before: tuple[int, int], after: tuple[int, int], came: int, swapped: list[set[int]]
) -> None:
    tried = [moment.swapped for moment in never(of_three(priority, before, after, came), ours="n1") if moment.others == 5]
    assert all(frozenset(each) in tried for each in swapped)


def of_three(priority: int, before: tuple[int, int], after: tuple[int, int], came: int) -> Surroundings:
    """Return what lies around the placement of a pod, with the number 5, if two others have the numbers 4 and 6; of these and
    of the pod it is said how important they are and when they came."""
    pods = {4: before, 5: (priority, came), 6: after}
    changes = [
        (number, Change(0.0, "Pod", pod(f"p{number}", priority=rank), pod(f"p{number}", priority=rank, on="n1")))
        for number, (rank, _) in pods.items()
    ]
    arrived = {pod(f"p{number}").metadata.uid: at for number, (_, at) in pods.items()}
    judged = pod("p5", priority=priority)
    return surroundings(changes, judged, 5, {5}, names={"default-scheduler"}, seconds=1, at=0.0, arrived=arrived)


@pytest.mark.parametrize(
    ("moment", "undone"),
    [
        (Moment(4), {4, 5, 6, 7}),
        (Moment(2), {3, 4, 5, 6, 7}),
        (Moment(4, frozenset({2, 6})), {2, 4, 5, 7}),
        (Moment(1, floor=3), {3, 4, 5, 6, 7}),
    ],
)
def test_a_state_leaves_out_what_others_did_from_one_change_on_and_own_placements_from_the_judged_one_on(
    moment: Moment, undone: set[int]
) -> None:
    """Even numbers are the scheduler's own; the judged one is 4."""
    is_undone = Surroundings(4, frozenset({4}), own={0, 2, 4, 6}).undone_at(moment)
    gone = Change(0.0, "Pod", PLACED, None)
    assert {number for number in range(8) if is_undone(number, gone)} == undone


def test_who_decided_a_later_pod_before_has_seen_what_happened_until_that_came() -> None:
    gone = [(number, Change(0.0, "Pod", pod(f"x{number}", on="n1"), None)) for number in (1, 2, 4, 5)]
    first = (6, Change(0.0, "Pod", pod("first"), pod("first", on="n2")))
    judged = (7, Change(0.0, "Pod", pod("judged"), pod("judged", on="n1")))
    arrived = {pod("judged").metadata.uid: 0, pod("first").metadata.uid: 3}
    around = surroundings(
        [*gone, first, judged], pod("judged"), 7, {7}, names={"default-scheduler"}, seconds=1, at=0.0, arrived=arrived
    )
    assert around.reordered == {6}, "the judged pod came first, so it was decided first"
    assert [moment.others for moment in never(around)] == [7, 5, 4, 2, 1], "and may have been decided before any of it"
    arrived[pod("first").metadata.uid], arrived[pod("judged").metadata.uid] = 3, 3.5  # type: ignore[assignment]
    around = surroundings(
        [*gone, first, judged], pod("judged"), 7, {7}, names={"default-scheduler"}, seconds=1, at=0.0, arrived=arrived
    )
    assert not around.reordered
    assert [moment.others for moment in never(around)] == [7, 5, 4], "nothing before the other one came is undone"


def test_a_pod_that_so_many_overtook_was_held_back_by_something_else() -> None:
    others = [placement(number, 0.0) for number in range(MOST_OVERTAKEN + 1)]
    arrived = {pod(f"p{number}").metadata.uid: 10 + number for number in range(MOST_OVERTAKEN + 1)}
    arrived[pod("judged").metadata.uid] = 1
    changes = [*others, Change(0.0, "Pod", pod("judged"), pod("judged", on="n1"))]
    base = len(others)
    for n_first, n_reordered in ((0, 0), (1, MOST_OVERTAKEN)):
        some = list(enumerate(changes))[n_first:]
        around = surroundings(
            some, pod("judged"), base, {base}, names={"default-scheduler"}, seconds=1, at=0.0, arrived=arrived
        )
        assert len(around.reordered) == n_reordered
