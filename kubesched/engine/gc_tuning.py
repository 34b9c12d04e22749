"""Python's cycle collector, told how a scheduler lives: much that stays, and little that goes in cycles.

Called once the cluster has been listed, by whoever owns the process.
"""

from __future__ import annotations

import gc

THRESHOLDS = 20_000, 10, 10


def spare_the_collector() -> None:
    """Keep the collector from walking the cluster again and again.

    What was listed stays, is freed by counting when it goes, and holds no cycles; a binding leaves behind hundreds of
    short-lived objects, and at Python's own threshold every third one would start a collection. Measured with 10,000 pods
    that wait in vain: they slow the others by 13 % at Python's thresholds, by 2 % at ours (bench/unschedulable.py).
    """
    gc.freeze()  # without a collection before it, which takes seconds over a large cluster and frees next to nothing
    gc.set_threshold(*THRESHOLDS)
