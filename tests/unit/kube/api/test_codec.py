from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.errors import MalformedObject
from kubesched.kube.api import codec
from kubesched.kube.api.kinds import INFO, KIND_TABLE, KINDS, KindInfo
from kubesched.kube.api.meta import ObjectMeta, OwnerReference, TopLevel, Wire
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Container, Pod, PodCondition, PodSpec, PodStatus
from kubesched.kube.api.resource import AllocationResult, ResourceClaim, ResourceClaimConsumerReference, ResourceClaimStatus
from kubesched.kube.api.storage import PersistentVolume, StorageClass


def raw_pod(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}, **more}


# --- kinds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", KIND_TABLE, ids=lambda row: f"{row.api_version}/{row.kind}")
def test_every_kind_writes_its_own_version_and_kind(row: KindInfo) -> None:
    written = json.loads(codec.encode(row.type()))
    assert (written["apiVersion"], written["kind"]) == (row.api_version, row.kind)
    assert list(written)[:2] == ["apiVersion", "kind"]
    decoded = codec.decode(codec.encode(row.type(metadata=ObjectMeta(name="x"))))
    assert type(decoded) is row.type
    assert decoded.name == "x"
    assert INFO[row.type] is row


@pytest.mark.parametrize("row", KIND_TABLE, ids=lambda row: f"{row.api_version}/{row.kind}")
def test_no_two_fields_share_a_name_on_the_wire(row: KindInfo) -> None:
    for struct in structs_under(row.type):
        names = [field.encode_name for field in msgspec.structs.fields(struct)]
        assert len(names) == len(set(names)), struct


def structs_under(struct: type[Wire]) -> set[type[Wire]]:
    found: set[Any] = set()

    def walk(shape: msgspec.inspect.Type) -> None:
        if isinstance(shape, msgspec.inspect.StructType) and shape.cls not in found:
            found.add(shape.cls)
            for field in shape.fields:
                walk(field.type)
        elif isinstance(shape, msgspec.inspect.UnionType):
            for member in shape.types:
                walk(member)
        elif isinstance(shape, msgspec.inspect.VarTupleType):
            walk(shape.item_type)
        elif isinstance(shape, msgspec.inspect.DictType):
            walk(shape.value_type)

    walk(msgspec.inspect.type_info(struct))
    return found


@pytest.mark.parametrize("row", KIND_TABLE, ids=lambda row: f"{row.api_version}/{row.kind}")
def test_null_is_absent_in_every_field_of_every_struct(row: KindInfo) -> None:
    for struct in structs_under(row.type):
        nulls = {field.encode_name: None for field in msgspec.structs.fields(struct)}
        assert codec.convert(nulls, struct) == struct()
        assert codec.decode_as(struct, json.dumps(nulls)) == struct()


def test_groups_and_versions() -> None:
    pods, leases = INFO[Pod], INFO[KINDS["coordination.k8s.io/v1", "Lease"]]
    assert (pods.group, pods.version) == ("", "v1")
    assert (leases.group, leases.version) == ("coordination.k8s.io", "v1")
    assert KINDS["resource.k8s.io/v1alpha3", "DeviceTaintRule"] is KINDS["resource.k8s.io/v1beta2", "DeviceTaintRule"]


# --- names on the wire ------------------------------------------------------------------------------------------------


