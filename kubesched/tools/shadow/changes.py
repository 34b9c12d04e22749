"""One change of one object, from a watch, and what it means for decisions.

In: an object before and after. Out: the object's key, the pod that the scheduler decided about if the change shows a decision,
the node, and whether decisions about other pods can depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubesched.kube.api import Node, Pod, is_finished

POD = "Pod"
Key = tuple[str, str]
"""An object's kind, and its namespace/name."""
_OF_VOLUMES = frozenset({"PersistentVolume", "PersistentVolumeClaim"})
_OF_DEVICES = frozenset({"ResourceClaim"})


@dataclass(frozen=True, slots=True)
class Change:
    """An object before and after; None if it did not exist. `at` is a monotonic time."""

    at: float
    kind: str
    old: Any | None
    new: Any | None
    of: str = ""
    """The uid of the pod, if the judged scheduler wrote this change because of a decision about it."""
    version: int = 0
    """Its resource version, 0 if unknown. It orders changes of all kinds."""
    key: Key = field(init=False)
    matters: bool = field(init=False)
    """Whether a decision can depend on it; most writes of kubelets are irrelevant."""

    is_from_watch_of_pods: bool = field(init=False)
    """Whether it came by the watch of pods, and was not concluded from another change."""

    def __post_init__(self) -> None:
        some = self.new if self.new is not None else self.old
        assert some is not None
        object.__setattr__(self, "key", (self.kind, some.key))
        object.__setattr__(self, "matters", _matters(self.old, self.new))
        is_direct = self.kind == POD and (self.new is None or self.new.metadata.resource_version == str(self.version))
        object.__setattr__(self, "is_from_watch_of_pods", is_direct)

    @property
    def is_placement(self) -> bool:
        """Return whether a scheduler gave a pod its node."""
        old, new = self.old, self.new
        return isinstance(old, Pod) and isinstance(new, Pod) and not old.spec.node_name and bool(new.spec.node_name)

    @property
    def is_nomination(self) -> bool:
        """Return whether a pending pod was nominated, or lost its nomination."""
        old, new = self.old, self.new
        if not isinstance(old, Pod) or not isinstance(new, Pod) or new.spec.node_name:
            return False
        return old.status.nominated_node_name != new.status.nominated_node_name

    @property
    def where(self) -> str:
        """Return the node that it concerns; empty if it may concern every node."""
        for each in (self.new, self.old):
            if isinstance(each, Node):
                return each.metadata.name
            if isinstance(each, Pod) and (name := each.spec.node_name or each.status.nominated_node_name):
                return name
        return ""

    def matters_to(self, pod: Pod) -> bool:
        """Return whether a decision about another pod could depend on it."""
        if self.kind in _OF_VOLUMES:
            return bool(pod.spec.volumes)
        if self.kind in _OF_DEVICES:
            return uses_devices(pod)
        return self.matters


def _matters(old: Any | None, new: Any | None) -> bool:
    """Return whether a decision can depend on a change."""
    if isinstance(old, Pod) or isinstance(new, Pod):
        known = [each for each in (old, new) if each is not None]
        placed = [each for each in known if each.spec.node_name]
        if not placed:  # a pending pod matters to its group, and on its nominated node
            only = known[0]
            return len(known) == 1 and (only.spec.scheduling_group is not None or bool(only.status.nominated_node_name))
        return len(placed) == 1 or _of_pod(placed[0]) != _of_pod(placed[1])
    if isinstance(old, Node) and isinstance(new, Node):
        return _of_node(old) != _of_node(new)
    return True


def _of_pod(pod: Pod) -> tuple[object, ...]:
    """Return the parts of a pod that decisions depend on."""
    meta = pod.metadata
    return meta.uid, meta.labels, meta.deletion_timestamp is None, pod.spec, is_finished(pod)


def _of_node(node: Node) -> tuple[object, ...]:
    """Return the parts of a node that decisions depend on."""
    status = node.status
    return node.metadata.labels, node.spec, status.allocatable, status.images, status.declared_features


def is_refused(pod: Pod) -> bool:
    """Return whether the last attempt for a pod failed."""
    return any(each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions)


def priority_of(pod: Pod) -> int:
    """Return a pod's priority."""
    return pod.spec.priority or 0


def uses_devices(pod: Pod) -> bool:
    """Return whether a pod may use devices: by claims, or by an extended resource of a DeviceClass."""
    if pod.spec.resource_claims:
        return True
    return any("/" in name for container in pod.spec.containers for name in container.resources.requests)


def device_claims(pod: Pod) -> set[str]:
    """Return the device claims of a pod, as namespace/name."""
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    names = (each.resource_claim_name or made.get(each.name) for each in pod.spec.resource_claims)
    return {f"{pod.metadata.namespace}/{name}" for name in names if name}


def volume_claims(pod: Pod) -> set[str]:
    """Return the volume claims of a pod, as namespace/name."""
    names = set()
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.add(f"{pod.metadata.namespace}/{volume.persistent_volume_claim.claim_name}")
        elif volume.ephemeral is not None:
            names.add(f"{pod.metadata.namespace}/{pod.metadata.name}-{volume.name}")
    return names
