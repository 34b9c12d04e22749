"""Inter-pod affinity is counted by today's plugin: predicate and priority of one scheduler read the same counters.

The counters stand in an attempt's state under that plugin's name, so whoever comes first builds them.
"""

from __future__ import annotations

from kubesched.scheduler.framework import Handle
from kubesched.scheduler.legacy.releases import LegacyContext
from kubesched.scheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity, InterPodAffinityArgs


def counting(context: LegacyContext, handle: Handle) -> InterPodAffinity:
    """Return the plugin that counts, with the scheduler's weight for required affinity."""
    return InterPodAffinity(InterPodAffinityArgs(hard_pod_affinity_weight=context.hard_pod_affinity_weight), handle)
