"""Which states are looked at: what the order of a queue and of the watch of pods says, and what is open."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec
import pytest

from kubesched.kube.api.pod import Pod, PodCondition
from kubesched.scheduler.engine.deciding.agreement import Agreement, Comparison
from kubesched.testing import node, pod
from kubesched.tools.shadow.changes import Change
from kubesched.tools.shadow.races import MOST_OVERTAKEN, MOST_STATES, Moment, Order, Surroundings, surroundings

REFUSED = (PodCondition(type="PodScheduled", status="False"),)


def placement(name: str, at: float = 0.0, to: str = "n1", version: int = 0, **spec: Any) -> Change:
    waiting, placed = pod(name, **spec), pod(name, on=to, **spec)
    metadata = msgspec.structs.replace(placed.metadata, resource_version=str(version))
    return Change(at, "Pod", waiting, msgspec.structs.replace(placed, metadata=metadata), waiting.metadata.uid, version)


def gone(name: str, at: float = 0.0, on: str = "n1") -> Change:
    return Change(at, "Pod", pod(name, on=on), None)


def around(changes: dict[int, Change], judged: Pod, base: int, came: dict[str, int], seconds: float = 1.0) -> Surroundings:
    arrived = {pod(name).metadata.uid: number for name, number in came.items()}
    at = changes[base].at
    return surroundings(changes.items(), judged, base, {base}, seconds=seconds, at=at, arrived=arrived)


def tried(found: Surroundings, ours: str = "n2") -> list[Moment]:
    """Return the states that are tried where none explains the choice of n1."""
    compare = lambda moment: Comparison(Agreement.WORSE, "n1", ours)  # noqa: E731
    return [moment for moment, _ in islice(found.search(compare), MOST_STATES)]


def undone(found: Surroundings, moment: Moment) -> set[str]:
    return {key.partition("/")[2] or key for _, key in found.versions(moment)}


def test_what_lies_around_a_placement_is_what_happened_within_some_time() -> None:
    both = [change for n in range(200) for change in (placement(f"p{n}", n / 100), gone(f"x{n}", n / 100))]
    found = around(dict(enumerate(both)), pod("p100"), 200, {}, seconds=0.5)
    assert [other.number for other in found.decisions[:4]] == [198, 202, 196, 204]
    assert [number for number, _, _ in found.before[:2]] == [199, 197] and found.after == []
    assert {other.number for other in found.decisions} == {n for n in range(100, 301, 2) if n != 200}, "within half a second"
    assert found.words_for(Moment(200, frozenset({202, 204}))) == "with 2 of its placements that arrived later"
    without = "without 2 of its placements that arrived earlier, before 3 changes by others"
    assert found.words_for(Moment(195, frozenset({196, 198}))) == without


def test_only_what_happened_on_the_nodes_in_question_makes_another_state() -> None:
    changes = {n: gone(f"x{n}", on=f"n{n % 4}") for n in range(12)} | {12: placement("p")}
    assert [moment.read for moment in tried(around(changes, pod("p"), 12, {}))] == [12, 10, 9, 6, 5, 2, 1]


ORDERS = {  # priority and coming of the judged pod, then of the other one; what is known of the other one's decision
    "equal, came first": ((0, 9), (0, 1), Order.BEFORE),
    "equal, came later": ((0, 1), (0, 9), Order.AFTER),
    "more important, came first": ((0, 9), (5, 1), Order.BEFORE),
    "more important, came later": ((0, 1), (5, 9), Order.AS_READ),
    "less important, came first": ((0, 9), (-5, 1), Order.IN_TURN),
    "less important, came later": ((0, 1), (-5, 9), Order.AFTER),
}


@pytest.mark.parametrize(("judged", "other", "order"), ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("number", [14, 16])
def test_what_the_queue_says_about_two_pods(judged: tuple[int, int], other: tuple[int, int], order: Order, number: int) -> None:
    changes = {number: placement("other", priority=other[0]), 15: placement("p", priority=judged[0])}
    found = around(changes, pod("p", priority=judged[0]), 15, {"p": judged[1], "other": other[1]})
    assert found.decisions[0].order is order


def test_of_pods_that_were_refused_nothing_is_known_but_that_they_had_come() -> None:
    changes = {14: placement("again", conditions=REFUSED), 15: placement("p"), 16: placement("late", conditions=REFUSED)}
    found = around(changes, pod("p"), 15, {"again": 1, "p": 2, "late": 15})
    assert [other.order for other in found.decisions] == [Order.ANY, Order.ANY]
    assert [moment.swapped for moment in tried(found)] == [frozenset(), {14}], "one that came later was not decided before"


def test_who_was_decided_before_is_whoever_had_been_read_of() -> None:
    changes = {12: placement("p", priority=-9), 13: placement("a", to="n2"), 14: placement("b", to="n2")}
    found = around(changes, pod("p", priority=-9), 12, {"p": 1, "a": 5, "b": 9})
    assert [moment.read for moment in tried(found)] == [12, 9, 5]
    assert [undone(found, Moment(read)) for read in (12, 9, 5)] == [{"p"}, {"p", "b"}, {"p", "a", "b"}]


def test_less_important_pods_change_sides_in_their_turn() -> None:
    low = {n: placement(f"low{n}", priority=-9, to="n2") for n in (12, 13, 15, 16)}
    came = {"low12": 1, "low13": 2, "low15": 3, "low16": 4, "p": 9}
    found = around(low | {14: placement("p")}, pod("p"), 14, came)
    swapped = {moment.swapped for moment in tried(found)}
    assert swapped >= {frozenset(), frozenset({13}), frozenset({12, 13}), frozenset({15}), frozenset({15, 16})}
    assert frozenset({12}) not in swapped and frozenset({16}) not in swapped


def test_who_decided_a_later_pod_before_has_seen_what_happened_until_that_came() -> None:
    changes = {n: gone(f"x{n}") for n in (1, 2, 4, 5)} | {6: placement("first", to="n3"), 7: placement("p")}
    found = around(changes, pod("p"), 7, {"p": 0, "first": 3})
    assert [moment.read for moment in tried(found)] == [7, 5, 4, 2, 1], (
        "it came first, and may have been decided before any of it"
    )
    found = around(changes, pod("p"), 7, {"p": 3, "first": 2})
    assert [moment.read for moment in tried(found)] == [7, 5, 4], "nothing before it came is undone"


def test_a_pod_that_so_many_overtook_was_held_back_by_something_else() -> None:
    for n_before, order in ((MOST_OVERTAKEN, Order.AFTER), (MOST_OVERTAKEN + 1, Order.ANY)):
        changes = {100 + n: placement(f"p{n}") for n in range(n_before)} | {200: placement("p")}
        found = around(changes, pod("p"), 200, {"p": 1} | {f"p{n}": 10 + n for n in range(n_before)})
        assert {other.order for other in found.decisions} == {order}


def test_versions_say_where_between_pods_something_happened_that_another_watch_told_early_or_late() -> None:
    cordoned = Change(-4.0, "Node", node("n1"), node("n1", cordoned=True), version=35)
    freed = Change(4.0, "Node", node("n2", cordoned=True), node("n2"), version=15)
    pods = {5: placement("a", -0.1, "n3", 10), 6: placement("b", -0.1, "n3", 20), 7: placement("p", 0.0, "n1", 30)}
    changes = {1: cordoned} | pods | {8: placement("c", 0.1, "n3", 40), 9: freed}
    found = around(changes, pod("p"), 7, {})
    assert [number for number, _, _ in found.before] == [5.5] and [number for number, _ in found.after] == [7.5]
    assert undone(found, Moment(7)) == {"p", "c", "n1"}
    del changes[8]
    assert undone(around(changes, pod("p"), 7, {}), Moment(7)) == {"p", "n1"}, "the watch of pods was not as far as that"
