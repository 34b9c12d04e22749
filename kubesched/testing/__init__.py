"""For us and for plugin authors: builders of objects, random clusters, the plugin contract."""

from kubesched.testing.builders import even, namespace, near, node, pod, taint
from kubesched.testing.contract import check_plugin

__all__ = ["check_plugin", "even", "namespace", "near", "node", "pod", "taint"]
