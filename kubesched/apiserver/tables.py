"""Tables: lists and objects as rows, so that `kubectl get` looks as it does on a cluster.

In: entries of any resource. Out: a Table with the columns of its kind; kinds without columns of their own get a name
and an age, custom ones what their definition says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kubesched.apiserver import printing as p
from kubesched.apiserver.encoding import encode, list_metadata
from kubesched.apiserver.reading import Listing
from kubesched.apiserver.resources import Object, Resource
from kubesched.apiserver.watch import Entry

Cell = Callable[[Object, float], Any]


class Column:
    """One column: its title, its cell of an object at a moment, and whether it is shown only with -o wide."""

    __slots__ = ("cell", "kind", "title", "wide")

    def __init__(self, title: str, cell: Cell, wide: bool = False, kind: str = "string") -> None:
        self.title = title
        self.cell = cell
        self.wide = wide
        self.kind = kind

    @property
    def definition(self) -> Object:
        return {
            "name": self.title,
            "type": self.kind,
            "format": "name" if self.title == "Name" else "",
            "description": "",
            "priority": 1 if self.wide else 0,
        }


def _at(*path: str, default: Any = "") -> Cell:
    def cell(obj: Object, now: float) -> Any:
        found: Any = obj
        for step in path:
            found = found.get(step) if isinstance(found, dict) else None
        return default if found is None else found

    return cell


def _of(function: Callable[[Object], Any]) -> Cell:
    return lambda obj, now: function(obj)


_NAME = Column("Name", _at("metadata", "name"))
_AGE = Column("Age", p.age)


def _number(title: str, *path: str) -> Column:
    return Column(title, _at(*path, default=0), kind="integer")


def _template(obj: Object) -> Object:
    found: Object = ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}
    return found


def _names(obj: Object) -> str:
    return ",".join(one.get("name", "") for one in _template(obj).get("containers") or ())


def _images(obj: Object) -> str:
    return ",".join(one.get("image", "") for one in _template(obj).get("containers") or ())


def _selector(obj: Object) -> str:
    return p.selector_text((obj.get("spec") or {}).get("selector"))


def _ratio(obj: Object) -> str:
    return f"{(obj.get('status') or {}).get('readyReplicas', 0)}/{(obj.get('spec') or {}).get('replicas', 0)}"


def _storage(obj: Object, *path: str) -> str:
    found: Any = obj
    for step in path:
        found = (found or {}).get(step)
    return str((found or {}).get("storage", ""))


def _claim_of(volume: Object) -> str:
    claim = (volume.get("spec") or {}).get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _bound(claim: Object, *path: str) -> Any:
    return _at(*path)(claim, 0.0) if (claim.get("spec") or {}).get("volumeName") else ""


def _phase(obj: Object) -> str:
    phase = (obj.get("status") or {}).get("phase", "")
    return "Terminating" if "deletionTimestamp" in obj["metadata"] else phase


def _n_data(obj: Object) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


_CONTAINERS = [Column("Containers", _of(_names), True), Column("Images", _of(_images), True)]
_WORKLOAD = [*_CONTAINERS, Column("Selector", _of(_selector), True)]
_COLUMNS: dict[str, list[Column]] = {
    "pods": [
        _NAME,
        Column("Ready", _of(p.pod_ready)),
        Column("Status", _of(p.pod_status)),
        Column("Restarts", p.pod_restarts),
        _AGE,
        Column("IP", _at("status", "podIP", default=p.NONE), True),
        Column("Node", _at("spec", "nodeName", default=p.NONE), True),
        Column("Nominated Node", _at("status", "nominatedNodeName", default=p.NONE), True),
        Column("Readiness Gates", _of(p.readiness_gates), True),
    ],
    "nodes": [
        _NAME,
        Column("Status", _of(p.node_status)),
        Column("Roles", _of(p.node_roles)),
        _AGE,
        Column("Version", _at("status", "nodeInfo", "kubeletVersion")),
        Column("Internal-IP", _of(partial(p.node_address, kind="InternalIP")), True),
        Column("External-IP", _of(partial(p.node_address, kind="ExternalIP")), True),
        Column("OS-Image", _at("status", "nodeInfo", "osImage", default=p.UNKNOWN), True),
        Column("Kernel-Version", _at("status", "nodeInfo", "kernelVersion", default=p.UNKNOWN), True),
        Column("Container-Runtime", _at("status", "nodeInfo", "containerRuntimeVersion", default=p.UNKNOWN), True),
    ],
    "namespaces": [_NAME, Column("Status", _of(_phase)), _AGE],
    "services": [
        _NAME,
        Column("Type", _at("spec", "type")),
        Column("Cluster-IP", _at("spec", "clusterIP", default=p.NONE)),
        Column("External-IP", lambda obj, now: p.NONE),
        Column("Port(s)", _of(p.service_ports)),
        _AGE,
        Column("Selector", _of(lambda obj: p.labels_text((obj.get("spec") or {}).get("selector"))), True),
    ],
    "endpoints": [_NAME, Column("Endpoints", _of(p.endpoints_text)), _AGE],
    "configmaps": [_NAME, Column("Data", _of(_n_data)), _AGE],
    "secrets": [_NAME, Column("Type", _at("type")), Column("Data", _of(_n_data)), _AGE],
    "serviceaccounts": [_NAME, Column("Secrets", _of(lambda obj: len(obj.get("secrets") or ())), kind="integer"), _AGE],
    "events": [
        Column("Last Seen", p.event_last_seen),
        Column("Type", _at("type")),
        Column("Reason", _at("reason")),
        Column("Object", _of(p.event_object)),
        Column("Subobject", _at("involvedObject", "fieldPath"), True),
        Column("Source", _of(p.event_source), True),
        Column("Message", _of(lambda obj: str(obj.get("message", "")).strip())),
        Column("First Seen", lambda obj, now: p.since(obj.get("firstTimestamp") or obj.get("eventTime"), now), True),
        Column("Count", _at("count", default=1), True),
        Column("Name", _at("metadata", "name"), True),
    ],
    "persistentvolumes": [
        _NAME,
        Column("Capacity", _of(lambda obj: _storage(obj, "spec", "capacity"))),
        Column("Access Modes", _of(lambda obj: p.access_modes((obj.get("spec") or {}).get("accessModes")))),
        Column("Reclaim Policy", _at("spec", "persistentVolumeReclaimPolicy")),
        Column("Status", _of(_phase)),
        Column("Claim", _of(_claim_of)),
        Column("StorageClass", _at("spec", "storageClassName")),
        Column("VolumeAttributesClass", _at("spec", "volumeAttributesClassName", default="<unset>")),
        Column("Reason", _at("status", "reason")),
        _AGE,
        Column("VolumeMode", _at("spec", "volumeMode", default="<unset>"), True),
    ],
    "persistentvolumeclaims": [
        _NAME,
        Column("Status", _of(_phase)),
        Column("Volume", _at("spec", "volumeName")),
        Column("Capacity", _of(lambda obj: _bound(obj, "status", "capacity", "storage"))),
        Column("Access Modes", _of(lambda obj: p.access_modes(_bound(obj, "status", "accessModes")))),
        Column("StorageClass", _at("spec", "storageClassName")),
        Column("VolumeAttributesClass", _at("spec", "volumeAttributesClassName", default="<unset>")),
        _AGE,
        Column("VolumeMode", _at("spec", "volumeMode", default="<unset>"), True),
    ],
    "replicationcontrollers": [
        _NAME,
        _number("Desired", "spec", "replicas"),
        _number("Current", "status", "replicas"),
        _number("Ready", "status", "readyReplicas"),
        _AGE,
        *_CONTAINERS,
    ],
    "deployments.apps": [
        _NAME,
        Column("Ready", _of(_ratio)),
        Column("Up-to-date", _at("status", "updatedReplicas", default=0)),
        Column("Available", _at("status", "availableReplicas", default=0)),
        _AGE,
        *_WORKLOAD,
    ],
    "replicasets.apps": [
        _NAME,
        _number("Desired", "spec", "replicas"),
        _number("Current", "status", "replicas"),
        _number("Ready", "status", "readyReplicas"),
        _AGE,
        *_WORKLOAD,
    ],
    "statefulsets.apps": [_NAME, Column("Ready", _of(_ratio)), _AGE, *_CONTAINERS],
    "daemonsets.apps": [
        _NAME,
        _number("Desired", "status", "desiredNumberScheduled"),
        _number("Current", "status", "currentNumberScheduled"),
        _number("Ready", "status", "numberReady"),
        _number("Up-to-date", "status", "updatedNumberScheduled"),
        _number("Available", "status", "numberAvailable"),
        Column("Node Selector", _of(lambda obj: p.labels_text(_template(obj).get("nodeSelector")))),
        _AGE,
        *_WORKLOAD,
    ],
    "jobs.batch": [
        _NAME,
        Column("Status", _of(p.job_status)),
        Column("Completions", _of(p.job_completions)),
        Column("Duration", p.job_duration),
        _AGE,
        *_WORKLOAD,
    ],
    "poddisruptionbudgets.policy": [
        _NAME,
        Column("Min Available", _of(lambda obj: str((obj.get("spec") or {}).get("minAvailable", "N/A")))),
        Column("Max Unavailable", _of(lambda obj: str((obj.get("spec") or {}).get("maxUnavailable", "N/A")))),
        _number("Allowed Disruptions", "status", "disruptionsAllowed"),
        _AGE,
    ],
    "leases.coordination.k8s.io": [_NAME, Column("Holder", _at("spec", "holderIdentity")), _AGE],
    "priorityclasses.scheduling.k8s.io": [
        _NAME,
        _number("Value", "value"),
        Column("Global-Default", _at("globalDefault", default=False), kind="boolean"),
        _AGE,
        Column("PreemptionPolicy", _at("preemptionPolicy")),
    ],
    "storageclasses.storage.k8s.io": [
        Column(
            "Name",
            _of(
                lambda obj: (
                    obj["metadata"]["name"]
                    + (
                        " (default)"
                        if (obj["metadata"].get("annotations") or {}).get("storageclass.kubernetes.io/is-default-class")
                        == "true"
                        else ""
                    )
                )
            ),
        ),
        Column("Provisioner", _at("provisioner")),
        Column("ReclaimPolicy", _at("reclaimPolicy")),
        Column("VolumeBindingMode", _at("volumeBindingMode")),
        Column("AllowVolumeExpansion", _at("allowVolumeExpansion", default=False)),
        _AGE,
    ],
    "csidrivers.storage.k8s.io": [
        _NAME,
        Column("AttachRequired", _at("spec", "attachRequired", default=True), kind="boolean"),
        Column("PodInfoOnMount", _at("spec", "podInfoOnMount", default=False), kind="boolean"),
        Column("StorageCapacity", _at("spec", "storageCapacity", default=False), kind="boolean"),
        Column("TokenRequests", _of(p.token_audiences)),
        Column("RequiresRepublish", _at("spec", "requiresRepublish", default=False), kind="boolean"),
        Column("Modes", _of(lambda obj: ",".join((obj.get("spec") or {}).get("volumeLifecycleModes") or ()))),
        _AGE,
    ],
    "csinodes.storage.k8s.io": [
        _NAME,
        Column("Drivers", _of(lambda obj: len((obj.get("spec") or {}).get("drivers") or ())), kind="integer"),
        _AGE,
    ],
    "volumeattachments.storage.k8s.io": [
        _NAME,
        Column("Attacher", _at("spec", "attacher")),
        Column("PV", _at("spec", "source", "persistentVolumeName")),
        Column("Node", _at("spec", "nodeName")),
        Column("Attached", _at("status", "attached", default=False), kind="boolean"),
        _AGE,
    ],
    "resourceclaims.resource.k8s.io": [_NAME, Column("State", _of(p.claim_state)), _AGE],
    "resourceslices.resource.k8s.io": [
        _NAME,
        Column("Node", _at("spec", "nodeName", default="<unset>")),
        Column("Driver", _at("spec", "driver")),
        Column("Pool", _at("spec", "pool", "name")),
        _AGE,
    ],
    "customresourcedefinitions.apiextensions.k8s.io": [
        _NAME,
        Column("Created At", _at("metadata", "creationTimestamp")),
    ],
}


_ENDINGS = {
    "Succeeded": {"reason": "Succeeded", "message": "The pod has completed successfully."},
    "Failed": {"reason": "Failed", "message": "The pod failed."},
}


def columns_of(resource: Resource) -> list[Column]:
    """Return the columns of a resource's table."""
    if resource.custom is None:
        return _COLUMNS.get(resource.table, [_NAME, _AGE])
    extra = [_custom_column(one) for one in resource.custom.get("additionalPrinterColumns") or ()]
    return [_NAME, *extra] if extra else [_NAME, _AGE]


