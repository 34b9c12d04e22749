"""Hide the names in a captured cluster, so that it can be handed to strangers, and decide the same on it.

In: a captured cluster. Out: the same cluster under other names, and which name became which. Every text is hidden unless it is
listed here as one that means something to everybody (effects, operators, phases, times, resource names, drivers); texts that
nothing decides by are dropped. Amounts, counts, priorities, ports, times, image sizes and the shape of the topology stay, and
so do the names of schedulers, resources, drivers and device attributes (not their values). Ties fall as before: uids stay, or
keep their checksum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgspec

from kubesched.kube.api import (
    DELETE_PROTECTION_FINALIZER,
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    INFO,
    KIND_TABLE,
    Container,
    ContainerImage,
    ContainerPort,
    ControllerReference,
    CSIDriver,
    DeviceTaint,
    DeviceToleration,
    LabelSelectorRequirement,
    LimitRange,
    Namespace,
    Node,
    NodeSelectorRequirement,
    ObjectMeta,
    ObjectReference,
    OwnerReference,
    Pod,
    ResourceQuota,
    RuntimeClass,
    Taint,
    Toleration,
    TopLevel,
    TopologySelectorLabelRequirement,
    Wire,
)
from kubesched.tools.snapshots.captured import Captured
from kubesched.tools.snapshots.pseudonyms import Pseudonyms

_OBJECT_KINDS = {
    "Node": "node",
    "CSINode": "node",
    "Namespace": "ns",
    "PersistentVolume": "pv",
    "StorageClass": "class",
    "PersistentVolumeClaim": "claim",
    "ResourceClaim": "claim",
    "ResourceClaimTemplate": "claimtemplate",
    "ResourceSlice": "slice",
    "PodGroup": "group",
    "PriorityClass": "priority",
    "PodDisruptionBudget": "budget",
}
"""What objects are called; others by their kind."""

_FIELD_KINDS = {
    "node_name": "node",
    "nominated_node_name": "node",
    "namespace": "ns",
    "namespaces": "ns",
    "secret_namespace": "ns",
    "claim_name": "claim",
    "resource_claim_name": "claim",
    "resource_claim_template_name": "claimtemplate",
    "volume_name": "pv",
    "persistent_volume_name": "pv",
    "storage_class_name": "class",
    "device_class_name": "deviceclass",
    "pod_group_name": "group",
    "pool": "pool",
    "device": "device",
    "counter_set": "counter",
    "container_name": "container",
    "containers": "container",
    "priority_class_name": "priority",
}
_NAME_KINDS = {
    "Container": "container",
    "ContainerStatus": "container",
    "Volume": "volume",
    "Device": "device",
    "ResourcePool": "pool",
    "CounterSet": "counter",
    "PodSchedulingGate": "gate",
}

_KEPT = frozenset(
    (
        "access_modes",
        "action",
        "allocation_mode",
        "allocation_multiplier",
        "allocation_timestamp",
        "api_group",
        "caching_mode",
        "capacity",
        "capacity_key",
        "completion_mode",
        "creation_timestamp",
        "declared_features",
        "default",
        "deletion_timestamp",
        "disruption_mode",
        "distinct_attribute",
        "effect",
        "extended_resource_name",
        "fs_type",
        "last_heartbeat_time",
        "last_probe_time",
        "last_transition_time",
        "match_attribute",
        "max",
        "max_unavailable",
        "maximum_volume_size",
        "min",
        "min_available",
        "node_affinity_policy",
        "node_taints_policy",
        "operator",
        "persistent_volume_reclaim_policy",
        "phase",
        "pod_management_policy",
        "preemption_policy",
        "protocol",
        "pull_policy",
        "qos_class",
        "reclaim_policy",
        "resource",
        "resource_version",
        "restart_policy",
        "schedule_start_time",
        "scheduler_name",
        "share_id",
        "source",
        "start_time",
        "status",
        "step",
        "time_added",
        "unhealthy_pod_eviction_policy",
        "valid_values",
        "value",
        "version_value",
        "version_values",
        "volume_binding_mode",
        "volume_mode",
        "when_unsatisfiable",
    )
)
"""Texts that mean the same to everybody, or amounts and times written as text."""

_DROPPED = frozenset(
    (
        "addresses",
        "cluster_ip",
        "controller_expand_secret_ref",
        "controller_publish_secret_ref",
        "data",
        "data_source",
        "data_source_ref",
        "description",
        "field_path",
        "generate_name",
        "initiator_name",
        "iscsi_interface",
        "keyring",
        "message",
        "mount_options",
        "network_data",
        "node_expand_secret_ref",
        "node_id",
        "node_info",
        "node_publish_secret_ref",
        "node_stage_secret_ref",
        "occupied_by",
        "parameters",
        "pod_cidr",
        "pod_ip",
        "provider_id",
        "runtime_class_name",
        "schedule",
        "secret_ref",
        "service_account_name",
        "service_name",
        "storage_policy_id",
        "storage_policy_name",
        "volume_attributes",
    )
)
"""What no decision reads."""

_AMOUNTS = frozenset(
    (
        "allocatable",
        "allocated_resources",
        "capacity",
        "consumed_capacity",
        "limits",
        "min_resources",
        "node_allocatable_resource_mappings",
        "overhead",
        "requests",
        "resources",
    )
)
_LABELS = frozenset(("labels", "match_labels", "node_selector", "selector"))
_LABEL_KEYS = frozenset(("topology_key", "topology_keys", "match_label_keys", "mismatch_label_keys", "key"))
_PATHS = frozenset(
    (
        "volume_id",
        "volume_handle",
        "volume_path",
        "disk_uri",
        "disk_name",
        "pd_name",
        "iqn",
        "target_portal",
        "monitors",
        "portals",
        "share_name",
    )
)
_REQUESTS = frozenset(("request", "request_name", "requests"))
_WORDS = frozenset(("type", "reason", "binding_conditions", "binding_failure_conditions"))
_ATTRIBUTE_VALUES = frozenset(("string_value", "string_values"))
_DRIVERS = frozenset(("driver", "provisioner", "attacher"))
_KEYED = (Taint, Toleration, DeviceTaint, DeviceToleration)
_REQUIREMENTS = (LabelSelectorRequirement, NodeSelectorRequirement, TopologySelectorLabelRequirement)
_REFERENCES = (OwnerReference, ObjectReference, ControllerReference)
_LEFT_OUT = (LimitRange, ResourceQuota, RuntimeClass)
_KNOWN_KINDS = frozenset(row.kind for row in KIND_TABLE)
_NO_ADDRESS = frozenset(("", "0.0.0.0", "::", "127.0.0.1", "::1"))

_KNOWN_FINALIZERS = frozenset(
    (
        DELETE_PROTECTION_FINALIZER,
        "kubernetes",
        "kubernetes.io/pv-protection",
        "kubernetes.io/pvc-protection",
        "external-provisioner.volume.kubernetes.io/finalizer",
        "batch.kubernetes.io/job-tracking",
        "foregroundDeletion",
        "orphan",
    )
)
_KEPT_ANNOTATIONS = frozenset(
    (
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/bound-by-controller",
        "storage.alpha.kubernetes.io/migrated-plugins",
        EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    )
)
_NAMED_IN_ANNOTATIONS = {"volume.kubernetes.io/selected-node": "node", "volume.beta.kubernetes.io/storage-class": "class"}
_AVOID_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods"


def hide_names(cluster: Captured, warn: Callable[[str], None] = lambda text: None) -> tuple[Captured, dict[str, str]]:
    """Return a cluster under pseudonyms, and the pseudonym of every name in it; what only admission reads is left out.

    `warn` is told which selectors may decide otherwise, because they look into texts that are other texts now.
    """
    anonymizer = _Anonymizer()
    cluster = replace(cluster, objects=[one for one in cluster.objects if not isinstance(one, _LEFT_OUT)])
    # Nodes and namespaces first: many things are named after them, and are to be recognised by that.
    for obj in sorted(cluster.objects, key=lambda obj: 0 if isinstance(obj, Node) else 1 if isinstance(obj, Namespace) else 2):
        if not isinstance(obj, CSIDriver):
            anonymizer.names.name(_kind_of(obj), obj.metadata.name)
    for obj in cluster.objects:
        anonymizer.object(obj)
    volumes = [(pod, volume) for pod in cluster.of(Pod) for volume in pod.spec.volumes if volume.ephemeral is not None]
    anonymizer.names.settle({f"{pod.name}-{volume.name}": (pod.name, volume.name) for pod, volume in volumes})
    hidden = [anonymizer.object(obj) for obj in cluster.objects]
    for expression in sorted(anonymizer.names.read_as_text):
        warn(f"a selector looks into texts that are hidden, and may choose other devices: {expression}")
    return replace(cluster, objects=hidden), dict(anonymizer.names.words)


def _kind_of(obj: TopLevel) -> str:
    kind = INFO[type(obj)].kind
    return _OBJECT_KINDS.get(kind, kind.lower())


class _Anonymizer:
    """Walks over objects and hides what it meets."""

    def __init__(self) -> None:
        self.names = Pseudonyms()

    def object(self, obj: TopLevel) -> Any:
        hidden = self._fields(obj, leaving=("api_version", "kind", "metadata"))
        return type(obj)(
            api_version=obj.api_version,
            kind=obj.kind,
            **hidden,
            metadata=self._metadata(obj.metadata, "" if isinstance(obj, CSIDriver) else _kind_of(obj)),
        )

    def _metadata(self, meta: ObjectMeta, kind: str) -> ObjectMeta:
        hidden = self._fields(meta, leaving=("name", "annotations", "finalizers", "labels"))
        kept = tuple(f if f in _KNOWN_FINALIZERS else self.names.name("finalizer", f) for f in meta.finalizers)
        return ObjectMeta(
            **hidden,
            name=self.names.name(kind, meta.name) if kind else meta.name,
            finalizers=kept,
            labels=self.names.labels(meta.labels),
            annotations=dict(self._annotations(meta.annotations)),
        )

    def _annotations(self, annotations: dict[str, str]) -> Iterator[tuple[str, str]]:
        for key, text in annotations.items():
            if key in _KEPT_ANNOTATIONS:
                yield key, text
            elif key in _NAMED_IN_ANNOTATIONS:
                yield key, self.names.name(_NAMED_IN_ANNOTATIONS[key], text)
            elif key == _AVOID_PODS:
                try:
                    yield key, msgspec.json.encode(self._plain("", msgspec.json.decode(text))).decode()
                except msgspec.DecodeError:
                    yield key, "unreadable"

    def _plain(self, key: str, value: Any) -> Any:
        """Hide what is known of plain JSON: names and uids; kinds stay, other texts go."""
        if isinstance(value, dict):
            return {name: self._plain(name, each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._plain(key, each) for each in value]
        if not isinstance(value, str) or key in ("kind", "apiVersion"):
            return value
        return self.names.uid(value) if key == "uid" else self.names.name("owner", value) if key == "name" else ""

    def _struct(self, value: Wire) -> Wire:
        names = self.names
        if isinstance(value, ObjectMeta):
            return self._metadata(value, "name")
        if isinstance(value, _KEYED):
            hidden = self._fields(value, leaving=("key", "value"))
            hidden |= {"key": names.key(value.key), "value": names.value(value.key, value.value)}
        elif isinstance(value, _REQUIREMENTS):
            hidden = self._fields(value, leaving=("key", "values"))
            hidden |= {"key": names.key(value.key), "values": value.values}
            if value.values:
                hidden["values"] = tuple(names.value(value.key, each) for each in value.values)
        elif isinstance(value, Container):
            hidden = self._fields(value, leaving=("image",)) | {"image": names.image(value.image)}
        elif isinstance(value, ContainerImage):
            hidden = self._fields(value, leaving=("names",)) | {"names": tuple(map(names.image, value.names))}
        elif isinstance(value, ContainerPort):
            address = value.host_ip if value.host_ip in _NO_ADDRESS else names.name("address", value.host_ip)
            hidden = self._fields(value, leaving=("host_ip",)) | {"host_ip": address}
        elif isinstance(value, _REFERENCES):
            kind = value.kind if value.kind in _KNOWN_KINDS else names.name("kind", value.kind)
            hidden = self._fields(value, leaving=("kind",)) | {"kind": kind}
        else:
            hidden = self._fields(value)
        return type(value)(**hidden)

    def _fields(self, value: Wire, leaving: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the hidden fields of a struct; what is dropped is not among them."""
        found = {}
        for field in value.__struct_fields__:
            if field not in leaving and field not in _DROPPED:
                inside = getattr(value, field)
                if inside is not None and inside != () and inside != "":
                    found[field] = self._value(inside, field, type(value).__name__)
                else:
                    found[field] = inside
        return found

    def _value(self, value: Any, field: str, owner: str) -> Any:
        if isinstance(value, str):
            return self._text(value, field, owner)
        if isinstance(value, Wire):
            return self._struct(value)
        if isinstance(value, tuple):
            return tuple(self._value(each, field, owner) for each in value)
        return self._map(value, field, owner) if isinstance(value, dict) else value

    def _map(self, value: dict[str, Any], field: str, owner: str) -> dict[str, Any]:
        if field in _LABELS:
            return self.names.labels(value)
        if field == "attributes":
            return {self.names.attribute(key): self._value(each, field, owner) for key, each in value.items()}
        if field in _AMOUNTS:
            return {
                self.names.resource(key): each if isinstance(each, str) else self._value(each, field, owner)
                for key, each in value.items()
            }
        if field == "disrupted_pods":
            return {self.names.name("pod", key): each for key, each in value.items()}
        if field == "counters":
            return {self.names.name("counter", key): self._value(each, field, owner) for key, each in value.items()}
        return {}  # a source of a volume of which it only matters that it is there

    def _text(self, text: str, field: str, owner: str) -> str:
        names = self.names
        if owner == "PodStatus" and field in ("host_ip", "reason"):
            return ""
        if field in _KEPT or (owner, field) in (("CSINodeDriver", "name"), ("AzureDisk", "kind")):
            return text
        if field == "api_version":
            return text if ".k8s.io/" in text or "." not in text else names.name("version", text)
        if field == "name" and owner in ("DeviceRequest", "DeviceSubRequest"):
            return names.request(text)
        treat = _TREATMENTS.get(field)
        if treat is not None:
            return treat(names, text)
        if field == "priority_class_name" and text.startswith("system-"):
            return text
        kind = _NAME_KINDS.get(owner, "name") if field == "name" else _FIELD_KINDS.get(field, "name")
        return names.name(kind, text)


_TREATMENTS: dict[str, Callable[[Pseudonyms, str], str]] = {
    "uid": Pseudonyms.uid,
    "resource_name": Pseudonyms.resource,
    "reference": Pseudonyms.image,
    "expression": Pseudonyms.expression,
    **dict.fromkeys(_LABEL_KEYS, Pseudonyms.key),
    **dict.fromkeys(_PATHS, Pseudonyms.path),
    **dict.fromkeys(_REQUESTS, Pseudonyms.request),
    **dict.fromkeys(_WORDS, Pseudonyms.word),
    **dict.fromkeys(_ATTRIBUTE_VALUES, lambda names, text: names.name("value", text)),
    **dict.fromkeys(_DRIVERS, Pseudonyms.keep),
}
"""How texts are hidden that are more than a name, by the name of their field."""
