"""NodeResourcesFit: refuse nodes that cannot hold a pod's requests, and score the others by how full they would be."""

from kubesched.scheduler.plugins.node_resources_fit.plugin import NodeResourcesFit, NodeResourcesFitArgs

__all__ = ["NodeResourcesFit", "NodeResourcesFitArgs"]
