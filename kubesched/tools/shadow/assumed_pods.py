"""Pods that are decided and not yet bound, as far as what a scheduler writes in between tells.

In: changes as the API tells them. Out: the same as the scheduler sees them. It counts a pod on its node from the decision on,
but binds it only when its volumes are provisioned and its devices are allocated, which may take a minute; meanwhile all others
are decided beside it. Three traces name the node: status.nominatedNodeName, where no preemption wrote it; the annotation
selected-node of a claim; the node of an allocation. From the first of them on the pod is told as if it were placed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import msgspec

from kubesched.kube.api import PersistentVolume, PersistentVolumeClaim, Pod, ResourceClaim
from kubesched.kube.values import SELECTED_NODE
from kubesched.tools.shadow.changes import Change, is_refused, volume_claims

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
        if change.kind == "Pod":
            told = self._of_pod(change, change.old, change.new)
            is_decision = told.is_placement or told.is_nomination
            if is_decision and told.new is not None and told.new.spec.scheduler_name in self._names:
                told = replace(told, of=told.new.metadata.uid)
            yield told
            return
        pod, node_name = self._decided_by(change.old, change.new)
        if pod is None:
            yield change
            return
        uid = pod.metadata.uid
        yield replace(change, of=uid)
        if node_name and pod.key not in self._told:
            self._told[pod.key] = placed = _on(pod, node_name)
            yield Change(change.at, "Pod", pod, placed, uid, change.version)

    def _decided_by(self, old: Any | None, new: Any | None) -> tuple[Pod | None, str]:
        """Return the pod that a change of a claim or volume was made for, and the node if it says one."""
        if old is None or new is None:
            return None, ""
        if isinstance(new, PersistentVolumeClaim):
            node_name = new.metadata.annotations.get(SELECTED_NODE, "")
            is_new = bool(node_name) and old.metadata.annotations.get(SELECTED_NODE) != node_name
            return (self._user_of(new.key), node_name) if is_new else (None, "")
        if isinstance(new, PersistentVolume):
            claim = new.spec.claim_ref
            is_new = claim is not None and old.spec.claim_ref is None
            return (self._user_of(f"{claim.namespace}/{claim.name}"), "") if claim is not None and is_new else (None, "")
        if isinstance(new, ResourceClaim):
            by_uid = {user.uid for user in new.status.reserved_for} - {user.uid for user in old.status.reserved_for}
            is_allocated_now = new.status.allocation is not None and old.status.allocation is None
            if len(by_uid) == 1:
                return self._waiting.get(by_uid.pop()), _node_of(new) if is_allocated_now else ""
        return None, ""

    def _user_of(self, claim: str) -> Pod | None:
        """Return the one pod that waits for a volume claim."""
        users = self._users.get(claim, ())
        return self._waiting.get(next(iter(users))) if len(users) == 1 else None

    def _of_pod(self, change: Change, old: Pod | None, new: Pod | None) -> Change:
        before = old
        if old is not None:
            before = self._told.pop(old.key, old)
            self._forget(old)
        if new is None or new.spec.node_name or new.spec.scheduler_name not in self._names:
            return replace(change, old=before, new=new)
        if new.spec.volumes or new.spec.resource_claims:
            self._remember(new)
        # After a failed attempt a nomination is a preemption's, and counts less than a placement.
        node_name = new.status.nominated_node_name if not is_refused(new) else ""
        if not node_name and before is not old and before is not None and old is not None and not _gave_up(old, new):
            node_name = before.spec.node_name
        if node_name:
            new = self._told[new.key] = _on(new, node_name)
        return replace(change, old=before, new=new)

    def _remember(self, pod: Pod) -> None:
        self._waiting[pod.key] = self._waiting[pod.metadata.uid] = pod
        for name in volume_claims(pod):
            self._users.setdefault(name, set()).add(pod.key)

    def _forget(self, pod: Pod) -> None:
        if self._waiting.pop(pod.key, None) is None:
            return
        self._waiting.pop(pod.metadata.uid, None)
        for name in volume_claims(pod):
            users = self._users.get(name, set())
            users.discard(pod.key)
            if not users:
                self._users.pop(name, None)


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
    names = [each.values or () for each in terms[0].match_fields if each.key == _NODE_FIELD and each.operator == "In"]
    return names[0][0] if names and len(names[0]) == 1 else ""


def _on(pod: Pod, node_name: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))
