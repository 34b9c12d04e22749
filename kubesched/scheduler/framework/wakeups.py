"""Cluster events, and the hints that tell whether an event may help a waiting pod.

A plugin declares the events that could change its answer: `wakes_on = (on(NODE, ADD | NODE_TAINTS, "node_may_help"), ...)`. The
third argument names a method of the plugin, `node_may_help(pod, old, new) -> bool`. It gets the object before and after the
event; None means that it did not exist. Without a method the event always wakes the pod. The queue knows events and hints,
not plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntFlag
from typing import Any, NamedTuple

from kubesched.scheduler.cluster import PodView


class Action(IntFlag):
    """What happened to an object. The numbers are those of 1.37, as their order is part of how events match; 1.36 has two
    fewer, in the same order."""

    ADD = 1
    DELETE = 2
    NODE_ALLOCATABLE = 4
    NODE_LABELS = 8
    NODE_TAINTS = 16
    NODE_CONDITIONS = 32
    NODE_ANNOTATIONS = 64
    NODE_FEATURES = 128
    NODE_PREEMPTION_POLICY = 256
    POD_LABELS = 512
    POD_SCALE_DOWN = 1024
    POD_SCALE_UP = 2048
    POD_TOLERATIONS = 4096
    POD_GATES_GONE = 8192
    POD_CLAIMS = 16384
    UPDATE = 32764
    ALL = 32767


ADD, DELETE, UPDATE, ALL = Action.ADD, Action.DELETE, Action.UPDATE, Action.ALL

_ACTION_TEXTS: dict[int, str] = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.NODE_LABELS: "UpdateNodeLabel",
    Action.NODE_TAINTS: "UpdateNodeTaint",
    Action.NODE_CONDITIONS: "UpdateNodeCondition",
    Action.NODE_ANNOTATIONS: "UpdateNodeAnnotation",
    Action.NODE_FEATURES: "UpdateNodeDeclaredFeature",
    Action.NODE_PREEMPTION_POLICY: "UpdateNodePreemptionPolicy",
    Action.POD_LABELS: "UpdatePodLabel",
    Action.POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.POD_SCALE_UP: "UpdatePodScaleUp",
    Action.POD_TOLERATIONS: "UpdatePodToleration",
    Action.POD_GATES_GONE: "UpdatePodSchedulingGatesEliminated",
    Action.POD_CLAIMS: "UpdatePodGeneratedResourceClaim",
    Action.UPDATE: "Update",
    Action.ALL: "All",
}

POD = "Pod"
ASSIGNED_POD = "AssignedPod"
UNSCHEDULABLE_POD = "UnschedulablePod"
UNSCHEDULED_POD = "UnscheduledPod"
TARGET_POD = "TargetPod"
NODE = "Node"
PV = "PersistentVolume"
PVC = "PersistentVolumeClaim"
CSI_NODE = "storage.k8s.io/CSINode"
CSI_DRIVER = "storage.k8s.io/CSIDriver"
CSI_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
STORAGE_CLASS = "storage.k8s.io/StorageClass"
VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
DEVICE_CLASS = "resource.k8s.io/DeviceClass"
POD_GROUP = "scheduling.k8s.io/PodGroup"
COMPOSITE_POD_GROUP = "scheduling.k8s.io/CompositePodGroup"
ANY = "*"


_PODS = frozenset((ASSIGNED_POD, UNSCHEDULABLE_POD, UNSCHEDULED_POD, TARGET_POD))


class ClusterEvent(NamedTuple):
    """Something that happened, or the kind of thing that a plugin waits for."""

    resource: str
    action: int
    custom_label: str = ""

    @property
    def label(self) -> str:
        """Return the name under which metrics and logs know the event."""
        return self.custom_label or self.resource + _ACTION_TEXTS.get(self.action, str(int(self.action)))

    @property
    def is_wildcard(self) -> bool:
        """Return whether the event stands for everything."""
        return self.resource == ANY and self.action == Action.ALL


UNSCHEDULABLE_TIMEOUT = ClusterEvent(ANY, Action.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(ANY, Action.ALL, "ForceActivate")


def matches(registered: ClusterEvent, happened: ClusterEvent) -> bool:
    """Return whether what happened is what was waited for.

    The comparison of the action numbers is the reference's: a general update does not match somebody who waits for one
    particular kind of update only.
    """
    if registered.is_wildcard:
        return True
    same = registered.resource in (ANY, happened.resource) or (registered.resource == POD and happened.resource in _PODS)
    return same and registered.action & happened.action != 0 and happened.action <= registered.action


Hint = Callable[[PodView, Any, Any], bool]
"""(waiting pod, object before, object after) -> whether the pod is worth another try."""


@dataclass(frozen=True, slots=True)
class Wakeup:
    """An event that a plugin waits for, and the name of its method that looks closer.

    `by_template` promises that the method reads nothing of the waiting pod but what all pods of its template share, and
    whether the pod is itself the object of the event. It is then asked once for a template instead of once for a pod.

    `without_hints` are the actions to wait for instead where no hints are asked (SchedulerQueueingHints=false), zero for none
    at all; None for the same ones.
    """

    event: ClusterEvent
    hint: str | None = None
    by_template: bool = False
    without_hints: int | None = None


def on(
    resource: str, action: int, hint: str | None = None, *, by_template: bool = False, without_hints: int | None = None
) -> Wakeup:
    """Declare an event that wakes pods which the plugin refused."""
    instead = int(without_hints) if without_hints is not None else None
    return Wakeup(ClusterEvent(resource, int(action)), hint, by_template, instead)


def unhinted(declared: Iterable[Wakeup]) -> tuple[Wakeup, ...]:
    """Return what is waited for where no hints are asked; every such event then wakes."""
    found = ((wakeup.event, wakeup.without_hints) for wakeup in declared)
    return tuple(on(event.resource, event.action if instead is None else instead) for event, instead in found if instead != 0)


ADMITTED_LATER = Action.NODE_LABELS | Action.NODE_TAINTS
"""How a node that came may let a pod in later. Where no hints are asked, a node that comes or changes wakes only pods that a
short check admits to it (engine/arrivals/prechecks), so whoever waits for new nodes has to wait for these as well."""


INTERESTED_IN_ALL = tuple(
    on(resource, Action.ALL)
    for resource in (POD, NODE, PV, PVC, CSI_NODE, CSI_DRIVER, CSI_CAPACITY, STORAGE_CLASS, RESOURCE_CLAIM, DEVICE_CLASS)
)
"""What a plugin that declares nothing is woken by: everything of these kinds, always."""

NODE_ADDED = on(NODE, Action.ADD)
NODE_TAINTS = on(NODE, Action.NODE_TAINTS)
POD_TOLERATIONS = on(POD, Action.POD_TOLERATIONS)
