"""Nominated pods that a test sets by hand, without a queue."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kubesched.scheduler.cluster import ChangeLog, PodView


class Nominations:
    """Nominated pods by node, in the order in which they were nominated."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, PodView]] = {}
        self.changes: ChangeLog[str] = ChangeLog()

    def put(self, pod: PodView, node_name: str) -> None:
        """Nominate a pod to a node, and to no other."""
        self.drop(pod.uid)
        self._pods.setdefault(node_name, {})[pod.uid] = pod
        self.changes.append(node_name)

    def drop(self, uid: str) -> None:
        """Remove a nomination, if there is one."""
        for node_name, pods in list(self._pods.items()):
            if pods.pop(uid, None) is not None:
                self.changes.append(node_name)
                if not pods:
                    del self._pods[node_name]

    def on_node(self, node_name: str) -> Iterable[PodView]:
        """Return the pods nominated to a node."""
        return tuple(self._pods.get(node_name, {}).values())

    def nodes(self) -> Collection[str]:
        """Return the nodes that pods are nominated to."""
        return tuple(self._pods)
