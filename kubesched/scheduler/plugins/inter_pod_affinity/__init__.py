"""InterPodAffinity: place pods next to, or away from, other pods."""

from kubesched.scheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity, InterPodAffinityArgs

__all__ = ["InterPodAffinity", "InterPodAffinityArgs"]
