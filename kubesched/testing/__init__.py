"""For tests of plugins: builders of objects, fakes of clock, API and events, random clusters, and `check_plugin`."""

from kubesched.testing.builders import even, namespace, near, node, pod, taint
from kubesched.testing.contract import check_plugin
from kubesched.testing.fakes import FakeClock, FakeRecorder, FakeWriter

__all__ = ["FakeClock", "FakeRecorder", "FakeWriter", "check_plugin", "even", "namespace", "near", "node", "pod", "taint"]
