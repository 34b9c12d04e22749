from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from kubesched.scheduler.cluster.store import Store
from kubesched.scheduler.engine.deciding.ties import FirstByName, FirstShuffled, SeededTies, UniformTies
from kubesched.scheduler.framework.level_rows import LevelRows
from kubesched.testing import node, pod


@pytest.mark.parametrize(("start", "expected"), [(0, 1), (1, 1), (2, 3), (4, 1)])
def test_the_first_of_the_best_from_a_row_on_going_round(start: int, expected: int) -> None:
    assert LevelRows(np.array([0, 5, 4, 5, 1])).first_from(start) == expected


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


def test_the_first_by_name_follows_nodes_that_come_and_go_and_views_of_some_rows() -> None:
    store, ties = Store(), FirstByName()
    for name in ("b", "c"):
        store.put_node(node(name))
    view = store.view(pod("p"))
    assert store.snapshot().name(ties.best(view, np.array([7, 7]), store.snapshot())) == "b"
    store.put_node(node("a"))
    assert store.snapshot().name(ties.best(view, np.array([7, 7, 7]), store.snapshot())) == "a"
    some = store.snapshot().take([store.snapshot().row("c"), store.snapshot().row("b")])
    assert some.name(ties.best(view, np.array([7, 7]), some)) == "b"


def test_a_shuffled_order_is_the_same_for_every_pod_and_another_for_another_seed() -> None:
    store = Store()
    for i in range(30):
        store.put_node(node(f"n{i:02}"))
    nodes, pods = store.snapshot(), [store.view(pod(f"p{i}")) for i in range(5)]

    def order(seed: int) -> list[str]:
        ties, totals, found = FirstShuffled(seed), np.full(30, 5), []
        for i in range(30):
            row = ties.best(pods[i % 5], totals, nodes)
            found.append(nodes.name(row))
            totals[row] = 0
        return found

    assert order(1) == order(1)
    assert sorted(order(1)) == sorted(order(2)) == [f"n{i:02}" for i in range(30)]
    assert order(1) != order(2) != sorted(order(2))


def test_a_uniform_choice_meets_every_best_node_alike_wherever_it_stands() -> None:
    store = Store()
    for i in range(40):
        store.put_node(node(f"n{i}"))
    nodes, totals, ties = store.snapshot(), np.zeros(40, dtype=np.int64), UniformTies(3)
    totals[[0, 1, 2, 39]] = 9  # row 39 stands behind a long run of lesser nodes
    counts = Counter(ties.best(store.view(pod(f"p{i}")), totals, nodes) for i in range(800))
    assert set(counts) == {0, 1, 2, 39}
    assert all(150 < n < 250 for n in counts.values())
