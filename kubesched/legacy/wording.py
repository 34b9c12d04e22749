"""Why a pod could not be placed, in the words of each release.

In: an `Unschedulable` decision of the ordinary cycle. Out: the text of the event and of the pod's condition. A node
that was not even listed (up to 1.6) is not mentioned.
"""

from __future__ import annotations

from kubesched.engine.cycle import NO_NODES
from kubesched.framework import Unschedulable
from kubesched.legacy.releases import Release


def fit_error(decision: Unschedulable, release: Release) -> str:
    """Return the message of a pod that fits no node."""
    diagnosis = decision.diagnosis
    statuses = diagnosis.statuses()
    if not diagnosis.n_nodes or (release.lists_ready_nodes and not statuses):
        return NO_NODES
    if release.minor < 5:
        lines = [f"fit failure on node ({node}): {', '.join(status.reasons)}\n"
                 for node, status in sorted(statuses.items())]
        return f"pod ({decision.pod.name}) failed to fit in any node\n{''.join(lines)}"
    if release.minor < 10:
        counts: dict[str, int] = {}
        for status in statuses.values():
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + 1
        listed = ", ".join(sorted(f"{reason} ({count})" for reason, count in counts.items()))
        return f"No nodes are available that match all of the following predicates:: {listed}."
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in diagnosis.histogram().items()))
    return f"0/{diagnosis.n_nodes} nodes are available: {listed}."
