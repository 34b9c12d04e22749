"""How well a node's storage suits a pod's claims: VolumeBinding's Score, behind the gate StorageCapacityScoring.

In: a plan. Out: 0 to 100 for every node. For each storage class the share of the storage that the claims would use is
put through a broken line; the default prefers nodes with much left. Where existing volumes are given, only they count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from kubesched.kube.values import quantity
from kubesched.scheduler.cluster import Bools, Ints
from kubesched.scheduler.plugins.shared.volumes import requested_nano
from kubesched.scheduler.plugins.volume_binding.capacities import total_bytes
from kubesched.scheduler.plugins.volume_binding.open_volumes import NONE
from kubesched.scheduler.plugins.volume_binding.plan import DelayedClaim, VolumePlan


class _Share:
    """What the claims of one class ask for and what there is, row by row."""

    def __init__(self, n: int) -> None:
        self.requested = np.zeros(n, dtype=np.int64)
        self.available = np.zeros(n, dtype=np.int64)
        self.counts = np.zeros(n, dtype=np.bool_)

    def ask(self, delayed: DelayedClaim, rows: Bools) -> None:
        """Count what a claim asks for on some rows."""
        self.counts |= rows
        self.requested[rows] += quantity.value(requested_nano(delayed.claim))


def storage_scores(plan: VolumePlan, line: Ints) -> Ints:
    """Return the score of every row of the whole cluster."""
    n = plan.nodes.n
    given = np.zeros(n, dtype=np.bool_)
    existing: defaultdict[str, _Share] = defaultdict(lambda: _Share(n))
    made: defaultdict[str, _Share] = defaultdict(lambda: _Share(n))
    for delayed in plan.delayed:
        given |= delayed.chosen != NONE
        _add_existing(delayed, existing)
        _add_made(delayed, made)
    return np.where(given, _average(existing.values(), line, n), _average(made.values(), line, n))


def _add_existing(delayed: DelayedClaim, shares: defaultdict[str, _Share]) -> None:
    # Volumes are found by class, and only an old annotation makes the class in their spec another one.
    by_class: defaultdict[str, list[int]] = defaultdict(list)
    for at in np.unique(delayed.chosen[delayed.chosen != NONE]).tolist():
        by_class[delayed.volumes[at].spec.storage_class_name].append(at)
    for name, volumes in by_class.items():
        mine = np.isin(delayed.chosen, volumes)
        shares[name].ask(delayed, mine)
        shares[name].available[mine] += delayed.sizes[delayed.chosen[mine]]


def _add_made(delayed: DelayedClaim, shares: defaultdict[str, _Share]) -> None:
    if delayed.capacity is None:
        return
    rows = delayed.provisioned & (delayed.capacity != NONE)
    if rows.any():
        totals = np.array([total_bytes(capacity) or 0 for capacity in delayed.capacities], dtype=np.int64)
        shares[delayed.class_name].ask(delayed, rows)
        shares[delayed.class_name].available[rows] = totals[delayed.capacity[rows]]


def _average(shares: Iterable[_Share], line: Ints, n: int) -> Ints:
    total, classes = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for share in shares:
        full = (share.available == 0) | (share.requested > share.available)
        percent = np.where(full, 100, share.requested * 100 // np.where(full, 1, share.available))
        total += np.where(share.counts, line[np.clip(percent, 0, 100)], 0)
        classes += share.counts
    # Rounded to the nearest, halves up; no class at all gives 0.
    return np.where(classes > 0, (2 * total + classes) // np.maximum(2 * classes, 1), 0)
