"""One change to one object, as a watch tells it, and what it means to decisions.

In: an object as it was and as it became. Out: which object, whether a scheduler decided something by it and about whom, on
which node it took place, and whether a decision about another pod could depend on it.
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
    """An object as it was and as it became; None stands for "not there". `at` is a monotonic time."""

    at: float
    kind: str
    old: Any | None
    new: Any | None
    of: str = ""
    """The uid of the pod about which the scheduler that is judged decided, if this is what it wrote about it."""
    version: int = 0
    """The version of the cluster with which it came, if that is known: the order in which things happened, over all kinds."""
    key: Key = field(init=False)
    matters: bool = field(init=False)
    """Whether any decision could depend on it: most of what kubelets write is of no concern."""

    is_from_watch_of_pods: bool = field(init=False)
    """Whether the watch of pods told it, and we did not conclude it from something else."""

    def __post_init__(self) -> None:
        some = self.new if self.new is not None else self.old
        assert some is not None
        object.__setattr__(self, "key", (self.kind, some.key))
        object.__setattr__(self, "matters", _matters(self.old, self.new))
        is_told = self.kind == POD and (self.new is None or self.new.metadata.resource_version == str(self.version))
        object.__setattr__(self, "is_from_watch_of_pods", is_told)

    @property
    def is_placement(self) -> bool:
        """Return whether a scheduler gave a pod its node."""
        old, new = self.old, self.new
        return isinstance(old, Pod) and isinstance(new, Pod) and not old.spec.node_name and bool(new.spec.node_name)

    @property
    def is_nomination(self) -> bool:
        """Return whether a pod that waits was promised a node, or lost it."""
        old, new = self.old, self.new
        if not isinstance(old, Pod) or not isinstance(new, Pod) or new.spec.node_name:
            return False
        return old.status.nominated_node_name != new.status.nominated_node_name

    @property
    def where(self) -> str:
        """Return the node on which it took place; empty for what may concern every node."""
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
    if isinstance(old, Pod) or isinstance(new, Pod):
        known = [each for each in (old, new) if each is not None]
        placed = [each for each in known if each.spec.node_name]
        if not placed:  # a waiting pod that comes or goes matters to its group, and where a node is promised to it
            only = known[0]
            return len(known) == 1 and (only.spec.scheduling_group is not None or bool(only.status.nominated_node_name))
        return len(placed) == 1 or _of_pod(placed[0]) != _of_pod(placed[1])
    if isinstance(old, Node) and isinstance(new, Node):
        return _of_node(old) != _of_node(new)
    return True


def _of_pod(pod: Pod) -> tuple[object, ...]:
    meta = pod.metadata
    return meta.uid, meta.labels, meta.deletion_timestamp is None, pod.spec, is_finished(pod)


def _of_node(node: Node) -> tuple[object, ...]:
    status = node.status
    return node.metadata.labels, node.spec, status.allocatable, status.images, status.declared_features


def is_refused(pod: Pod) -> bool:
    """Return whether the last attempt for a pod failed."""
    return any(each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions)


def priority_of(pod: Pod) -> int:
    """Return how important a pod is."""
    return pod.spec.priority or 0


def uses_devices(pod: Pod) -> bool:
    """Return whether a pod may be given devices: by claims, or by an extended resource that a class stands for."""
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
