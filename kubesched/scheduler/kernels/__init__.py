"""Formulas that go over all nodes for every pod, each in one pass.

In: columns of the cluster, and a pod's few numbers. Out: a column, or one number. `numpy_form` has every formula and defines
what is right. Six of them are in `_compiled.c` too, as loops with the same operations in the same order. They are used if a C
compiler was found at installation (docs/decisions/0010 says why these six). The form is chosen at import and changes no bit
of any answer; tests/unit/scheduler/kernels compares them. `KUBESCHED_KERNELS=numpy` chooses NumPy.

Only arithmetic is here. Plugins and framework know when a formula applies.
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
