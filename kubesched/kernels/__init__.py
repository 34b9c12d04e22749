"""The formulas that go over all nodes for every pod, as one pass each.

In: columns of the cluster and a pod's few numbers. Out: a column, or one number. Each formula has one name and two forms:
`numpy_form`, which is the truth and always there, and `_compiled.c`, the same operations in the same order as one loop,
where installing found a C compiler. Which one runs is decided when this is imported and changes no bit of any answer
(tests/unit/kernels compares them). `KUBESCHED_KERNELS=numpy` asks for the first.

Only arithmetic is here: what it means to schedule, when a formula applies and what is kept of it, plugins and framework say.
"""

from __future__ import annotations

import os

from kubesched.kernels import numpy_form
from kubesched.kernels.numpy_form import Floats, Spread, Usage, round_half_up

try:
    if os.environ.get("KUBESCHED_KERNELS") == "numpy":
        raise ImportError
    from kubesched.kernels import compiled_form
except ImportError:
    form = "numpy"
    add_by_domain = numpy_form.add_by_domain
    balance_scores = numpy_form.balance_scores
    emptiness = numpy_form.emptiness
    lowest_difference = numpy_form.lowest_difference
    spread_worth = numpy_form.spread_worth
    allocation_percent = numpy_form.allocation_percent
else:
    form = "compiled"
    add_by_domain = compiled_form.add_by_domain
    balance_scores = compiled_form.balance_scores
    emptiness = compiled_form.emptiness
    lowest_difference = compiled_form.lowest_difference
    spread_worth = compiled_form.spread_worth
    allocation_percent = compiled_form.allocation_percent

__all__ = [
    "Floats",
    "Spread",
    "Usage",
    "add_by_domain",
    "allocation_percent",
    "balance_scores",
    "emptiness",
    "form",
    "lowest_difference",
    "round_half_up",
    "spread_worth",
]