WIRE_NAMES = {
    "v1/Pod": [
        "spec.containers[].ports[].hostIP",
        "spec.volumes[].awsElasticBlockStore.volumeID",
        "spec.volumes[].gcePersistentDisk.pdName",
        "spec.volumes[].gcePersistentDisk.fsType",
        "spec.volumes[].azureDisk.diskURI",
        "spec.volumes[].vsphereVolume.storagePolicyID",
        "spec.volumes[].scaleIO",
        "spec.volumes[].downwardAPI",
        "spec.volumes[].cephfs",
        "spec.volumes[].storageos",
        "spec.volumes[].iscsi.chapAuthDiscovery",
        "spec.volumes[].ephemeral.volumeClaimTemplate.spec.storageClassName",
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[].matchFields[].key",
        "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.topologyKey",
        "spec.topologySpreadConstraints[].whenUnsatisfiable",
        "spec.schedulingGroup.podGroupName",
        "spec.hostUsers",
        "status.podIP",
        "status.hostIP",
        "status.qosClass",
        "status.nominatedNodeName",
        "status.extendedResourceClaimStatus.requestMappings[].containerName",
        "status.nodeAllocatableResourceClaimStatuses[].resourceClaimName",
        "status.conditions[].observedGeneration",
    ],
    "v1/Node": ["spec.podCIDR", "spec.providerID", "status.images[].sizeBytes", "status.declaredFeatures"],
    "v1/Service": ["spec.clusterIP"],
    "v1/PersistentVolume": ["spec.csi.volumeHandle", "spec.claimRef.uid", "spec.volumeAttributesClassName"],
    "storage.k8s.io/v1/CSINode": ["spec.drivers[].nodeID", "spec.drivers[].topologyKeys"],
    "resource.k8s.io/v1/ResourceClaim": [
        "spec.devices.requests[].exactly.selectors[].cel.expression",
        "spec.devices.requests[].firstAvailable[].deviceClassName",
        "status.allocation.devices.results[].shareID",
        "status.allocation.allocationTimestamp",
        "status.reservedFor[].apiGroup",
    ],
    "resource.k8s.io/v1/ResourceSlice": [
        "spec.devices[].allowMultipleAllocations",
        "spec.pool.resourceSliceCount",
        "spec.sharedCounters[].name",
    ],
    "events.k8s.io/v1/Event": ["reportingController", "deprecatedCount", "series.lastObservedTime"],
    "v1/Event": ["reportingComponent", "involvedObject.fieldPath"],
    "coordination.k8s.io/v1/Lease": ["spec.holderIdentity", "spec.leaseTransitions"],
}


@pytest.mark.parametrize(("kind", "path"), [(kind, path) for kind, paths in WIRE_NAMES.items() for path in paths])
def test_the_api_s_own_spelling(kind: str, path: str) -> None:
    api_version, _, word = kind.rpartition("/")
    shape: msgspec.inspect.Type = msgspec.inspect.type_info(KINDS[api_version, word])
    for step in path.split("."):
        name, is_list = step.removesuffix("[]"), step.endswith("[]")
        assert isinstance(shape, msgspec.inspect.StructType)
        (shape,) = [field.type for field in shape.fields if field.encode_name == name]
        if isinstance(shape, msgspec.inspect.UnionType):
            shape = next(member for member in shape.types if not isinstance(member, msgspec.inspect.NoneType))
        if is_list:
            assert isinstance(shape, msgspec.inspect.VarTupleType)
            shape = shape.item_type


# --- reading ----------------------------------------------------------------------------------------------------------


def test_unknown_fields_are_skipped() -> None:
    decoded = codec.decode(json.dumps(raw_pod(spec={"dnsPolicy": "x", "containers": [{"name": "c", "env": [{}]}]})))
    assert isinstance(decoded, Pod)
    assert decoded.spec.containers == (Container(name="c"),)


def test_nulls_in_maps_and_lists_are_empty_values() -> None:
    decoded = codec.decode(
        raw_pod(
            spec={
                "containers": [None, {"name": "c", "resources": {"requests": {"cpu": None}}}],
                "tolerations": None,
                "nodeSelector": {"a": None},
                "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}},
                "overhead": None,
            },
            status=None,
        )
    )
    assert isinstance(decoded, Pod)
    assert decoded.spec.containers[0] == Container()
    assert decoded.spec.containers[1].resources.requests == {"cpu": 0}
    assert decoded.spec.tolerations == ()
    assert decoded.spec.node_selector == {"a": ""}
    assert decoded.spec.affinity is not None
    assert decoded.spec.affinity.pod_affinity is not None
    assert decoded.spec.overhead == {}


def test_absent_and_empty_stay_apart_where_they_differ() -> None:
    def selector(raw: dict[str, Any]) -> Any:
        return codec.convert({"topologySpreadConstraints": [raw]}, PodSpec).topology_spread_constraints[0].label_selector

    assert selector({}) is None
    assert selector({"labelSelector": None}) is None
    assert selector({"labelSelector": {}}) is not None
    written = codec.to_dict(codec.convert({"topologySpreadConstraints": [{"labelSelector": {}}], "nodeSelector": {}}, PodSpec))
    assert written["topologySpreadConstraints"] == [{"labelSelector": {}}]
    assert written["nodeSelector"] == {}
    service = codec.decode({"apiVersion": "v1", "kind": "Service", "spec": {"selector": {}}})
    assert codec.to_dict(service)["spec"] == {"selector": {}}


