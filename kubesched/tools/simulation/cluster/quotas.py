"""Quotas: pods that are not created as long as their namespace has used up what it may.

In: how much each namespace may use, and pods that come and go. Out: whether a pod may be created; those that may not wait
outside, where no scheduler sees them, and are created as soon as there is enough for them, the oldest first: their controllers
try again and again. What a pod uses is counted as the API server counts it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from kubesched.embedded.admission.quotas import usage_of
from kubesched.kube.api import Pod, PodSpec, codec
from kubesched.kube.values import quantity
from kubesched.tools.simulation.scenario import Quota

_MUST_BE_SAID = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
"""A pod that does not say these is refused where they are limited."""


class Quotas:
    """What is used of every quota, and who waits for it."""

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
        """Return how many pods are not created yet."""
        return sum(map(len, self._waiting.values()))

    def create(self, pod: Pod, come: Callable[[], object]) -> bool:
        """Let a pod come if its namespace may have it; otherwise as soon as it may. Return whether it did."""
        namespace = pod.metadata.namespace
        if namespace in self._hard and not self._allows(pod):
            self._waiting.setdefault(namespace, []).append((pod, come))
            return False
        come()
        return True

    def count(self, pod: Pod, sign: int) -> None:
        """Take notice that a pod came (1) or went (-1); what waits may come then."""
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
            used[name] + usage[name] <= amount if name in usage else name not in _MUST_BE_SAID
            for hard in self._hard[pod.metadata.namespace]
            for name, amount in hard.items()
        )

    def _usage(self, pod: Pod) -> dict[str, int]:
        """Return what a pod uses; pods of one workload share their spec, which is read once."""
        found = self._usages.get(id(pod.spec))
        if found is None or found[0] is not pod.spec:
            asked = usage_of("pods", codec.to_dict(pod))
            if len(self._usages) > 1000:
                self._usages.clear()
            found = self._usages[id(pod.spec)] = (pod.spec, {name: quantity.parse(text) for name, text in asked.items()})
        return found[1]
