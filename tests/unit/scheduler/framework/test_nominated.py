"""Pods nominated to nodes: who counts for whom, and what of it is read again after a change."""

from __future__ import annotations

from unittest.mock import MagicMock

import numpy as np
import pytest
from framework_fakes import small_store

from kubesched.errors import PluginError
from kubesched.scheduler.cluster import CPU, PodView, Store
from kubesched.scheduler.framework.nominated import nominated_by_row
from kubesched.scheduler.framework.preemption.whatif import WhatIf
from kubesched.scheduler.framework.runtime import with_nominated
from kubesched.testing import node, pod
from kubesched.testing.nominations import Nominations


def nominate(store: Store, nominations: Nominations, name: str, on: str, priority: int = 0, cpu: str = "1") -> PodView:
    view = store.view(pod(name, priority=priority, requests={"cpu": cpu}))
    nominations.put(view, on)
    return view


def test_only_pods_of_equal_or_higher_priority_stand_ahead() -> None:
    store, nominations = small_store("a", "b", "c"), Nominations()
    nominate(store, nominations, "low", "a", 1)
    nominate(store, nominations, "high", "b", 10)
    nominate(store, nominations, "higher", "b", 11, cpu="2")
    coming = nominated_by_row(store.snapshot(), nominations)
    assert coming.above(0).rows.tolist() == [0, 1]
    assert coming.above(10).rows.tolist() == [1]
    assert [view.name for view in coming.above(10).pods[1]] == ["high", "higher"], "in the order of their nomination"
    assert coming.above(10).usage[CPU].tolist() == [0, 3000, 0]
    assert coming.above(11).count.tolist() == [0, 1, 0]
    assert coming.above(12).rows.tolist() == []


def test_a_change_is_read_node_by_node() -> None:
    store, nominations = small_store("a", "b", "c"), Nominations()
    nominate(store, nominations, "first", "a", 5)
    coming = nominated_by_row(store.snapshot(), nominations)
    ahead = coming.above(5)
    nominations.drop("uid-default-first")
    nominate(store, nominations, "second", "c", 5)
    assert nominated_by_row(store.snapshot(), nominations) is coming
    assert (ahead.rows.tolist(), coming.row_of("uid-default-first"), coming.row_of("uid-default-second")) == ([2], -1, 2)
    nominate(store, nominations, "second", "b", 5)
    nominated_by_row(store.snapshot(), nominations)
    assert (ahead.rows.tolist(), coming.row_of("uid-default-second")) == ([1], 1)
    assert ahead.usage[CPU].tolist() == [0, 1000, 0]


def test_a_nomination_to_a_node_that_is_not_there_counts_when_it_comes() -> None:
    store, nominations = small_store("a"), Nominations()
    nominate(store, nominations, "early", "late")
    assert not nominated_by_row(store.snapshot(), nominations)
    store.put_node(node("late"))
    assert nominated_by_row(store.snapshot(), nominations).above(0).rows.tolist() == [1]


def test_rows_that_move_take_their_nominations_along() -> None:
    store, nominations = small_store("a", "b", "c"), Nominations()
    nominate(store, nominations, "p", "c")
    nominated_by_row(store.snapshot(), nominations).above(0)
    store.remove_node("a")
    coming = nominated_by_row(store.snapshot(), nominations)
    assert coming.above(0).rows.tolist() == [store.snapshot().row("c")]


# What if


def test_imagined_pods_are_seen_on_their_node_and_nowhere_else() -> None:
    store = small_store("a", "b", "c")
    old = store.put_pod(pod("old", on="b", requests={"cpu": "1"}, host_ports=(80,)))
    new = store.view(pod("new", requests={"cpu": "2"}, host_ports=(443,)))
    imagined = WhatIf.of(store.snapshot(), [1])
    imagined.move(new, 1)
    imagined.move(old, -1)
    assert imagined.requested(CPU).tolist() == [2000]
    assert imagined.pod_count.tolist() == [1]
    assert [p.name for p in imagined.pods_on(0)] == ["new"]
    assert imagined.port_conflicts(old.template.ports).tolist() == [False]
    assert imagined.port_conflicts(new.template.ports).tolist() == [True]
    assert store.snapshot().requested(CPU).tolist() == [0, 1000, 0], "the store is as it was"


def test_what_comes_and_goes_again_leaves_no_trace() -> None:
    store = small_store("a")
    old = store.put_pod(pod("old", on="a", requests={"cpu": "1"}))
    imagined = WhatIf.of(store.snapshot(), [0])
    imagined.move(old, -1)
    imagined.move(old, 1)
    new = store.view(pod("new", requests={"cpu": "2"}))
    imagined.move(new, 1)
    imagined.move(new, -1)
    assert imagined.requested(CPU).tolist() == [1000]
    assert [p.name for p in imagined.pods_on(0)] == ["old"]


def test_of_two_holders_of_a_port_either_frees_it_when_it_is_imagined_away() -> None:
    store = small_store("a")
    first = store.put_pod(pod("first", on="a", host_ports=(80,)))
    store.put_pod(pod("second", on="a", host_ports=(80,)))
    imagined = WhatIf.of(store.snapshot(), [0])
    imagined.move(first, -1)
    assert not imagined.port_conflicts(first.template.ports).any(), "a set, not a count: the reference's quirk"


def test_imagining_on_top_of_imagining_keeps_what_was_imagined() -> None:
    store = small_store("a", "b")
    new = store.view(pod("new", requests={"cpu": "2"}, host_ports=(80,)))
    first = WhatIf.of(store.snapshot(), [1])
    first.move(new, 1)
    second = WhatIf.of(first, [0])
    second.move(store.view(pod("newer", requests={"cpu": "1"})), 1)
    assert second.requested(CPU).tolist() == [3000]
    assert first.requested(CPU).tolist() == [2000]
    assert second.port_conflicts(new.template.ports).tolist() == [True]


def test_rows_about_which_a_filter_broke_stay_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def filter(self, imagined: object) -> None:
            raise PluginError("Odd", "Filter", "it broke", "default/p")

    monkeypatch.setattr(with_nominated.WhatIf, "of", lambda nodes, rows: MagicMock())
    remembered = with_nominated._Remembered()
    remembered.outcome = np.zeros(10, dtype=np.int32)
    with pytest.raises(PluginError):
        remembered._ask(Broken(), MagicMock(), np.arange(10), MagicMock())  # type: ignore[arg-type]
    assert not remembered.outcome.any()