def test_numbers_are_quantities_too() -> None:
    decoded = codec.decode_as(Node, b'{"status":{"allocatable":{"cpu":4,"memory":1.5e9,"pods":"110"}}}')
    assert decoded.status.allocatable == {"cpu": 4, "memory": 1.5e9, "pods": "110"}


# --- complaining ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            raw_pod(spec={"containers": [{"ports": [{"hostPort": "80"}]}]}),
            "pod ns/p: spec.containers[0].ports[0].hostPort: invalid value '80': expected `int`, got `str`",
        ),
        (
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"a": "b", "c": 5}}},
            "node n: metadata.labels.c: invalid value 5: expected `str`, got `int`",
        ),
        (
            raw_pod(spec={"overhead": {"cpu": "1", "memory": ["x"]}}),
            "pod ns/p: spec.overhead.memory: invalid value ['x']: expected `int | float | str`, got `array`",
        ),
        (raw_pod(spec=[]), "pod ns/p: spec: invalid value []: expected `object`, got `array`"),
        (
            raw_pod(spec={"priority": 1.5, "tolerations": None}),
            "pod ns/p: spec.priority: invalid value 1.5: expected `int | null`, got `float`",
        ),
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": 5},
            "pod: metadata: invalid value 5: expected `object`, got `int`",
        ),
        ({"apiVersion": "v1", "kind": "Foo"}, "foo: kind: invalid value 'v1/Foo': not a kind that we know"),
        ({"kind": "Pod"}, "pod: kind: invalid value 'None/Pod': not a kind that we know"),
    ],
)  # fmt: skip
def test_complaints_name_object_field_and_value(data: dict[str, Any], text: str) -> None:
    for subject in (data, json.dumps(data), json.dumps(data).encode()):
        with pytest.raises(MalformedObject) as caught:
            codec.decode(subject)
        assert str(caught.value) == text


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"{'a': 1}", '{"a":'])
def test_what_is_no_json_is_malformed(data: bytes | str) -> None:
    for read in (codec.decode, codec.decode_json, lambda body: codec.decode_as(Pod, body)):
        with pytest.raises(MalformedObject, match="not JSON"):
            read(data)


@pytest.mark.parametrize("data", [b"[]", b"5", b'"x"', b"null"])
def test_what_is_no_object_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedObject):
        codec.decode(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["metadata", "spec", "status", "labels", "containers", "name", "resources", "requests", "volumes"])
SHAPED = st.recursive(
    JSON, lambda inner: st.dictionaries(FIELDS, inner, max_size=4) | st.lists(inner, max_size=2), max_leaves=12
)


@given(SHAPED)
def test_any_json_is_read_or_refused_with_our_own_error(raw: Any) -> None:
    try:
        decoded = codec.decode_as(Pod, json.dumps(raw))
    except MalformedObject as error:
        assert "\n" not in str(error).split("invalid value")[0]
        return
    assert codec.decode_as(Pod, codec.encode(decoded)) == decoded


# --- writing back -----------------------------------------------------------------------------------------------------


ORIGINAL = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "labels": {"a": "b"},
        "managedFields": [{"manager": "kubectl"}],
        "ownerReferences": [{"kind": "Job", "name": "j", "uid": "1", "future": True}],
    },
    "spec": {
        "containers": [{"name": "c", "image": "x", "env": [{"name": "A"}]}, {"name": "d", "tty": True}],
        "hostNetwork": False,
        "dnsPolicy": "Default",
    },
    "status": {
        "conditions": [
            {"type": "Ready", "status": "False", "future": 1},
            {"type": "PodScheduled", "status": "False", "lastProbeTime": None, "future": 2},
        ],
        "podIPs": [{"ip": "10.0.0.1"}],
    },
}


def changed(**parts: Any) -> Pod:
    decoded = codec.decode(ORIGINAL)
    assert isinstance(decoded, Pod)
    return msgspec.structs.replace(decoded, **parts)


def test_an_unchanged_object_is_written_as_it_was() -> None:
    assert codec.overlay(ORIGINAL, changed()) == ORIGINAL
    assert codec.overlay(json.dumps(ORIGINAL), changed()) == ORIGINAL
    assert codec.overlay(json.dumps(ORIGINAL).encode(), changed()) == ORIGINAL


