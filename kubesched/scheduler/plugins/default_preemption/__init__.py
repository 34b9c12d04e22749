"""DefaultPreemption: when nothing fits, find the cheapest pods of lower priority to evict."""

from kubesched.scheduler.plugins.default_preemption.plugin import DefaultPreemption, DefaultPreemptionArgs

__all__ = ["DefaultPreemption", "DefaultPreemptionArgs"]
