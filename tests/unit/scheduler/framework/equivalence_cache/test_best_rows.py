"""The rows of the highest total, followed through changes, are those that one look at all of them finds."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.scheduler.framework.equivalence_cache.best_rows import BestRows, LevelRows
from kubesched.scheduler.framework.equivalence_cache.tracked import Tracked
from kubesched.scheduler.framework.runtime.feasible import REFUSED


@pytest.mark.parametrize("seed", range(20))
def test_following_equals_looking_at_all(seed: int) -> None:
    random = Random(seed)
    n = random.choice([1, 2, 7, 40])
    tracked = Tracked(np.array([random.randrange(4) for _ in range(n)], dtype=np.int64))
    totals, best = tracked.values, BestRows(tracked)
    for _ in range(60):
        for _ in range(random.choice([0, 1, 1, 2, 70])):
            row = random.randrange(n)
            tracked.put(row, random.randrange(4))
        best.refresh()
        level = np.flatnonzero(totals == totals.max()).tolist()
        assert (best.best, best.count) == (totals.max(), len(level))
        start = random.randrange(n)
        row = best.first_from(start)
        assert row == LevelRows(totals).first_from(start)
        others = [other for other in range(n) if other != row]
        second = max(others, key=lambda other: totals[other], default=-1)
        expected = second, totals[second if second >= 0 else row]
        assert best.second_to(row) == LevelRows(totals).second_to(row) == expected
        assert best.first == level[0]


TOTALS = st.sampled_from([REFUSED, REFUSED + 1, 0, 1, 2, 3])


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[int], list[list[tuple[int, int]]]]:
    """Totals, and the changes to single rows that are made before each attempt."""
    first = draw(st.lists(TOTALS, min_size=1, max_size=200))
    change = st.tuples(st.integers(0, len(first) - 1), TOTALS)
    return first, draw(st.lists(st.lists(change, max_size=6), max_size=20))


@given(histories(), st.integers(0))
def test_the_first_and_the_second_are_those_of_a_plain_search(
    history: tuple[list[int], list[list[tuple[int, int]]]], start: int
) -> None:
    first, changes = history
    tracked = Tracked(np.array(first, dtype=np.int64))
    followed = BestRows(tracked)
    for some in changes:
        for row, total in some:
            tracked.put(row, total)
        followed.refresh()
        totals = tracked.values.tolist()
        if max(totals) < 0:
            continue  # nobody asks where no node is feasible
        chosen = followed.first_from(start % len(totals))
        others = [row for row in range(len(totals)) if row != chosen and totals[row] >= 0]
        second = max(others, key=totals.__getitem__, default=-1)
        expected = second, totals[second] if second >= 0 else totals[chosen]
        anew = LevelRows(tracked.values)
        assert followed.first == anew.first == totals.index(max(totals))
        assert followed.second_to(chosen) == anew.second_to(chosen) == expected
        assert tracked.values.tolist() == totals  # it was only looked at
