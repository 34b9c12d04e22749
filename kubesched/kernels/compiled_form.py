"""The formulas as loops in C (`_compiled.c`), called with room for the answer; see `numpy_form` for what each one is.

Importing it fails where nothing was compiled.
"""

from __future__ import annotations

import numpy as np

from kubesched.kernels import _compiled, numpy_form
from kubesched.kernels.numpy_form import Ints, Spread, Usage

_NO_COLUMN = TypeError, ValueError
"""What is raised for an array that is not contiguous, or of other numbers. Totals are made of scores of plugins that may be
anybody's, and to NumPy every array is a column."""


def allocation_percent(usages: tuple[Usage, ...], spreads: bool, n: int) -> Ints | None:
    answer = np.empty(n, dtype=np.int64)
    return answer if _compiled.allocation_percent(usages, spreads, answer) else None


def balance_scores(usages: tuple[Usage, ...], n: int) -> Ints | None:
    answer = np.empty(n, dtype=np.int64)
    return answer if _compiled.balance_scores(usages, answer) else None


lowest_difference = _compiled.lowest_difference


def spread_worth(spreads: tuple[Spread, ...], n: int) -> Ints:
    answer = np.empty(n, dtype=np.int64)
    _compiled.spread_worth(spreads, answer)
    return answer


def emptiness(scores: Ints, low: int, high: int) -> Ints:
    answer = np.empty(len(scores), dtype=np.int64)
    _compiled.emptiness(scores, low, high, answer)
    return answer


def add_by_domain(base: Ints, added: Ints, codes: Ints) -> Ints:
    answer = np.empty(len(base), dtype=np.int64)
    try:
        _compiled.add_by_domain(base, added, codes, answer)
    except _NO_COLUMN:
        return numpy_form.add_by_domain(base, added, codes)
    return answer


ends_within = _compiled.ends_within


def weighted_total(columns: tuple[tuple[Ints, int], ...], base: int, n: int) -> Ints:
    answer = np.empty(n, dtype=np.int64)
    try:
        is_done = _compiled.weighted_total(columns, base, answer)  # not where there are too many
    except _NO_COLUMN:
        is_done = False
    return answer if is_done else numpy_form.weighted_total(columns, base, n)
