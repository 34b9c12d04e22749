"""For whom pods are evicted."""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.scheduler.cluster import PodView


@dataclass(frozen=True, slots=True)
class Preemptor:
    """A pod, or a group of pods as a whole, for which others go. `pods` are tried again if nothing else wakes them."""

    kind: str
    uid: str
    key: str
    scheduler_name: str
    priority: int
    pods: tuple[PodView, ...]

    @classmethod
    def of(cls, pod: PodView) -> Preemptor:
        """Return a pod as the one for whom others go."""
        return cls("pod", pod.uid, pod.key, pod.pod.spec.scheduler_name, pod.priority, (pod,))
