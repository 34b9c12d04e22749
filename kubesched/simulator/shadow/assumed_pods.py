"""Pods that are decided and not yet bound, as far as what a scheduler writes in between tells.

In: changes as the API tells them. Out: the same as the scheduler sees them. It counts a pod on its node from the decision on,
but binds it only when its volumes are provisioned and its devices are allocated, which may take a minute; meanwhile all others
are decided beside it. Three traces name the node: status.nominatedNodeName, where no preemption wrote it; the annotation
selected-node of a claim; the node of an allocation. From the first of them on the pod is told as if it were placed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from kubesched.api.pod import Pod
from kubesched.api.resource import ResourceClaim
from kubesched.api.storage import PersistentVolumeClaim
from kubesched.simulator.shadow.history import Change
from kubesched.simulator.shadow.races import claim_names, is_refused

SELECTED_NODE = "volume.kubernetes.io/selected-node"
_NODE_FIELD = "metadata.name"


class AssumedPods:
    """Follows the pods that wait; `names` are those that the scheduler answers to."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._waiting: dict[str, Pod] = {}
        """Those that have volumes or devices to wait for, by namespace/name and by uid."""
        self._users: dict[str, set[str]] = {}
        """Who waits for a volume claim, both by namespace/name."""
        self._told: dict[str, Pod] = {}
        """Pods that were promised a node, as they were told last."""

    def told(self, change: Change) -> Iterator[Change]:
        """Yield a change as the scheduler sees it, and what it has decided if the change is a trace of that."""
        old, new = change.old, change.new
        if change.kind == "Pod":
            yield self._of_pod(change, old, new)
            return
        yield change
        pod, node_name = None, ""
        if isinstance(new, PersistentVolumeClaim) and old is not None:
            node_name = new.metadata.annotations.get(SELECTED_NODE, "")
            users = self._users.get(new.key, ())
            if node_name and old.metadata.annotations.get(SELECTED_NODE) != node_name and len(users) == 1:
                pod = self._waiting.get(next(iter(users)))
        elif isinstance(new, ResourceClaim) and new.status.allocation is not None:
            node_name = _node_of(new)
            by_uid = {user.uid for user in new.status.reserved_for}
            if node_name and len(by_uid) == 1 and isinstance(old, ResourceClaim) and old.status.allocation is None:
                pod = self._waiting.get(by_uid.pop())
        if pod is not None and pod.key not in self._told:
            self._told[pod.key] = placed = _on(pod, node_name)
            yield Change(change.at, "Pod", pod, placed)

    def _of_pod(self, change: Change, old: Pod | None, new: Pod | None) -> Change:
        before = old
        if old is not None:
            before = self._told.pop(old.key, old)
            self._forget(old)
        if new is None or new.spec.node_name or new.spec.scheduler_name not in self._names:
            return Change(change.at, "Pod", before, new)
        if new.spec.volumes or new.spec.resource_claims:
            self._remember(new)
        # After a failed attempt a nomination is a preemption's, and counts less than a placement.
        node_name = new.status.nominated_node_name if not is_refused(new) else ""
        if not node_name and before is not old and before is not None and old is not None and not _gave_up(old, new):
            node_name = before.spec.node_name
        if node_name:
            new = self._told[new.key] = _on(new, node_name)
        return Change(change.at, "Pod", before, new)

    def _remember(self, pod: Pod) -> None:
        self._waiting[pod.key] = self._waiting[pod.metadata.uid] = pod
        for name in claim_names(pod):
            self._users.setdefault(f"{pod.metadata.namespace}/{name}", set()).add(pod.key)

    def _forget(self, pod: Pod) -> None:
        if self._waiting.pop(pod.key, None) is None:
            return
        self._waiting.pop(pod.metadata.uid, None)
        for name in claim_names(pod):
            key = f"{pod.metadata.namespace}/{name}"
            users = self._users.get(key, set())
            users.discard(pod.key)
            if not users:
                self._users.pop(key, None)


def _gave_up(old: Pod, new: Pod) -> bool:
    """Return whether a decision was taken back: the attempt failed after all, or the node is no longer expected."""
    lost = bool(old.status.nominated_node_name) and not new.status.nominated_node_name
    return lost or (is_refused(new) and not is_refused(old))


def _node_of(claim: ResourceClaim) -> str:
    """Return the one node on which what is allocated can be used; empty if there are several."""
    allocation = claim.status.allocation
    selector = allocation.node_selector if allocation is not None else None
    terms = selector.node_selector_terms if selector is not None else ()
    if len(terms) != 1:
        return ""
    names = [each.values for each in terms[0].match_fields if each.key == _NODE_FIELD and each.operator == "In"]
    return names[0][0] if names and len(names[0]) == 1 else ""


def _on(pod: Pod, node_name: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))
