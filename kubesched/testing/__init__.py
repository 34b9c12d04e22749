"""For us and for plugin authors: builders of objects, fakes of the outside, random clusters, the plugin contract."""

from kubesched.testing.builders import even, namespace, near, node, pod, taint
from kubesched.testing.contract import check_plugin
from kubesched.testing.fakes import FakeClock, FakeRecorder, FakeWriter

__all__ = ["FakeClock", "FakeRecorder", "FakeWriter", "check_plugin", "even", "namespace", "near", "node", "pod", "taint"]
