"""Python's cycle collector, told how a scheduler lives: much that stays, and little that goes in cycles.

Called before the cluster is listed and once it has been, by whoever owns the process.
"""

from __future__ import annotations

import gc

THRESHOLDS = 20_000, 10, 10
NEVER = 1000
"""So many collections of younger objects before all are walked are more than any list takes."""


def await_the_list() -> None:
    """Keep the collector from walking the cluster while it is being listed: what comes then stays. With 150,000 pods that
    took 0.4 s of 2.3, in pauses of up to half a second."""
    gc.set_threshold(*THRESHOLDS[:2], NEVER)


def spare_the_collector() -> None:
    """Keep the collector from walking the cluster again and again.

    What was listed stays, is freed by counting when it goes, and holds no cycles; a binding leaves behind hundreds of
    short-lived objects, and at Python's own threshold every third one would start a collection. Measured with 10,000 pods
    that wait in vain: they slow the others by 13 % at Python's thresholds, by 2 % at ours (bench/unschedulable.py).
    """
    gc.freeze()  # without a collection before it, which takes seconds over a large cluster and frees next to nothing
    gc.set_threshold(*THRESHOLDS)
