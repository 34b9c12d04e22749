"""ResourceQuotas: a pod that exceeds the quota of its namespace is not created yet.

In: the quotas, and pods that are created and end. Out: whether a pod may be created. A refused pod waits where no scheduler
sees it. It is created when there is room, the oldest first, as its controller would retry. Usage is computed as the API server
does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from kubesched.embedded.admission.quotas import usage_of
from kubesched.kube.api import Pod, PodSpec, codec
from kubesched.kube.values import quantity
from kubesched.tools.simulation.scenario import Quota

_REQUIRED = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
"""Where one of these is limited, a pod must set it."""


class Quotas:
    """The usage of each quota, and the pods that wait for it."""

    def __init__(self, quotas: Iterable[Quota]) -> None:
        self._hard: dict[str, list[dict[str, int]]] = {}
        for quota in quotas:
            hard = {name: quantity.parse(amount) for name, amount in quota.hard.items()}
            self._hard.setdefault(quota.namespace, []).append(hard)
        self._used: dict[str, Counter[str]] = {namespace: Counter() for namespace in self._hard}
        self._usages: dict[int, tuple[PodSpec, dict[str, int]]] = {}
        self._waiting: dict[str, list[tuple[Pod, Callable[[], object]]]] = {}
        self._charged: dict[str, dict[str, int]] = {}

    @property
    def n_waiting(self) -> int:
        """Return how many pods wait to be created."""
        return sum(map(len, self._waiting.values()))

    def create(self, pod: Pod, come: Callable[[], object]) -> bool:
        """Call `come` now if the quotas allow the pod, else when they do; return whether it was now."""
        namespace = pod.metadata.namespace
        if namespace in self._hard and not self._allows(pod):
            self._waiting.setdefault(namespace, []).append((pod, come))
            return False
        come()
        return True

    def count(self, pod: Pod, sign: int) -> None:
        """Count a pod that was created (1) or ended (-1); an end may let waiting pods in."""
        namespace = pod.metadata.namespace
        if namespace not in self._hard:
            return
        used, uid = self._used[namespace], pod.metadata.uid
        usage = self._charged.setdefault(uid, self._usage(pod)) if sign > 0 else self._charged.pop(uid, {})
        for name, amount in usage.items():
            used[name] += sign * amount
        if sign < 0 and self._waiting.get(namespace):
            waiting, self._waiting[namespace] = self._waiting[namespace], []
            for each, come in waiting:
                self.create(each, come)

    def _allows(self, pod: Pod) -> bool:
        used, usage = self._used[pod.metadata.namespace], self._usage(pod)
        return all(
            used[name] + usage[name] <= amount if name in usage else name not in _REQUIRED
            for hard in self._hard[pod.metadata.namespace]
            for name, amount in hard.items()
        )

    def _usage(self, pod: Pod) -> dict[str, int]:
        """Return what a pod uses, computed once for a spec that many pods share."""
        found = self._usages.get(id(pod.spec))
        if found is None or found[0] is not pod.spec:
            amounts = usage_of("pods", codec.to_dict(pod))
            if len(self._usages) > 1000:
                self._usages.clear()
            found = self._usages[id(pod.spec)] = (pod.spec, {name: quantity.parse(text) for name, text in amounts.items()})
        return found[1]
