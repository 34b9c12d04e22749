"""What can be reached: refusing and rating domains gives what looking at every node gives, also when tables change."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from kubesched.scheduler.cluster import Snapshot, Store
from kubesched.scheduler.cluster.changelog import Reader
from kubesched.scheduler.framework.runtime.feasible import MAX_SCORE, REFUSED, FeasibleNodes, NodeTotals, NotCacheable
from kubesched.scheduler.framework.verdicts import DomainScores, DomainVerdicts
from kubesched.testing import node


def cluster(size: int, zones: int, random: Random) -> Snapshot:
    """Return nodes with a host name each and, but for some, a zone."""
    store = Store()
    for i in range(size):
        labels = {"host": f"h{i}"}
        if random.random() < 0.9:
            labels["zone"] = f"z{random.randrange(zones)}"
        store.put_node(node(f"n{i}", labels=labels))
    return store.snapshot()


def n_domains(nodes: Snapshot, key: str) -> int:
    label = nodes.label(key)
    return len(label.values) if label is not None else 0


def expected(
    base: NodeTotals,
    nodes: Snapshot,
    verdicts: list[DomainVerdicts],
    scores: list[tuple[DomainScores, int]],
    mask: np.ndarray | None,
) -> tuple[list[bool], list[int]]:
    """Work out node by node who is feasible and what it totals."""
    feasible, totals = [], []
    for row in range(nodes.n):
        passes = bool(base.passing.values[row]) and (mask is None or bool(mask[row]))
        for table in verdicts:
            passes = passes and not table.values[nodes.code_at(table.key, row)]
        total = int(base.totals.values[row]) + sum(
            weight * int(table.values[nodes.code_at(table.key, row)]) for table, weight in scores
        )
        feasible.append(passes)
        totals.append(total if passes else -1)
    return feasible, totals


def compare(
    reach: FeasibleNodes,
    base: NodeTotals,
    nodes: Snapshot,
    verdicts: list[DomainVerdicts],
    scores: list[tuple[DomainScores, int]],
    mask: np.ndarray | None,
) -> None:
    feasible, totals = expected(base, nodes, verdicts, scores, mask)
    assert reach.count() == sum(feasible)
    for key in ("host", "zone"):
        here = {nodes.code_at(key, row) for row in range(nodes.n) if feasible[row]}
        assert set(np.flatnonzero(reach.domains(key)).tolist()) == {c if c >= 0 else n_domains(nodes, key) for c in here}
    assert reach.feasible().tolist() == feasible
    combined = reach.totals(tuple(scores))
    assert [max(total, -1) for total in combined.tolist()] == totals


@pytest.mark.parametrize("seed", range(60))
def test_following_tables_gives_what_looking_at_every_node_gives(seed: int) -> None:
    random = Random(seed)
    nodes = cluster(random.choice([3, 20, 120]), random.choice([1, 3, 8]), random)
    base = NodeTotals(nodes)
    base.totals.values[:] = [random.randrange(200) for _ in range(nodes.n)]
    for row in range(nodes.n):
        if random.random() < 0.1:
            base.passing.values[row], base.totals.values[row] = False, REFUSED
    base.n_passing = int(base.passing.values.sum())
    keys = random.sample(["host", "zone", "zone"], random.randrange(3))
    verdicts = [
        DomainVerdicts(key, np.array([random.random() < 0.3 for _ in range(n_domains(nodes, key) + 1)], dtype=np.uint64), ())
        for key in keys
    ]
    rated = random.sample(["host", "zone", "host"], random.randrange(4))
    scores = [
        (DomainScores(key, np.array([random.randrange(101) for _ in range(n_domains(nodes, key) + 1)])), random.randrange(1, 4))
        for key in rated
    ]
    mask = np.array([random.random() < 0.7 for _ in range(nodes.n)]) if random.random() < 0.2 else None
    reach = FeasibleNodes(base, nodes, tuple(verdicts), mask)
    compare(reach, base, nodes, verdicts, scores, mask)
    for _ in range(12):
        for _ in range(random.choice([0, 1, 1, 3, 40])):
            tables = [*verdicts, *(table for table, _ in scores)]
            if tables:
                table = random.choice(tables)
                is_verdict = isinstance(table, DomainVerdicts)
                table.put(random.randrange(len(table.values)), random.randrange(2) if is_verdict else random.randrange(101))
        for _ in range(random.choice([0, 1, 1, 20])):
            row = random.randrange(nodes.n)
            if base.passing.values[row]:
                base.totals.put(row, random.randrange(200))
        for _ in range(random.choice([0, 0, 1, 3])):
            row = random.randrange(nodes.n)
            base.put(row, not base.passing.values[row], random.randrange(200), nodes)
        assert reach.refresh()
        compare(reach, base, nodes, verdicts, scores, mask)


def test_who_lost_the_thread_is_told_so() -> None:
    nodes = cluster(6, 2, Random(1))
    base = NodeTotals(nodes)
    reach = FeasibleNodes(base, nodes)
    assert reach.refresh()
    base.passing.changes.restart()
    assert not reach.refresh()


def test_a_score_out_of_range_is_left_to_the_plain_path_if_anybody_can_get_it() -> None:
    nodes = cluster(6, 2, Random(1))
    table = DomainScores("host", np.array([0, MAX_SCORE + 1, 0, 0, 0, 0, 0]))
    base = NodeTotals(nodes)
    with pytest.raises(NotCacheable):
        FeasibleNodes(base, nodes).totals(((table, 1),))
    base.put(1, False, 0, nodes)
    assert FeasibleNodes(base, nodes).totals(((table, 1),)).max() == 0


def test_after_a_score_out_of_range_the_totals_are_added_up_anew() -> None:
    nodes = cluster(6, 2, Random(1))
    base, table = NodeTotals(nodes), DomainScores("host", np.zeros(7, dtype=np.int64))
    reach = FeasibleNodes(base, nodes)
    reach.totals(((table, 1),))
    table.put(0, 5)
    table.put(1, MAX_SCORE + 1)
    with pytest.raises(NotCacheable):
        reach.totals(((table, 1),))
    table.put(1, 7)
    expected = FeasibleNodes(base, nodes).totals(((table, 1),)).tolist()
    assert reach.totals(((table, 1),)).tolist() == expected


def test_a_table_tells_what_changed_and_nothing_else() -> None:
    table = DomainScores("zone", np.array([1, 2, 0]))
    table.put(0, 1)
    table.put(1, 5)
    assert (table.changes.entries, table.values.tolist()) == ([1], [1, 5, 0])
    few, many = DomainScores("zone", np.zeros(100)), DomainScores("zone", np.zeros(100))
    readers = Reader(few.changes), Reader(many.changes)
    few.update(np.arange(100) // 90)
    many.update(np.arange(100) // 10)
    assert (readers[0].changed(few.changes), readers[1].changed(many.changes)) == (list(range(90, 100)), None)
    assert many.values.tolist() == [i // 10 for i in range(100)]
