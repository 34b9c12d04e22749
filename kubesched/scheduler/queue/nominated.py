"""Nominated pods: who waits for which node's pods to go away.

A pod is nominated by a preemption, or by whoever writes status.nominatedNodeName. Others treat it as if it were on that
node already. The books hold references; the pod itself is looked up in the queue when it is asked for. One that is not
in the queue just now (it is being tried) counts as a bare pod that asks for nothing, as in the reference.
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
        """From now on nominate only pods that are known as unassigned; without this everybody's word is taken."""
        self._known = known

    def on_node(self, node_name: str) -> Iterable[PodView]:
        """Return the pods nominated to a node, in the order of their nomination."""
        return [self._in_queue(pod.key) or _bare(pod) for pod in self._by_node.get(node_name, {}).values()]

    def nodes(self) -> Collection[str]:
        """Return the nodes that pods are nominated to."""
        return self._by_node.keys()

    def touch(self, uid: str) -> None:
        """Take notice that a pod entered the queue or left it: if it is nominated, it counts otherwise than before."""
        node_name = self._node_of.get(uid)
        if node_name is not None:
            self.changes.append(node_name)

    def node_of(self, uid: str) -> str:
        """Return the node that a pod is nominated to, or an empty name."""
        return self._node_of.get(uid, "")

    def may_change(self, pod: PodView) -> bool:
        """Return whether adding the pod without a nomination of its own would do anything; most pods need no call."""
        return pod.uid in self._node_of or pod.pod.status.nominated_node_name != ""

    def add(self, pod: PodView, nomination: Nomination | None = None) -> None:
        """Nominate a pod, to the node that the nomination names or else to the one in its status; an earlier nomination
        is dropped in any case."""
        self.drop(pod.uid)
        node_name = nomination.node_name if nomination is not None else pod.pod.status.nominated_node_name
        if not node_name or (self._known is not None and self._known(pod.key) is None):
            return
        self._node_of[pod.uid] = node_name
        self._by_node.setdefault(node_name, {})[pod.uid] = pod
        self.changes.append(node_name)

    def update(self, old: Pod, new: PodView) -> None:
        """Follow a pod's new version. A nomination that no version knows of yet is kept: it is being written."""
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
    """Return a pod of that name that asks for nothing."""
    meta = pod.pod.metadata
    return pod.template.interners.view(Pod(metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid)))
