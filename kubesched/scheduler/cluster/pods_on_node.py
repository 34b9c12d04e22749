"""The pods of one node, in the order of kube-scheduler's NodeInfo.

In: pods that are added, changed and removed. Out: the pods in order. Removing a pod moves the last pod into its place; changing
a pod removes it and adds it at the end. Example: of a, b, c the pod a changes: c, b, a. Preemption evicts equally important
pods in this order, so it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kubesched.scheduler.cluster.pods import PodView


class PodsOnNode(Mapping[str, PodView]):
    """Pods by uid; `pods` has them in order, borrowed."""

    __slots__ = ("_at", "pods")

    def __init__(self) -> None:
        self.pods: list[PodView] = []
        self._at: dict[str, int] = {}

    def __getitem__(self, uid: str) -> PodView:
        return self.pods[self._at[uid]]

    def __iter__(self) -> Iterator[str]:
        return (pod.uid for pod in self.pods)

    def __len__(self) -> int:
        return len(self.pods)

    def add(self, pod: PodView) -> None:
        """Add a pod at the end."""
        self._at[pod.uid] = len(self.pods)
        self.pods.append(pod)

    def remove(self, uid: str) -> None:
        """Remove a pod; the last one takes its place."""
        at = self._at.pop(uid)
        last = self.pods.pop()
        if at < len(self.pods):
            self.pods[at] = last
            self._at[last.uid] = at

    def place_of(self, uid: str) -> int:
        """Return how many pods stand before a pod."""
        return self._at[uid]

    def put_back(self, pod: PodView, at: int) -> None:
        """Undo `remove`: let a pod stand where it stood, and the pod that took its place be the last again."""
        if at < len(self.pods):
            last, self.pods[at] = self.pods[at], pod
            self._at[pod.uid] = at
            self.add(last)
        else:
            self.add(pod)

    def replace(self, pod: PodView) -> bool:
        """Replace a pod by its new version, at the end; return whether the order changed."""
        pods, at, end = self.pods, self._at[pod.uid], len(self.pods) - 1
        if at < end:
            last = pods[at] = pods[end]
            self._at[last.uid], self._at[pod.uid] = at, end
        pods[end] = pod
        return at < end

    def reorder(self, uids: Iterable[str]) -> None:
        """Restore an earlier order."""
        self.pods[:] = [self[uid] for uid in uids]
        self._at = {pod.uid: at for at, pod in enumerate(self.pods)}


NOBODY = PodsOnNode()
"""The pods of a node that has none, or is not here."""
