"""The formulas that go over all nodes for every pod, as one pass each.

In: columns of the cluster and a pod's few numbers. Out: a column, or one number. `numpy_form` has every formula, and is the
truth. Six of them are in `_compiled.c` as well, the same operations in the same order as one loop, where installing found a
C compiler: those that make decisions faster by it (docs/decisions/0010). Which form runs is decided when this is imported and
changes no bit of any answer (tests/unit/scheduler/kernels compares them). `KUBESCHED_KERNELS=numpy` asks for the first.

Only arithmetic is here: what it means to schedule, when a formula applies and what is kept of it, plugins and framework say.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kubesched.scheduler.kernels import numpy_form
from kubesched.scheduler.kernels.numpy_form import (
    Floats,
    Spread,
    Usage,
    emptiness,
    ends_within,
    round_half_up,
    spread_worth,
)

_form, form, why_not_compiled = numpy_form, "numpy", "KUBESCHED_KERNELS=numpy"
if not TYPE_CHECKING and os.environ.get("KUBESCHED_KERNELS") != "numpy":
    try:
        from kubesched.scheduler.kernels import compiled_form as _form

        form, why_not_compiled = "compiled", ""
    except ImportError:  # nothing was compiled, or an older source
        why_not_compiled = "neither a wheel for this platform nor a C compiler was there when kubesched was installed"

add_spread_scores = _form.add_spread_scores
allocation_percent = _form.allocation_percent
balance_scores = _form.balance_scores
lowest_difference = _form.lowest_difference
refuse_domains = _form.refuse_domains
weighted_total = _form.weighted_total

__all__ = [
    "Floats",
    "Spread",
    "Usage",
    "add_spread_scores",
    "allocation_percent",
    "balance_scores",
    "emptiness",
    "ends_within",
    "form",
    "lowest_difference",
    "refuse_domains",
    "round_half_up",
    "spread_worth",
    "weighted_total",
    "why_not_compiled",
]
