from __future__ import annotations

import numpy as np
import pytest

from kubesched.cluster.store import Store
from kubesched.engine.ties import FirstByName, SeededTies, first_best
from kubesched.testing import node, pod


@pytest.mark.parametrize(("start", "expected"), [(0, 1), (1, 1), (2, 3), (4, 1)])
def test_the_first_of_the_best_from_a_row_on_going_round(start: int, expected: int) -> None:
    assert first_best(np.array([0, 5, 4, 5, 1]), start) == expected


def test_the_first_by_name_whatever_the_rows() -> None:
    store = Store()
    for name in ("b", "c", "a"):
        store.put_node(node(name))
    view, nodes = store.view(pod("p")), store.snapshot()
    best = FirstByName().best(view, np.array([5 if nodes.name(row) != "c" else 9 for row in range(3)]), nodes)
    assert nodes.name(best) == "c"
    assert nodes.name(FirstByName().best(view, np.array([7, 7, 7]), nodes)) == "a"


def test_a_seeded_choice_is_one_of_the_best_and_follows_from_seed_and_uid() -> None:
    store = Store()
    for i in range(20):
        store.put_node(node(f"n{i}"))
    nodes, totals = store.snapshot(), np.array([i % 3 for i in range(20)])
    chosen = {(seed, i): SeededTies(seed).best(store.view(pod(f"p{i}")), totals, nodes) for seed in (0, 1) for i in range(20)}
    assert {row % 3 for row in chosen.values()} == {2}
    assert len(set(chosen.values())) > 3
    assert [chosen[0, i] for i in range(20)] != [chosen[1, i] for i in range(20)]
    again = SeededTies(1).best(store.view(pod("p3")), totals, nodes)
    assert again == chosen[1, 3]
