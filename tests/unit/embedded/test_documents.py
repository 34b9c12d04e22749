"""Discovery, OpenAPI, the field tables, protobuf, custom resources and access."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Any

import kubernetes_asyncio.client.models as models
import msgspec
import pytest

from kubesched import errors
from kubesched.embedded import ObjectStore
from kubesched.embedded.http.access import Access, AccessRequest, User, read_tokens
from kubesched.embedded.http.discovery import aggregated, resource_list
from kubesched.embedded.http.openapi import OpenApi
from kubesched.embedded.schema import Shape, protobuf, root_shape, shape_named
from kubesched.embedded.schema.resources import Catalogue


def test_both_forms_of_discovery_list_the_same() -> None:
    catalogue = Catalogue()
    plain: set[tuple[str, str, str]] = set()
    for group, versions in {"": ["v1"], **catalogue.groups()}.items():
        for version in versions:
            listed = resource_list(catalogue, group, version)
            assert listed is not None
            plain |= {(group, version, one["name"]) for one in listed["resources"]}
    found: set[tuple[str, str, str]] = set()
    for core in (True, False):
        for item in aggregated(catalogue, core)["items"]:
            for version in item["versions"]:
                for one in version["resources"]:
                    where = (item["metadata"].get("name", ""), version["version"])
                    found.add((*where, one["resource"]))
                    found |= {(*where, f"{one['resource']}/{sub['subresource']}") for sub in one.get("subresources", ())}
    assert plain == found
    assert ("", "v1", "pods/binding") in found


def test_openapi_refers_only_to_what_it_defines(store: ObjectStore) -> None:
    documents = OpenApi(store.context.catalogue)
    index = msgspec.json.decode(documents.index())["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/resource.k8s.io/v1"} <= set(index)
    for path in index:
        document = msgspec.json.decode(documents.document(path) or b"")
        schemas = document["components"]["schemas"]
        for reference in _references(document):
            assert reference.removeprefix("#/components/schemas/") in schemas, (path, reference)
    v2 = msgspec.json.decode(documents.v2())
    assert all(one.removeprefix("#/definitions/") in v2["definitions"] for one in _references(v2))
    patch = msgspec.json.decode(documents.document("apis/apps/v1") or b"")["paths"][
        "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    ]["patch"]
    assert "fieldValidation" in {one["name"] for one in patch["parameters"]}


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [one for inner in value.values() for one in _references(inner)]
    return [one for inner in value for one in _references(inner)] if isinstance(value, list) else []


NEWER = {
    "V1NodeAllocatableResourceClaimStatus": {"mapping", "overhead"},
    "V1NodeSpec": {"podPreemptionPolicy"},
    "V1ExactDeviceRequest": {"derivedAttributes"},
    "V1DeviceSubRequest": {"derivedAttributes"},
    "V1DeviceRequestAllocationResult": {"skipNodeOperations"},
    "V1ResourceSliceSpec": {"skipNodeOperations"},
    "V1Device": {"nodeAllocatableResources"},
    "V1DeviceCounterConsumption": {"compatibilityGroups"},
}
"""Fields of 1.37, which the client of 1.36 does not know."""


@pytest.mark.skipif(
    int(metadata.version("kubernetes_asyncio").split(".")[0]) < 36, reason="an older client has not all fields of 1.36"
)
def test_the_field_tables_agree_with_a_client_library(store: ObjectStore) -> None:
    """The client's models come from the API's own documents; ours were written down from them."""
    seen: set[tuple[str, str]] = set()

    def compare(shape: Shape, model: str) -> None:
        if (shape.name, model) in seen:
            return
        seen.add((shape.name, model))
        cls = getattr(models, model)
        theirs = {cls.attribute_map[name]: kind for name, kind in cls.openapi_types.items()}
        assert set(shape.fields) - NEWER.get(model, set()) == set(theirs), model
        for name, kind in theirs.items():
            inner = shape.fields[name].shape
            while inner.item is not None:
                inner = inner.item
            plain = kind.removeprefix("list[").removeprefix("dict(str, ").rstrip("])")
            if inner.form == "object":
                compare(inner, plain)
            else:
                assert not hasattr(models, plain), (model, name, kind)

    for model, kind in (("V1Pod", "Pod"), ("V1Node", "Node"), ("V1Deployment", "Deployment"), ("V1Job", "Job")):
        compare(shape_named(kind), model)
    compare(shape_named("ResourceClaim"), "ResourceV1ResourceClaim")
    compare(shape_named("ResourceSlice"), "V1ResourceSlice")
    assert len(seen) > 150


def _varint(number: int) -> bytes:
    found = b""
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def _field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value & (2**64 - 1))
    raw = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def test_a_protobuf_pod_reads_like_its_json() -> None:
    metadata = _field(1, "web") + _field(2, "") + _field(3, "default") + _field(11, _field(1, "app") + _field(2, "x"))
    limits = _field(1, _field(1, "cpu") + _field(2, _field(1, "500m")))
    volume = _field(1, "v") + _field(2, _field(2, b""))  # emptyDir stands inside the inlined source
    container = _field(1, "c") + _field(2, "img") + _field(8, limits) + _field(6, _field(2, 0) + _field(3, 80))
    spec = _field(1, volume) + _field(2, container) + _field(4, 0) + _field(11, 0) + _field(25, -5)
    status = _field(1, "Pending") + _field(7, _field(1, 1_767_225_600))
    pod = _field(1, metadata) + _field(2, spec) + _field(3, status)
    body = protobuf.MAGIC + _field(1, _field(1, "v1") + _field(2, "Pod")) + _field(2, pod)
    assert protobuf.decode(body) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "x"}},
        "spec": {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [
                {
                    "name": "c",
                    "image": "img",
                    "resources": {"limits": {"cpu": "500m"}},
                    "ports": [{"containerPort": 80}],
                }
            ],
            "terminationGracePeriodSeconds": 0,
            "priority": -5,
        },
        "status": {"phase": "Pending", "startTime": "2026-01-01T00:00:00Z"},
    }


def test_numbers_of_one_type_do_not_collide() -> None:
    for kind in ("Pod", "Node", "Deployment", "PersistentVolume", "Service", "Event", "Lease", "ResourceSlice"):
        shape = shape_named(kind)
        for one in _objects(shape, set()):
            numbers = [field.numbers for field in one.fields.values() if field.numbers]
            assert len(numbers) == len(set(numbers)), one.name


def _objects(shape: Shape, seen: set[str]) -> list[Shape]:
    while shape.item is not None:
        shape = shape.item
    if shape.form != "object" or shape.name in seen:
        return []
    seen.add(shape.name)
    return [shape] + [one for field in shape.fields.values() for one in _objects(field.shape, seen)]


def test_every_built_in_kind_has_its_fields() -> None:
    for resource in Catalogue():
        assert root_shape(resource.api_version, resource.kind) is not None, resource.qualified


# --- custom resources


def definition(**version: Any) -> dict:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "maximum": 9},
                    "mode": {"type": "string", "enum": ["fast", "safe"], "default": "safe"},
                    "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            },
            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
        },
    }
    first = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    second = {"name": "v1beta1", "served": True, "storage": False, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": "x.io", "scope": "Namespaced", "names": names, "versions": [first, second]}
    return {"metadata": {"name": "things.x.io"}, "spec": spec}


def test_a_definition_serves_its_kind_in_all_versions(store: ObjectStore) -> None:
    store.create("customresourcedefinitions", definition())
    body = {"metadata": {"name": "t"}, "spec": {"size": 3, "lost": 1, "free": {"kept": 1}}}
    made = store.create("things.x.io", body)
    assert made["spec"] == {"size": 3, "mode": "safe", "free": {"kept": 1}}
    assert store.get("things.v1beta1.x.io", "t")["apiVersion"] == "x.io/v1beta1"
    assert (
        store.patch("things.x.io", "t", {"spec": {"size": 4}}, patch_type="application/merge-patch+json")["metadata"][
            "generation"
        ]
        == 2
    )
    store.delete("customresourcedefinitions", "things.x.io")
    with pytest.raises(errors.BadRequest, match="doesn't have a resource type"):
        store.list("things.x.io")


def test_a_pattern_that_is_no_regular_expression_is_refused(store: ObjectStore) -> None:
    body = definition()
    body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["name"]["pattern"] = "(?=a)"
    with pytest.raises(errors.Invalid, match=r"\.pattern: Invalid value: .*must be a valid regular expression, but isn't"):
        store.create("customresourcedefinitions", body)


WRONG_THINGS = [
    ("too small", {"size": 0}, "spec.size: Invalid value: 0: should be greater than or equal to 1"),
    ("missing", {}, "spec.size: Required value"),
    ("not in the list", {"size": 1, "mode": "slow"}, 'spec.mode: Unsupported value: "slow"'),
    ("not the pattern", {"size": 1, "name": "A"}, "spec.name: Invalid value"),
    ("too long", {"size": 1, "name": "abcdef"}, "spec.name: Too long"),
]


@pytest.mark.parametrize(("spec", "text"), [row[1:] for row in WRONG_THINGS], ids=[row[0] for row in WRONG_THINGS])
def test_a_schema_is_enforced(store: ObjectStore, spec: dict, text: str) -> None:
    store.create("customresourcedefinitions", definition())
    with pytest.raises(errors.Invalid) as found:
        store.create("things.x.io", {"metadata": {"name": "t"}, "spec": spec})
    assert text in found.value.message


def test_a_wrong_type_is_not_decoded(store: ObjectStore) -> None:
    store.create("customresourcedefinitions", definition())
    with pytest.raises(errors.BadRequest, match=r"cannot unmarshal string into field spec\.size"):
        store.create("things.x.io", {"metadata": {"name": "t"}, "spec": {"size": "three"}})


def test_a_deleted_definition_leaves_nothing_and_its_successor_has_no_past(store: ObjectStore) -> None:
    storage = store.context.storage
    tables = {table.name for table in storage.tables()}
    store.create("customresourcedefinitions", definition())
    store.create("things.x.io", {"metadata": {"name": "t"}, "spec": {"size": 1}})
    watch, before = store.watch("things.x.io"), store.resource_version
    store.delete("customresourcedefinitions", "things.x.io")
    assert [event.type for event in watch.drain()] == ["ADDED", "DELETED"]
    assert watch.closed
    assert {table.name for table in storage.tables()} == tables
    store.create("customresourcedefinitions", definition())
    with pytest.raises(errors.Gone, match="too old resource version"):
        store.watch("things.x.io", resource_version=before)


def test_a_definition_that_a_quota_counts_keeps_its_listeners(store: ObjectStore) -> None:
    hard = {"count/things.x.io": "1"}
    store.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    for _ in range(2):
        store.create("customresourcedefinitions", definition())
        store.create("things.x.io", {"metadata": {"name": "t"}, "spec": {"size": 1}})
        assert store.context.quotas.used("default/q") == hard
        store.delete("customresourcedefinitions", "things.x.io")
        assert store.context.quotas.used("default/q") == {"count/things.x.io": "0"}


def test_the_subresources_of_a_custom_kind(store: ObjectStore) -> None:
    paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
    store.create("customresourcedefinitions", definition(subresources={"status": {}, "scale": paths}))
    store.create("things.x.io", {"metadata": {"name": "t"}, "spec": {"size": 1}, "status": {"replicas": 7}})
    assert "status" not in store.get("things.x.io", "t")
    assert store.scale("things.x.io", "t", 5)["spec"]["size"] == 5


def test_a_definition_that_makes_no_sense_is_refused(store: ObjectStore) -> None:
    wrong = definition()
    wrong["metadata"]["name"] = "other.x.io"
    with pytest.raises(errors.Invalid, match=r"must be spec\.names\.plural"):
        store.create("customresourcedefinitions", wrong)


# --- access


def test_token_files_are_read_and_mistakes_located(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text('# people\nabc,ann,1,"one,two"\ndef,bob,2\n')
    found = read_tokens(path)
    assert found["abc"] == User("ann", ("one", "two", "system:authenticated"), "1")
    assert found["def"].groups == ("system:authenticated",)
    path.write_text("abc,ann,1\nonly-a-token\n")
    with pytest.raises(errors.ConfigError, match="line 2: expected token,user,uid"):
        read_tokens(path)


def grant(store: ObjectStore, namespace: str, rules: list[dict], subject: dict) -> None:
    kind = "Role" if namespace else "ClusterRole"
    store.create(f"{kind.lower()}s", {"metadata": {"name": "r"}, "rules": rules}, namespace)
    body = {"metadata": {"name": "b"}, "subjects": [subject], "roleRef": {"kind": kind, "name": "r"}}
    store.create(f"{kind.lower()}bindings", body, namespace)


PODS = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
GRANTS = [
    ("a cluster role", "", PODS, AccessRequest("list", "", "pods", "team"), True),
    ("a role in its namespace", "default", PODS, AccessRequest("list", "", "pods", "default"), True),
    ("a role in another namespace", "default", PODS, AccessRequest("list", "", "pods", "kube-system"), False),
    ("another verb", "", PODS, AccessRequest("delete", "", "pods", "default"), False),
    ("a subresource", "", PODS, AccessRequest("get", "", "pods/status", "default"), False),
    (
        "everything of a group",
        "",
        [{"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]}],
        AccessRequest("patch", "apps", "deployments/scale"),
        True,
    ),
    ("one name", "", [{**PODS[0], "resourceNames": ["a"]}], AccessRequest("get", "", "pods", "default", "a"), True),
    ("another name", "", [{**PODS[0], "resourceNames": ["a"]}], AccessRequest("get", "", "pods", "default", "b"), False),
    ("a path", "", [{"nonResourceURLs": ["/metrics*"], "verbs": ["get"]}], AccessRequest("get", path="/metrics/slis"), True),
    ("health for everybody", "", [], AccessRequest("get", path="/healthz"), True),
]


@pytest.mark.parametrize(
    ("namespace", "rules", "wanted", "allowed"), [row[1:] for row in GRANTS], ids=[row[0] for row in GRANTS]
)
def test_roles_grant_what_they_say(
    store: ObjectStore, namespace: str, rules: list, wanted: AccessRequest, allowed: bool
) -> None:
    grant(store, namespace, rules, {"kind": "User", "name": "bob"})
    access = Access(store.context, {})
    assert access.allows(User("bob", ("system:authenticated",)), wanted) is allowed
    if not allowed:
        with pytest.raises(errors.Forbidden, match='User "bob" cannot'):
            access.require(User("bob"), wanted)
    if wanted.resource:
        assert access.allows(User("eve"), wanted) is False
