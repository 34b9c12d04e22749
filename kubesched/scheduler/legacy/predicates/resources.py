"""PodFitsResources: the node must have room for one more pod and for everything that it asks for.

Unlike today, a pod that asks for anything at all is measured against cpu, memory and ephemeral storage even where it
asks for none of them: on a node that is overbooked in one of them, it does not fit.
"""

from __future__ import annotations

from kubesched.kube.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from kubesched.scheduler.cluster import PodView, Snapshot
from kubesched.scheduler.framework import CycleState, Input, Reason, Rejections
from kubesched.scheduler.legacy.predicates.base import Cases, Predicate
from kubesched.scheduler.legacy.shared.pod_requests import asked

GPU = "alpha.kubernetes.io/nvidia-gpu"
OPAQUE_PREFIX = "pod.alpha.kubernetes.io/opaque-int-resource-"
_NAMES_OF_1_3 = {"pods": "PodCount", CPU: "CPU", MEMORY: "Memory", GPU: "NvidiaGpu"}


class PodFitsResources(Predicate):
    depends_on = (Input.POD_TEMPLATE, Input.NODE, Input.PODS_ON_NODE)

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        cases: Cases = [(nodes.pod_count >= nodes.allowed_pods, self._short_of("pods"))]
        fitting = asked(pod, overhead=self.context.gates.pod_overhead).fitting
        native = [name for name in (CPU, MEMORY, EPHEMERAL_STORAGE) if self._counts(name)]
        others = [name for name in fitting if name not in native and self._counts(name)]
        if others or any(fitting.get(name, 0) for name in native):
            for name in native + [name for name in others if name not in self.context.ignored_resources]:
                resource = nodes.resource(name)
                short = nodes.allocatable(resource) < nodes.requested(resource) + fitting.get(name, 0)
                cases.append((short, self._short_of(name)))
        cases = [case for case in cases if case[0].any()]
        return self.refuse(nodes, cases)

    def _counts(self, name: str) -> bool:
        """Return whether the release knew a resource."""
        if self.release.minor >= 8:
            return True
        return name in (CPU, MEMORY, GPU) or (self.release.minor >= 5 and name.startswith(OPAQUE_PREFIX))

    def _short_of(self, name: str) -> Reason:
        shown = _NAMES_OF_1_3.get(name, name) if self.release.minor == 3 else name
        return Reason(f"Insufficient {shown}")
