"""The formulas as loops in C (`_compiled.c`). `numpy_form` documents each of them.

The import fails if nothing was compiled, or an older source. If a loop cannot take its arguments, NumPy computes the answer:
more terms than a loop has room for, or scores of a foreign plugin that are no plain column of 64-bit numbers.
"""

from __future__ import annotations

import numpy as np

from kubesched.scheduler.kernels import numpy_form
from kubesched.scheduler.kernels._compiled import add_spread_scores as _add_spread_scores
from kubesched.scheduler.kernels._compiled import allocation_percent as _allocation_percent
from kubesched.scheduler.kernels._compiled import balance_scores as _balance_scores
from kubesched.scheduler.kernels._compiled import lowest_difference
from kubesched.scheduler.kernels._compiled import refuse_domains as _refuse_domains
from kubesched.scheduler.kernels._compiled import weighted_total as _weighted_total
from kubesched.scheduler.kernels.numpy_form import Bools, Ints, Spread, Usage

_NO_COLUMN = TypeError, ValueError


def allocation_percent(usages: tuple[Usage, ...], spreads: bool, n: int) -> Ints | None:
    answer = np.empty(n, dtype=np.int64)
    return answer if _allocation_percent(usages, spreads, answer) else None


def balance_scores(usages: tuple[Usage, ...], n: int) -> Ints | None:
    answer = np.empty(n, dtype=np.int64)
    return answer if _balance_scores(usages, answer) else None


def refuse_domains(totals: Ints, bits: Ints, codes: Ints, refused: int) -> tuple[Ints, int]:
    answer = np.empty(len(totals), dtype=np.int64)
    return answer, _refuse_domains(totals, bits, codes, refused, answer)


def add_spread_scores(totals: Ints, spreads: tuple[Spread, ...], scored: Bools, weight: int) -> Ints:
    answer = np.empty(len(totals), dtype=np.int64)
    is_done = _add_spread_scores(totals, spreads, scored, weight, answer)
    return answer if is_done else numpy_form.add_spread_scores(totals, spreads, scored, weight)


def weighted_total(columns: tuple[tuple[Ints, int], ...], base: int, n: int) -> Ints:
    answer = np.empty(n, dtype=np.int64)
    try:
        is_done = _weighted_total(columns, base, answer)
    except _NO_COLUMN:
        is_done = False
    return answer if is_done else numpy_form.weighted_total(columns, base, n)


__all__ = [
    "add_spread_scores",
    "allocation_percent",
    "balance_scores",
    "lowest_difference",
    "refuse_domains",
    "weighted_total",
]
