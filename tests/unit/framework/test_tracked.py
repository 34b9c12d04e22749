"""Columns that follow from nodes and their pods: worked out again where something changed, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from framework_fakes import small_store

from kubesched.cluster import Snapshot, Store
from kubesched.engine.extenders import BareNodes
from kubesched.framework.tracked import FEW_ROWS, DerivedColumn
from kubesched.testing import node, pod


class Followed:
    """Pods by node, and how often all nodes or single ones were counted."""

    def __init__(self) -> None:
        self.all = self.single = 0
        self.column = DerivedColumn(self._all, self._one)

    def _all(self, nodes: Snapshot) -> np.ndarray:
        self.all += 1
        return nodes.pod_count.copy()

    def _one(self, nodes: Snapshot, row: int) -> tuple[int]:
        self.single += 1
        return (nodes.pod_count.item(row),)

    def on(self, store: Store) -> list[int]:
        return self.column.on(store.snapshot()).tolist()


def test_a_row_that_changed_is_worked_out_alone() -> None:
    store, followed = small_store("a", "b", "c"), Followed()
    assert followed.on(store) == [0, 0, 0]
    store.put_pod(pod("one", on="b"))
    store.put_pod(pod("two", on="b"))
    assert followed.on(store) == followed.on(store) == [0, 2, 0]
    assert (followed.all, followed.single) == (1, 1)


def test_many_changes_and_other_nodes_begin_anew() -> None:
    store, followed = small_store("a", "b"), Followed()
    followed.on(store)
    for i in range(FEW_ROWS + 1):
        store.put_pod(pod(f"p{i}", on="a"))
    assert followed.on(store) == [FEW_ROWS + 1, 0]
    store.put_node(node("c"))
    assert followed.on(store) == [FEW_ROWS + 1, 0, 0]
    assert (followed.all, followed.single) == (3, 0)


def test_another_cluster_is_not_taken_for_the_one_before() -> None:
    followed = Followed()
    followed.on(small_store("a", "b"))
    other = small_store("a", "b", "c")
    other.put_pod(pod("one", on="c"))
    assert followed.on(other) == [0, 0, 1]


def test_a_view_of_some_rows_is_worked_out_for_itself() -> None:
    store, followed = small_store("a", "b", "c"), Followed()
    store.put_pod(pod("one", on="c"))
    assert followed.column.on(store.snapshot().take([2, 0])).tolist() == [1, 0]
    assert followed.on(store) == [0, 0, 1]


def test_a_view_of_nodes_without_their_pods_is_worked_out_for_itself() -> None:
    store, followed = small_store("a", "b"), Followed()
    store.put_pod(pod("one", on="b"))
    bare = BareNodes.of(store.snapshot())
    assert followed.column.on(bare).tolist() == [0, 0]
    assert followed.on(store) == [0, 1], "what was imagined is not taken for what is there"
    assert followed.column.on(bare).tolist() == [0, 0]


def test_a_column_that_broke_is_not_used_half_done() -> None:
    store, breaks = small_store("a", "b"), [False]

    def one(nodes: Snapshot, row: int) -> int:
        if breaks[0]:
            raise ArithmeticError
        return nodes.pod_count.item(row)

    column = DerivedColumn(lambda nodes: nodes.pod_count.copy(), one)
    column.on(store.snapshot())
    store.put_pod(pod("one", on="b"))
    breaks[0] = True
    with pytest.raises(ArithmeticError):
        column.on(store.snapshot())
    assert column.on(store.snapshot()).tolist() == [0, 1]
