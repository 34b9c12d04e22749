"""The watch set: every resource the scheduler follows, as data, and the paths under which the API serves objects.

A row says what is watched, in which versions (`Served.version_of` takes the first one served), with which field selector,
behind which feature gate, and what it means for decisions when it cannot be listed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from kubesched.errors import ConfigError
from kubesched.kube.api import (
    INFO,
    CompositePodGroup,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DeviceClass,
    DeviceTaintRule,
    Namespace,
    Node,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceSlice,
    Service,
    StatefulSet,
    StorageClass,
    TopLevel,
    VolumeAttachment,
)

LIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed"
"""A pod that ends stops matching, so its end arrives as a deletion."""

_NO_DEFAULT_SPREAD = "their pods get no default spread constraints"
_NO_CLAIMS = "pods with resource claims are not placed"


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
    without: str = ""
    """What it means when none of them can be seen, as a clause."""
    field_selector: str = ""
    gate: str = ""

    @property
    def is_indispensable(self) -> bool:
        """Return whether nothing can be decided without these objects."""
        return self.type in (Pod, Node)

    def left_out(self, why: str) -> str:
        """Return the line that says that none of these can be seen, and what that means."""
        return f"{self.plural} are left out: {why}" + (f"; {self.without}" if self.without else "")

    def path(self, api_version: str) -> str:
        """Return the path of the collection over all namespaces."""
        return collection_path(api_version, self.plural)


def row_of(type_: type[TopLevel], without: str = "", *, field_selector: str = "", gate: str = "") -> Watched:
    """Return the row for a kind that we have a struct for."""
    info = INFO[type_]
    return Watched(info.kind, type_, info.plural, (info.api_version, *info.also), without, field_selector, gate)


WATCH_SET: tuple[Watched, ...] = (
    row_of(Pod, field_selector=LIVE_PODS),
    row_of(Node),
    row_of(Namespace, "a namespaceSelector of pod affinity selects no namespace"),
    row_of(PersistentVolume, "pods with bound claims are not placed"),
    row_of(PersistentVolumeClaim, "pods with claims are not placed"),
    row_of(Service, _NO_DEFAULT_SPREAD),
    row_of(ReplicationController, _NO_DEFAULT_SPREAD),
    row_of(ReplicaSet, _NO_DEFAULT_SPREAD),
    row_of(StatefulSet, _NO_DEFAULT_SPREAD),
    row_of(PodDisruptionBudget, "preemption does not spare pods that a budget protects"),
    row_of(StorageClass, "pods with unbound claims are not placed"),
    row_of(CSINode, "limits of attached volumes are not known"),
    row_of(CSIDriver, "storage capacity is not checked"),
    row_of(CSIStorageCapacity, "nodes seem to have no storage where a driver reports its capacity"),
    row_of(VolumeAttachment, "attached volumes are not counted"),
    row_of(ResourceClaim, _NO_CLAIMS, gate="DynamicResourceAllocation"),
    row_of(ResourceSlice, "devices are not known", gate="DynamicResourceAllocation"),
    row_of(DeviceClass, _NO_CLAIMS, gate="DynamicResourceAllocation"),
    row_of(DeviceTaintRule, "devices have only the taints of their slices", gate="DRADeviceTaintRules"),
    row_of(PodGroup, "pods that name a group wait for it", gate="GenericWorkload"),
    row_of(CompositePodGroup, "groups of groups wait for them", gate="CompositePodGroup"),
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


def version_of(obj: TopLevel) -> str:
    """Return the version that an object of a kind that we know is written in: the one that it came in."""
    info = INFO[type(obj)]
    return obj.api_version if obj.api_version in info.also else info.api_version


def object_path(obj: TopLevel, subresource: str = "") -> str:
    """Return the path of an object of a kind that we know, in the version that it came in."""
    info = INFO[type(obj)]
    meta = obj.metadata
    path = collection_path(version_of(obj), info.plural, meta.namespace if info.namespaced else "")
    path = f"{path}/{quote(meta.name, safe='')}"
    return f"{path}/{subresource}" if subresource else path
