"""Nominated pods: pods that are promised room on a node before they are bound.

A preemption nominates its preemptor, and any client can write status.nominatedNodeName. Filters count a nominated pod as if it
ran on that node, for pods of the same or a lower priority. Example: `high` evicts `low` from node a and is nominated to it.
While `low` terminates, a new pod of priority 0 sees node a with `high` on it, and does not take the room.

Only names are kept; the pod itself is looked up in the queue. A pod that is in flight is not in the queue, and counts as a pod
without requests: kube-scheduler does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from kubesched.kube.api import ObjectMeta, Pod
from kubesched.scheduler.cluster import ChangeLog, PodView
from kubesched.scheduler.framework import Nomination

Lookup = Callable[[str], PodView | None]
"""namespace/name -> the pod, or None"""


class Nominated:
    """Nominations by node, in the order in which they were made. Fulfils `framework.ports.Nominations`."""

    __slots__ = ("_by_node", "_in_queue", "_known", "_node_of", "changes")

    def __init__(self, in_queue: Lookup) -> None:
        self._in_queue = in_queue
        self._known: Lookup | None = None
        self._node_of: dict[str, str] = {}
        self._by_node: dict[str, dict[str, PodView]] = {}
        self.changes: ChangeLog[str] = ChangeLog()

    def verify_with(self, known: Lookup) -> None:
        """Nominate from now on only pods that `known` finds, which are pods without a node. Before that any pod can be
        nominated."""
        self._known = known

    def on_node(self, node_name: str) -> Iterable[PodView]:
        """Return the pods nominated to a node, in the order of their nomination."""
        return [self._in_queue(pod.key) or _bare(pod) for pod in self._by_node.get(node_name, {}).values()]

    def nodes(self) -> Collection[str]:
        """Return the nodes that pods are nominated to."""
        return self._by_node.keys()

    def touch(self, uid: str) -> None:
        """Note that a pod entered or left the queue: if it is nominated, its requests count on its node from now on, or no
        longer."""
        node_name = self._node_of.get(uid)
        if node_name is not None:
            self.changes.append(node_name)

    def node_of(self, uid: str) -> str:
        """Return the node that a pod is nominated to, or an empty name."""
        return self._node_of.get(uid, "")

    def add(self, pod: PodView, nomination: Nomination | None = None) -> None:
        """Nominate a pod to the node of the nomination, or else to the one in its status. An earlier nomination is dropped."""
        if nomination is None and pod.uid not in self._node_of and not pod.pod.status.nominated_node_name:
            return  # most pods
        self.drop(pod.uid)
        node_name = nomination.node_name if nomination is not None else pod.pod.status.nominated_node_name
        if not node_name or (self._known is not None and self._known(pod.key) is None):
            return
        self._node_of[pod.uid] = node_name
        self._by_node.setdefault(node_name, {})[pod.uid] = pod
        self.changes.append(node_name)

    def update(self, old: Pod, new: PodView) -> None:
        """Take a pod's new version. A nomination that neither version has in its status is kept: it is still being written."""
        nomination = None
        if not old.status.nominated_node_name and not new.pod.status.nominated_node_name:
            kept = self._node_of.get(old.metadata.uid)
            nomination = Nomination(kept) if kept is not None else None
        self.drop(old.metadata.uid)
        self.add(new, nomination)

    def saved(self) -> dict[str, tuple[str, PodView]]:
        """Return all nominations, for `restore`: the node and the pod by uid."""
        return {uid: (node, pod) for node, pods in self._by_node.items() for uid, pod in pods.items()}

    def restore(self, saved: dict[str, tuple[str, PodView]]) -> None:
        """Let everybody be nominated as when it was saved."""
        if self.saved() == saved:
            return
        touched = [*self._by_node]
        self._node_of, self._by_node = {}, {}
        for uid, (node, pod) in saved.items():
            self._node_of[uid] = node
            self._by_node.setdefault(node, {})[uid] = pod
        for name in dict.fromkeys((*touched, *self._by_node)):
            self.changes.append(name)

    def drop(self, uid: str) -> None:
        """Drop a pod's nomination, if it has one."""
        node_name = self._node_of.pop(uid, None)
        if node_name is not None:
            here = self._by_node[node_name]
            del here[uid]
            if not here:
                del self._by_node[node_name]
            self.changes.append(node_name)


def _bare(pod: PodView) -> PodView:
    """Return a pod of that name without requests."""
    meta = pod.pod.metadata
    return pod.template.interners.view(Pod(metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid)))
