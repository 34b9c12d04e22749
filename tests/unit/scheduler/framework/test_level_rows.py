"""The rows of the highest total, and who comes second, are those of a plain search."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubesched.scheduler.framework.equivalence_cache.node_answers import REFUSED
from kubesched.scheduler.framework.level_rows import LevelRows

TOTALS = st.lists(st.sampled_from([REFUSED, REFUSED + 1, -1, 0, 1, 2, 3]), min_size=1, max_size=200)


@given(TOTALS.filter(lambda totals: max(totals) >= 0), st.integers(0))
def test_the_first_and_the_second_are_those_of_a_plain_search(totals: list[int], start: int) -> None:
    rows = LevelRows(np.array(totals, dtype=np.int64))
    level = [row for row, total in enumerate(totals) if total == max(totals)]
    assert (rows.first, rows.best, rows.count) == (level[0], max(totals), len(level))
    start %= len(totals)
    assert rows.first_from(start) == min(level, key=lambda row: (row < start, row))
    for chosen in level:
        others = [row for row in range(len(totals)) if row != chosen and totals[row] >= 0]
        second = max(others, key=totals.__getitem__, default=-1)
        assert rows.second_to(chosen) == (second, totals[second] if second >= 0 else totals[chosen])
    assert rows._totals.tolist() == totals  # they were only looked at