def _custom_column(wanted: Object) -> Column:
    path = [step for step in str(wanted.get("jsonPath", "")).replace("\\.", "\0").split(".") if step]
    steps = [step.replace("\0", ".") for step in path]
    is_date = wanted.get("type") == "date"
    look = _at(*steps)
    cell: Cell = (lambda obj, now: p.since(look(obj, now), now)) if is_date else look
    kind = "string" if is_date else str(wanted.get("type", "string"))
    return Column(str(wanted.get("name", "")), cell, bool(wanted.get("priority")), kind)


def row(columns: list[Column], entry: Entry, now: float, include: str) -> Object:
    """Return one row; `include` says how much of the object goes along."""
    found: Object = {"cells": [column.cell(entry.obj, now) for column in columns]}
    ending = _ENDINGS.get((entry.obj.get("status") or {}).get("phase", "")) if entry.obj.get("kind") == "Pod" else None
    if ending is not None:
        found["conditions"] = [{"type": "Completed", "status": "True", **ending}]
    if include == "Object":
        return {**found, "object": entry.obj}
    if include == "None":
        return {**found, "object": None}
    partial_object = {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": entry.obj["metadata"],
    }
    return {**found, "object": partial_object}


def encode_table(resource: Resource, listing: Listing, now: float, include: str, with_columns: bool = True) -> bytes:
    """Return a list as a Table."""
    columns = columns_of(resource)
    table: Object = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": list_metadata(listing)}
    table["columnDefinitions"] = [column.definition for column in columns] if with_columns else []
    table["rows"] = [row(columns, entry, now, include) for entry in listing.entries]
    return encode(table)