def test_unknown_fields_survive_a_change_beside_them() -> None:
    pod = changed()
    result = codec.overlay(ORIGINAL, msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="n1")))
    assert result["spec"] == {**ORIGINAL["spec"], "nodeName": "n1"}  # type: ignore[dict-item]
    assert result["metadata"] == ORIGINAL["metadata"]
    assert "nodeName" not in ORIGINAL["spec"]


def test_list_entries_are_found_by_equality_then_by_name() -> None:
    pod = changed()
    ready, scheduled = pod.status.conditions
    conditions = (
        PodCondition(type="New", status="True"),
        msgspec.structs.replace(scheduled, status="True"),
        ready,
    )
    result = codec.overlay(ORIGINAL, changed(status=msgspec.structs.replace(pod.status, conditions=conditions)))
    assert result["status"]["conditions"] == [
        {"type": "New", "status": "True"},
        {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "future": 2},
        {"type": "Ready", "status": "False", "future": 1},
    ]
    assert result["status"]["podIPs"] == [{"ip": "10.0.0.1"}]


def test_removed_entries_and_fields_go() -> None:
    pod = changed()
    spec = msgspec.structs.replace(pod.spec, containers=pod.spec.containers[1:])
    result = codec.overlay(ORIGINAL, changed(spec=spec, metadata=msgspec.structs.replace(pod.metadata, labels={})))
    assert result["spec"]["containers"] == [{"name": "d", "tty": True}]
    assert "labels" not in result["metadata"]
    assert result["metadata"]["managedFields"] == [{"manager": "kubectl"}]


def test_maps_are_replaced_by_key() -> None:
    pod = changed()
    result = codec.overlay(ORIGINAL, changed(metadata=msgspec.structs.replace(pod.metadata, labels={"a": "c", "x": "y"})))
    assert result["metadata"]["labels"] == {"a": "c", "x": "y"}


def test_new_structs_are_written_whole() -> None:
    raw = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": {"x": 1}}
    claim = codec.decode(raw)
    assert isinstance(claim, ResourceClaim)
    status = ResourceClaimStatus(
        allocation=AllocationResult(allocation_timestamp="2026-01-01T00:00:00Z"),
        reserved_for=(ResourceClaimConsumerReference(resource="pods", name="p", uid="u"),),
    )
    result = codec.overlay(raw, msgspec.structs.replace(claim, status=status))
    assert result == {
        **raw,
        "status": {
            "allocation": {"allocationTimestamp": "2026-01-01T00:00:00Z"},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        },
    }
    cleared = codec.overlay(result, claim)
    assert cleared.get("status", {}) == {}


def test_version_and_kind_are_added_to_list_items() -> None:
    assert codec.overlay({"metadata": {"name": "x"}}, Pod(metadata=ObjectMeta(name="x"))) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x"},
    }


def test_plain_dicts_have_lists_not_tuples() -> None:
    written = codec.to_dict(Pod(spec=PodSpec(containers=(Container(name="a"),)), status=PodStatus(phase="Pending")))
    assert written == {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": [{"name": "a"}]},
        "status": {"phase": "Pending"},
    }


# --- small questions --------------------------------------------------------------------------------------------------


def test_keys_and_owners() -> None:
    owners = (OwnerReference(name="a"), OwnerReference(name="b", controller=True))
    meta = ObjectMeta(name="x", namespace="ns", uid="1", owner_references=owners)
    subject = Pod(metadata=meta)
    assert (subject.key, subject.name, subject.namespace, subject.uid) == ("ns/x", "x", "ns", "1")
    assert Node(metadata=ObjectMeta(name="n")).key == "n"
    assert meta.controller() == owners[1]
    assert ObjectMeta().controller() is None


def test_structs_are_frozen_and_take_no_positions() -> None:
    with pytest.raises(AttributeError):
        Pod().kind = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        Pod("v1")  # type: ignore[call-arg]


def test_priority_defaults_to_zero() -> None:
    assert Pod().priority == 0
    assert Pod(spec=PodSpec(priority=-5)).priority == -5


def test_subclasses_cover_the_kinds() -> None:
    assert all(issubclass(struct, TopLevel) for struct in KINDS.values())
    assert {Pod, Node, PersistentVolume, StorageClass} <= set(KINDS.values())
