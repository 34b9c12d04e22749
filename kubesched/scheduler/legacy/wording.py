"""Why a pod could not be placed, in the words of each release.

In: a pod and the diagnosis of an ordinary attempt. Out: the text of the event and of the pod's condition. A node that
was not even listed (up to 1.6) is not mentioned, and neither is what preemption found out.
"""

from __future__ import annotations

from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine import NO_NODES
from kubesched.scheduler.framework import Diagnosis
from kubesched.scheduler.legacy.releases import Release


def fit_error(pod: PodView, diagnosis: Diagnosis, release: Release) -> str:
    """Return the message of a pod that fits no node."""
    statuses = diagnosis.statuses()
    if not diagnosis.n_nodes or (release.lists_ready_nodes and not statuses):
        return NO_NODES
    if release.minor < 5:
        lines = [f"fit failure on node ({node}): {', '.join(status.reasons)}\n" for node, status in sorted(statuses.items())]
        return f"pod ({pod.name}) failed to fit in any node\n{''.join(lines)}"
    if release.minor < 10:
        counts: dict[str, int] = {}
        for status in statuses.values():
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + 1
        listed = ", ".join(sorted(f"{reason} ({count})" for reason, count in counts.items()))
        return f"No nodes are available that match all of the following predicates:: {listed}."
    if diagnosis.pre_filter_message:
        return f"0/{diagnosis.n_nodes} nodes are available: {diagnosis.pre_filter_message}."
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in diagnosis.histogram().items()))
    return f"0/{diagnosis.n_nodes} nodes are available: {listed}."
