"""The watch set: every resource the scheduler follows, as data, and the paths under which the API serves objects.

A row says what is watched, in which versions (the first one served is taken), with which field selector, behind which
feature gate, and who misses it when the server does not serve it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from kubesched.api.apps import ReplicaSet, StatefulSet
from kubesched.api.core import Namespace, ReplicationController, Service
from kubesched.api.kinds import INFO
from kubesched.api.meta import ObjectMeta, TopLevel
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from kubesched.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubesched.api.workload import CompositePodGroup, PodGroup
from kubesched.errors import ConfigError

LIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed"
"""A pod that ends stops matching, so its end arrives as a deletion."""

_VOLUMES = ("VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits")
_SPREAD = ("PodTopologySpread",)
_DEVICES = ("DynamicResources",)


@dataclass(frozen=True, slots=True)
class CustomObject:
    """An object of a kind that only a plugin knows: its metadata, and all of it as plain dicts and lists."""

    metadata: ObjectMeta
    content: dict[str, Any]

    @property
    def key(self) -> str:
        """Return `namespace/name`, or the bare name of a cluster-wide object."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


@dataclass(frozen=True, slots=True)
class Watched:
    """One resource to follow. `type` None means that no struct of ours holds it."""

    kind: str
    type: type[TopLevel] | None
    plural: str
    api_versions: tuple[str, ...]
    needed_by: tuple[str, ...] = ()
    field_selector: str = ""
    gate: str = ""

    def path(self, api_version: str) -> str:
        """Return the path of the collection over all namespaces."""
        return collection_path(api_version, self.plural)


def _row(type_: type[TopLevel], *needed_by: str, field_selector: str = "", gate: str = "") -> Watched:
    info = INFO[type_]
    return Watched(info.kind, type_, info.plural, (info.api_version, *info.also), needed_by, field_selector, gate)


WATCH_SET: tuple[Watched, ...] = (
    _row(Pod, field_selector=LIVE_PODS),
    _row(Node),
    _row(Namespace, "InterPodAffinity"),
    _row(PersistentVolume, *_VOLUMES),
    _row(PersistentVolumeClaim, *_VOLUMES),
    _row(Service, *_SPREAD),
    _row(ReplicationController, *_SPREAD),
    _row(ReplicaSet, *_SPREAD),
    _row(StatefulSet, *_SPREAD),
    _row(PodDisruptionBudget, "DefaultPreemption"),
    _row(StorageClass, *_VOLUMES),
    _row(CSINode, "NodeVolumeLimits"),
    _row(CSIDriver, "NodeVolumeLimits", "VolumeBinding"),
    _row(CSIStorageCapacity, "VolumeBinding"),
    _row(VolumeAttachment, "NodeVolumeLimits"),
    _row(ResourceClaim, *_DEVICES, gate="DynamicResourceAllocation"),
    _row(ResourceSlice, *_DEVICES, gate="DynamicResourceAllocation"),
    _row(DeviceClass, *_DEVICES, gate="DynamicResourceAllocation"),
    _row(DeviceTaintRule, *_DEVICES, gate="DRADeviceTaintRules"),
    _row(PodGroup, "GangScheduling", gate="GenericWorkload"),
    _row(CompositePodGroup, "GangScheduling", gate="CompositePodGroup"),
)


def watch_set(enabled_gates: Iterable[str] = (), extra: Iterable[str] = ()) -> tuple[Watched, ...]:
    """Return the rows whose gate is on, and one for each `plural.version.group` that a plugin asks for."""
    gates = set(enabled_gates)
    rows = [row for row in WATCH_SET if not row.gate or row.gate in gates]
    known = {(version, row.plural) for row in rows for version in row.api_versions}
    for name in extra:
        row = custom(name)
        if (row.api_versions[0], row.plural) not in known:
            known.add((row.api_versions[0], row.plural))
            # Two groups may have a kind of the same name: PodGroup is one. The second goes by its full name.
            rows.append(replace(row, kind=name) if row.kind in {other.kind for other in rows} else row)
    return tuple(rows)


def custom(name: str) -> Watched:
    """Return the row for a resource named as `plural.version.group`; one of our own kinds keeps its struct."""
    plural, _, rest = name.partition(".")
    version, _, group = rest.partition(".")
    if not plural or not version or not group:
        raise ConfigError("", f"Incorrect event registration: {name!r} is not of the form plural.version.group")
    api_version = f"{group}/{version}"
    for info in INFO.values():
        if info.plural == plural and api_version in (info.api_version, *info.also):
            return Watched(info.kind, info.type, plural, (api_version,))
    return Watched(name, None, plural, (api_version,))


def collection_path(api_version: str, plural: str, namespace: str = "") -> str:
    """Return the path of a collection, in one namespace or over all."""
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{root}/namespaces/{quote(namespace, safe='')}/{plural}" if namespace else f"{root}/{plural}"


def object_path(obj: TopLevel, subresource: str = "") -> str:
    """Return the path of an object of a kind that we know, in the version that it came in."""
    info = INFO[type(obj)]
    meta = obj.metadata
    api_version = obj.api_version if obj.api_version in info.also else info.api_version
    path = collection_path(api_version, info.plural, meta.namespace if info.namespaced else "")
    path = f"{path}/{quote(meta.name, safe='')}"
    return f"{path}/{subresource}" if subresource else path
