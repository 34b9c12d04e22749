"""Finds pods that the live scheduler has assumed and not yet bound, by what it writes between the two.

In: changes from the API server. Out: the changes as the scheduler sees them. The scheduler counts a pod on its node from the
decision on. It binds the pod only when its volumes are provisioned and its devices allocated, which may take a minute, and
decides other pods meanwhile. Three traces name the node: `status.nominatedNodeName` without a preemption, the annotation
`selected-node` of a claim, and the node of an allocation. After the first of them the pod is shown as placed.
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
    """Follows pending pods; `names` are the `schedulerName`s of the judged scheduler."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._waiting: dict[str, Pod] = {}
        """Pending pods with volumes or devices, by namespace/name and by uid."""
        self._users: dict[str, set[str]] = {}
        """The pending pods of each volume claim, all by namespace/name."""
        self._assumed: dict[str, Pod] = {}
        """Assumed pods as they were shown last, by namespace/name."""

    def as_seen(self, change: Change) -> Iterator[Change]:
        """Yield a change as the scheduler sees it; if it is a trace of a decision, also the placement."""
        if change.kind == "Pod":
            seen = self._of_pod(change, change.old, change.new)
            is_decision = seen.is_placement or seen.is_nomination
            if is_decision and seen.new is not None and seen.new.spec.scheduler_name in self._names:
                seen = replace(seen, of=seen.new.metadata.uid)
            yield seen
            return
        pod, node_name = self._decided_by(change.old, change.new)
        if pod is None:
            yield change
            return
        uid = pod.metadata.uid
        yield replace(change, of=uid)
        if node_name and pod.key not in self._assumed:
            self._assumed[pod.key] = placed = _on(pod, node_name)
            yield Change(change.at, "Pod", pod, placed, uid, change.version)

    def _decided_by(self, old: Any | None, new: Any | None) -> tuple[Pod | None, str]:
        """Return the pod for which a claim or volume was changed, and the node if the change names one."""
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
        """Return the pending pod that uses a volume claim; None if there are several."""
        users = self._users.get(claim, ())
        return self._waiting.get(next(iter(users))) if len(users) == 1 else None

    def _of_pod(self, change: Change, old: Pod | None, new: Pod | None) -> Change:
        before = old
        if old is not None:
            before = self._assumed.pop(old.key, old)
            self._forget(old)
        if new is None or new.spec.node_name or new.spec.scheduler_name not in self._names:
            return replace(change, old=before, new=new)
        if new.spec.volumes or new.spec.resource_claims:
            self._remember(new)
        # After a failed attempt, a nomination comes from a preemption: the pod is not assumed.
        node_name = new.status.nominated_node_name if not is_refused(new) else ""
        if not node_name and before is not old and before is not None and old is not None and not _gave_up(old, new):
            node_name = before.spec.node_name
        if node_name:
            new = self._assumed[new.key] = _on(new, node_name)
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
    """Return whether a decision was undone: the attempt failed later, or the nomination was removed."""
    lost = bool(old.status.nominated_node_name) and not new.status.nominated_node_name
    return lost or (is_refused(new) and not is_refused(old))


def _node_of(claim: ResourceClaim) -> str:
    """Return the only node that can use an allocation; empty if there are several."""
    allocation = claim.status.allocation
    selector = allocation.node_selector if allocation is not None else None
    terms = selector.node_selector_terms if selector is not None else ()
    if len(terms) != 1:
        return ""
    names = [each.values or () for each in terms[0].match_fields if each.key == _NODE_FIELD and each.operator == "In"]
    return names[0][0] if names and len(names[0]) == 1 else ""


def _on(pod: Pod, node_name: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))
