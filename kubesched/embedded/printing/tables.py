"""Tables: lists and objects as rows, so that `kubectl get` looks as it does on a cluster.

In: entries of any resource. Out: a Table with the columns of its kind; kinds without columns of their own get a name
and an age, custom ones what their definition says.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from kubesched.embedded.http.encoding import encode, list_metadata
from kubesched.embedded.printing import cells as p
from kubesched.embedded.printing import policy_columns
from kubesched.embedded.printing.columns import AGE, NAME, Cell, Column, at, number, of
from kubesched.embedded.resources import Object, Resource
from kubesched.embedded.storage.reading import Listing
from kubesched.embedded.storage.watch import Entry


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
    return at(*path)(claim, 0.0) if (claim.get("spec") or {}).get("volumeName") else ""


def _phase(obj: Object) -> str:
    phase = (obj.get("status") or {}).get("phase", "")
    return "Terminating" if "deletionTimestamp" in obj["metadata"] else phase


def _n_data(obj: Object) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


_CONTAINERS = [Column("Containers", of(_names), True), Column("Images", of(_images), True)]
_WORKLOAD = [*_CONTAINERS, Column("Selector", of(_selector), True)]
_COLUMNS: dict[str, list[Column]] = {
    "pods": [
        NAME,
        Column("Ready", of(p.pod_ready)),
        Column("Status", of(p.pod_status)),
        Column("Restarts", p.pod_restarts),
        AGE,
        Column("IP", at("status", "podIP", default=p.NONE), True),
        Column("Node", at("spec", "nodeName", default=p.NONE), True),
        Column("Nominated Node", at("status", "nominatedNodeName", default=p.NONE), True),
        Column("Readiness Gates", of(p.readiness_gates), True),
    ],
    "nodes": [
        NAME,
        Column("Status", of(p.node_status)),
        Column("Roles", of(p.node_roles)),
        AGE,
        Column("Version", at("status", "nodeInfo", "kubeletVersion")),
        Column("Internal-IP", of(partial(p.node_address, kind="InternalIP")), True),
        Column("External-IP", of(partial(p.node_address, kind="ExternalIP")), True),
        Column("OS-Image", at("status", "nodeInfo", "osImage", default=p.UNKNOWN), True),
        Column("Kernel-Version", at("status", "nodeInfo", "kernelVersion", default=p.UNKNOWN), True),
        Column("Container-Runtime", at("status", "nodeInfo", "containerRuntimeVersion", default=p.UNKNOWN), True),
    ],
    "namespaces": [NAME, Column("Status", of(_phase)), AGE],
    "services": [
        NAME,
        Column("Type", at("spec", "type")),
        Column("Cluster-IP", at("spec", "clusterIP", default=p.NONE)),
        Column("External-IP", of(p.service_external_ip)),
        Column("Port(s)", of(p.service_ports)),
        AGE,
        Column("Selector", of(lambda obj: p.labels_text((obj.get("spec") or {}).get("selector"))), True),
    ],
    "endpoints": [NAME, Column("Endpoints", of(p.endpoints_text)), AGE],
    "configmaps": [NAME, Column("Data", of(_n_data)), AGE],
    "secrets": [NAME, Column("Type", at("type")), Column("Data", of(_n_data)), AGE],
    "serviceaccounts": [NAME, Column("Secrets", of(lambda obj: len(obj.get("secrets") or ())), kind="integer"), AGE],
    "events": [
        Column("Last Seen", p.event_last_seen),
        Column("Type", at("type")),
        Column("Reason", at("reason")),
        Column("Object", of(p.event_object)),
        Column("Subobject", at("involvedObject", "fieldPath"), True),
        Column("Source", of(p.event_source), True),
        Column("Message", of(lambda obj: str(obj.get("message", "")).strip())),
        Column("First Seen", lambda obj, now: p.since(obj.get("firstTimestamp") or obj.get("eventTime"), now), True),
        Column("Count", at("count", default=1), True),
        Column("Name", at("metadata", "name"), True),
    ],
    "persistentvolumes": [
        NAME,
        Column("Capacity", of(lambda obj: _storage(obj, "spec", "capacity"))),
        Column("Access Modes", of(lambda obj: p.access_modes((obj.get("spec") or {}).get("accessModes")))),
        Column("Reclaim Policy", at("spec", "persistentVolumeReclaimPolicy")),
        Column("Status", of(_phase)),
        Column("Claim", of(_claim_of)),
        Column("StorageClass", at("spec", "storageClassName")),
        Column("VolumeAttributesClass", at("spec", "volumeAttributesClassName", default="<unset>")),
        Column("Reason", at("status", "reason")),
        AGE,
        Column("VolumeMode", at("spec", "volumeMode", default="<unset>"), True),
    ],
    "persistentvolumeclaims": [
        NAME,
        Column("Status", of(_phase)),
        Column("Volume", at("spec", "volumeName")),
        Column("Capacity", of(lambda obj: _bound(obj, "status", "capacity", "storage"))),
        Column("Access Modes", of(lambda obj: p.access_modes(_bound(obj, "status", "accessModes")))),
        Column("StorageClass", at("spec", "storageClassName")),
        Column("VolumeAttributesClass", at("spec", "volumeAttributesClassName", default="<unset>")),
        AGE,
        Column("VolumeMode", at("spec", "volumeMode", default="<unset>"), True),
    ],
    "replicationcontrollers": [
        NAME,
        number("Desired", "spec", "replicas"),
        number("Current", "status", "replicas"),
        number("Ready", "status", "readyReplicas"),
        AGE,
        *_CONTAINERS,
    ],
    "deployments.apps": [
        NAME,
        Column("Ready", of(_ratio)),
        Column("Up-to-date", at("status", "updatedReplicas", default=0)),
        Column("Available", at("status", "availableReplicas", default=0)),
        AGE,
        *_WORKLOAD,
    ],
    "replicasets.apps": [
        NAME,
        number("Desired", "spec", "replicas"),
        number("Current", "status", "replicas"),
        number("Ready", "status", "readyReplicas"),
        AGE,
        *_WORKLOAD,
    ],
    "statefulsets.apps": [NAME, Column("Ready", of(_ratio)), AGE, *_CONTAINERS],
    "daemonsets.apps": [
        NAME,
        number("Desired", "status", "desiredNumberScheduled"),
        number("Current", "status", "currentNumberScheduled"),
        number("Ready", "status", "numberReady"),
        number("Up-to-date", "status", "updatedNumberScheduled"),
        number("Available", "status", "numberAvailable"),
        Column("Node Selector", of(lambda obj: p.labels_text(_template(obj).get("nodeSelector")))),
        AGE,
        *_WORKLOAD,
    ],
    "jobs.batch": [
        NAME,
        Column("Status", of(p.job_status)),
        Column("Completions", of(p.job_completions)),
        Column("Duration", p.job_duration),
        AGE,
        *_WORKLOAD,
    ],
    "poddisruptionbudgets.policy": [
        NAME,
        Column("Min Available", of(lambda obj: str((obj.get("spec") or {}).get("minAvailable", "N/A")))),
        Column("Max Unavailable", of(lambda obj: str((obj.get("spec") or {}).get("maxUnavailable", "N/A")))),
        number("Allowed Disruptions", "status", "disruptionsAllowed"),
        AGE,
    ],
    "leases.coordination.k8s.io": [NAME, Column("Holder", at("spec", "holderIdentity")), AGE],
    "priorityclasses.scheduling.k8s.io": [
        NAME,
        number("Value", "value"),
        Column("Global-Default", at("globalDefault", default=False), kind="boolean"),
        AGE,
        Column("PreemptionPolicy", at("preemptionPolicy")),
    ],
    "storageclasses.storage.k8s.io": [
        Column(
            "Name",
            of(
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
        Column("Provisioner", at("provisioner")),
        Column("ReclaimPolicy", at("reclaimPolicy")),
        Column("VolumeBindingMode", at("volumeBindingMode")),
        Column("AllowVolumeExpansion", at("allowVolumeExpansion", default=False)),
        AGE,
    ],
    "csidrivers.storage.k8s.io": [
        NAME,
        Column("AttachRequired", at("spec", "attachRequired", default=True), kind="boolean"),
        Column("PodInfoOnMount", at("spec", "podInfoOnMount", default=False), kind="boolean"),
        Column("StorageCapacity", at("spec", "storageCapacity", default=False), kind="boolean"),
        Column("TokenRequests", of(p.token_audiences)),
        Column("RequiresRepublish", at("spec", "requiresRepublish", default=False), kind="boolean"),
        Column("Modes", of(lambda obj: ",".join((obj.get("spec") or {}).get("volumeLifecycleModes") or ()))),
        AGE,
    ],
    "csinodes.storage.k8s.io": [
        NAME,
        Column("Drivers", of(lambda obj: len((obj.get("spec") or {}).get("drivers") or ())), kind="integer"),
        AGE,
    ],
    "volumeattachments.storage.k8s.io": [
        NAME,
        Column("Attacher", at("spec", "attacher")),
        Column("PV", at("spec", "source", "persistentVolumeName")),
        Column("Node", at("spec", "nodeName")),
        Column("Attached", at("status", "attached", default=False), kind="boolean"),
        AGE,
    ],
    "resourceclaims.resource.k8s.io": [NAME, Column("State", of(p.claim_state)), AGE],
    "resourceslices.resource.k8s.io": [
        NAME,
        Column("Node", at("spec", "nodeName", default="<unset>")),
        Column("Driver", at("spec", "driver")),
        Column("Pool", at("spec", "pool", "name")),
        AGE,
    ],
    "customresourcedefinitions.apiextensions.k8s.io": [
        NAME,
        Column("Created At", at("metadata", "creationTimestamp")),
    ],
}


_ENDINGS = {
    "Succeeded": {"reason": "Succeeded", "message": "The pod has completed successfully."},
    "Failed": {"reason": "Failed", "message": "The pod failed."},
}


def columns_of(resource: Resource) -> list[Column]:
    """Return the columns of a resource's table."""
    if resource.custom is None:
        return _COLUMNS.get(resource.table) or policy_columns.COLUMNS.get(resource.table, [NAME, AGE])
    extra = [_custom_column(one) for one in resource.custom.get("additionalPrinterColumns") or ()]
    return [NAME, *extra] if extra else [NAME, AGE]


def _custom_column(wanted: Object) -> Column:
    path = [step for step in str(wanted.get("jsonPath", "")).replace("\\.", "\0").split(".") if step]
    steps = [step.replace("\0", ".") for step in path]
    is_date = wanted.get("type") == "date"
    look = at(*steps)
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


def encode_table(resource: Resource, listing: Listing, now: float, include: str) -> bytes:
    """Return a list as a Table."""
    columns = columns_of(resource)
    table: Object = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": list_metadata(listing)}
    table["columnDefinitions"] = [column.definition for column in columns]
    table["rows"] = [row(columns, entry, now, include) for entry in listing.entries]
    return encode(table)
