"""Which plugins refused which nodes, and why, read off the columns of an attempt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kubesched.scheduler.engine.deciding.attempt import Attempt
from kubesched.scheduler.framework import EXAMPLES


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason, with the number of nodes that it refused and the names of a few."""

    plugin: str
    reason: str
    count: int
    helps_to_evict: bool
    examples: tuple[str, ...]


def refusals_of(made: Attempt) -> list[Refusal]:
    """Return which plugins refused how many nodes for which reasons, the largest number first. A node that several plugins
    refuse counts for the first one."""
    verdicts = made.verdicts
    if verdicts is None:
        status = made.pre_filtered.status if made.pre_filtered is not None else None
        if status is None:
            return []
        return [Refusal(status.plugin, reason, made.nodes.n, False, ()) for reason in status.reasons]
    found: list[Refusal] = []
    considered = verdicts.considered if verdicts.considered is not None else np.ones(made.nodes.n, dtype=np.bool_)
    for number, (plugin, rejections) in enumerate(verdicts.columns):
        if rejections.bits is None:
            continue
        # `owner` is the first filter that refused a node. Every filter has judged every node, so without it a node would be
        # counted for each.
        mine = (verdicts.owner == number) & considered
        for i, reason in enumerate(rejections.reasons):
            rows = np.flatnonzero(mine & rejections.has(i))
            if len(rows):
                names = tuple(made.nodes.name(row) for row in rows[:EXAMPLES].tolist())
                found.append(Refusal(plugin, reason.text, len(rows), reason.resolvable, names))
    left_out = int(np.count_nonzero(~considered))
    if left_out and made.pre_filtered is not None:
        status = made.pre_filtered.absent
        found.append(Refusal("", status.message, left_out, False, ()))
    return sorted(found, key=lambda refusal: -refusal.count)
