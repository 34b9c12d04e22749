"""PodTopologySpread: keep matching pods evenly spread over zones, hosts or any other topology."""

from kubesched.scheduler.plugins.pod_topology_spread.plugin import PodTopologySpread, PodTopologySpreadArgs

__all__ = ["PodTopologySpread", "PodTopologySpreadArgs"]
