"""How much of what is free is of no use, because it lies in pieces that are too small."""

from __future__ import annotations

import numpy as np

from kubesched.scheduler.cluster.columns import Bools
from kubesched.scheduler.cluster.pods import CPU, MEMORY
from kubesched.scheduler.cluster.snapshot import Snapshot


def fragmentation(nodes: Snapshot, cpu_milli: int, memory_bytes: int, usable: Bools) -> float:
    """Return the share of the free cpu of usable nodes that is left when each is filled with pods of a size; 0 for no size."""
    if not cpu_milli or not nodes.n:
        return 0.0
    free = np.maximum(nodes.free(CPU), 0)[usable]
    fits = np.minimum(free // cpu_milli, np.maximum(nodes.allowed_pods - nodes.pod_count, 0)[usable])
    if memory_bytes:
        fits = np.minimum(fits, np.maximum(nodes.free(MEMORY), 0)[usable] // memory_bytes)
    total = int(free.sum())
    return 1.0 - int(fits.sum()) * cpu_milli / total if total else 0.0
