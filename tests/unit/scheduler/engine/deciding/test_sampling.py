"""Looking at some nodes only."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.scheduler.cluster import Store
from kubesched.scheduler.engine.deciding.sampling import Sampling, n_wanted
from kubesched.scheduler.framework.verdicts import Reason, Rejections, Verdicts
from kubesched.testing import node


@pytest.mark.parametrize(
    ("n", "percentage", "wanted"),
    [
        (99, 5, 99),
        (100, 40, 100),
        (200, 40, 100),
        (1000, 40, 400),
        (1000, 42, 420),
        (5000, 10, 500),
        (5625, 5, 281),
        (6000, 5, 300),
        (100, 1, 100),
    ],
)
def test_how_many_feasible_nodes_are_enough(n: int, percentage: int, wanted: int) -> None:
    assert n_wanted(n, percentage) == wanted


def store_of(n: int, n_zones: int = 1) -> Store:
    store = Store()
    for i in range(n):
        store.put_node(node(f"n{i:03d}", zone=f"z{i % n_zones}"))
    return store


def look(sampling: Sampling, store: Store, percentage: int, refused: set[str] = frozenset()) -> list[str]:  # type: ignore[assignment]
    """Return the names of the nodes that were looked at."""
    nodes = store.snapshot()
    verdicts = Verdicts(nodes)
    verdicts.add("Fit", Rejections.where(np.array([name in refused for name in nodes.names]), Reason("no")))
    sampling.limit(verdicts, percentage)
    assert verdicts.considered is not None
    return [nodes.name(row) for row in np.flatnonzero(verdicts.considered)]


def test_a_small_cluster_is_looked_at_as_a_whole() -> None:
    sampling = Sampling()
    assert len(look(sampling, store_of(60), 10)) == 60
    assert sampling.start == 0, "all the way round"


def test_the_search_goes_on_where_the_last_one_stopped() -> None:
    sampling, store = Sampling(), store_of(250)
    first = look(sampling, store, 10)
    assert (len(first), sampling.start) == (100, 100)
    second = look(sampling, store, 10)
    assert sampling.start == 200
    assert not set(first) & set(second)
    third = look(sampling, store, 10)
    assert len(third) == 100 and len(set(third) & set(first)) == 50


def test_refused_nodes_are_looked_at_but_not_counted() -> None:
    sampling, store = Sampling(), store_of(250)
    refused = {f"n{i:03d}" for i in range(0, 100, 2)}
    seen = look(sampling, store, 10, refused)
    assert len(seen) == 150
    assert sampling.start == 150


def test_all_are_looked_at_where_there_are_not_enough() -> None:
    sampling, store = Sampling(), store_of(150)
    assert len(look(sampling, store, 10, {f"n{i:03d}" for i in range(60)})) == 150
    assert sampling.start == 0


def test_nodes_are_visited_zone_by_zone() -> None:
    store = store_of(300, 3)
    zones = [
        store.snapshot().node(store.snapshot().row(name)).metadata.labels["topology.kubernetes.io/zone"]
        for name in look(Sampling(), store, 10)
    ]
    assert sorted(map(zones.count, ("z0", "z1", "z2"))) == [33, 33, 34]


def test_a_node_that_moved_to_another_zone_is_visited_where_it_is_now() -> None:
    sampling, store = Sampling(), store_of(300, 3)
    look(sampling, store, 10)
    sampling.start = 0
    store.put_node(node("n000", zone="z2"))
    assert "n000" not in look(sampling, store, 10), "it is the last of its new zone"
