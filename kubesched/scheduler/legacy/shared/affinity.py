"""Inter-pod affinity is counted by today's plugin. Predicate and priority share its counters in the state of the attempt."""

from __future__ import annotations

from kubesched.scheduler.framework import Handle
from kubesched.scheduler.legacy.releases import LegacyContext
from kubesched.scheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity, InterPodAffinityArgs


def counting(context: LegacyContext, handle: Handle) -> InterPodAffinity:
    """Return the plugin that counts, with the scheduler's hardPodAffinityWeight."""
    return InterPodAffinity(InterPodAffinityArgs(hard_pod_affinity_weight=context.hard_pod_affinity_weight), handle)
