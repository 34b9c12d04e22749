"""How one of several best nodes is chosen."""

from __future__ import annotations

import numpy as np
from legacy_clusters import ZONE, World, node

from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.legacy import ties_of
from kubesched.scheduler.legacy.releases import V1_6, V1_13, V1_17

WORLD = [node("b", {ZONE: "1"}), node("c", {ZONE: "1"}), node("a", {ZONE: "2"})]


def chosen(release: object, rows: list[int], times: int) -> list[str]:
    world = World(list(WORLD))
    ties, snapshot = ties_of(release), world.store.snapshot()  # type: ignore[arg-type]
    totals = np.array([9 if row in rows else 0 for row in range(3)])
    return [snapshot.name(ties.best(world.view(), totals, snapshot)) for _ in range(times)]


def test_up_to_1_6_the_best_take_turns_by_falling_names() -> None:
    assert chosen(V1_6, [0, 1, 2], 5) == ["c", "b", "a", "c", "b"]


def test_1_13_takes_turns_in_visiting_order() -> None:
    assert chosen(V1_13, [0, 1, 2], 4) == ["b", "a", "c", "b"]
    assert chosen(V1_13, [1], 2) == ["c", "c"]


def test_from_1_17_on_chance_decides() -> None:
    assert isinstance(ties_of(V1_17, 3), SeededTies)
