"""The rows of the highest total, followed through changes, are those that one look at all of them finds."""

from random import Random

import numpy as np
import pytest

from kubesched.framework.best_rows import BestRows, LevelRows
from kubesched.framework.tracked import Tracked


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
        assert best.second_to(row) == LevelRows(totals).second_to(row) == second
