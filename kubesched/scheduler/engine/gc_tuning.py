"""Tune Python's garbage collector for a scheduler: most objects stay, and few form cycles.

The program calls the first function before it lists the cluster, and the second one afterwards.
"""

from __future__ import annotations

import gc

THRESHOLDS = 20_000, 10, 10
NEVER = 1000
"""Full collections come after so many of young objects: more than any list takes."""


def await_the_list() -> None:
    """Make no full collections while the cluster is being listed: what comes then stays. With 150,000 pods they
    took 0.4 s of 2.3 s, in pauses of up to half a second."""
    gc.set_threshold(*THRESHOLDS[:2], NEVER)


def spare_the_collector() -> None:
    """Make collections rare, and leave the listed objects out of them.

    Listed objects form no cycles, so reference counting frees them. A binding creates hundreds of short-lived objects; at
    Python's own threshold every third binding would start a collection. Measured with 10,000 unschedulable pods: they slow the
    others by 13 % at Python's thresholds, and by 2 % at these (bench/unschedulable.py).
    """
    gc.freeze()  # without a collection before it, which takes seconds over a large cluster and frees next to nothing
    gc.set_threshold(*THRESHOLDS)
