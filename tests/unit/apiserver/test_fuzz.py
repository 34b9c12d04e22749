"""Whatever comes in, the store answers with an object or an API error, and stays whole.

Bounded to seconds here. The nightly run lasts as long as KUBESCHED_FUZZ_SECONDS says; what it found is in FOUND.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.apiserver import Store, VirtualClock
from kubesched.apiserver.patching import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from kubesched.apiserver.schema import Shape, protobuf, root_shape
from kubesched.apiserver.tables import encode_table
from kubesched.errors import ApiError

NIGHTLY = float(os.environ.get("KUBESCHED_FUZZ_SECONDS", "0"))
KINDS = [
    resource
    for resource in Store(VirtualClock()).context.catalogue
    if "update" in resource.verbs and resource.table != "customresourcedefinitions.apiextensions.k8s.io"
]
texts = st.sampled_from(
    ["", "a", "x/y", "A b", "1", "-5", "500m", "10%", "true", "default", "\x00", "é", "node-1", "2026-01-01T00:00:00Z"]
)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def shaped(draw: st.DrawFn, shape: Shape, depth: int = 0) -> Any:
    """Draw something that mostly looks like a shape, and sometimes not."""
    if draw(st.integers(0, 11)) == 0:
        return draw(values)
    if shape.form == "object":
        names = draw(st.lists(st.sampled_from(sorted(shape.fields)), max_size=5, unique=True)) if shape.fields else []
        return {name: draw(shaped(shape.fields[name].shape, depth + 1)) for name in names} if depth < 8 else {}
    if shape.form == "list" and shape.item is not None:
        return [draw(shaped(shape.item, depth + 1)) for _ in range(draw(st.integers(0, 2)))]
    if shape.form == "map" and shape.item is not None:
        return {draw(texts): draw(shaped(shape.item, depth + 1)) for _ in range(draw(st.integers(0, 2)))}
    if shape.form in ("int", "num"):
        return draw(st.integers(-3, 100))
    if shape.form == "bool":
        return draw(st.booleans())
    if shape.form == "intstr":
        return draw(st.integers(-1, 5) | texts)
    return draw(texts)


@st.composite
def asked(draw: st.DrawFn) -> tuple[Any, dict, Any, str]:
    resource = draw(st.sampled_from(KINDS))
    shape = root_shape(resource.api_version, resource.kind)
    assert shape is not None
    obj = {
        name: draw(shaped(field.shape))
        for name, field in shape.fields.items()
        if name not in ("apiVersion", "kind", "metadata") and draw(st.booleans())
    }
    if draw(st.integers(0, 9)) == 0:
        obj = draw(st.dictionaries(texts, values, max_size=3))
    metadata = draw(shaped(shape.fields["metadata"].shape))
    obj["metadata"] = {**metadata, "name": "x"} if isinstance(metadata, dict) and draw(st.integers(0, 5)) else metadata
    patch_type = draw(st.sampled_from([JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH]))
    if patch_type == JSON_PATCH:
        operation = st.fixed_dictionaries(
            {
                "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "?"]),
                "path": st.sampled_from(["", "/", "/metadata/name", "/spec", "/spec/containers/0", "/status/x/-", "x"]),
            },
            optional={"value": values, "from": st.sampled_from(["", "/spec", "/metadata"])},
        )
        patch: Any = draw(st.lists(operation, max_size=3) | values)
    else:
        patch = draw(shaped(shape) | values)
    return resource, obj, patch, patch_type


def attempt(call: Any, *arguments: Any, **options: Any) -> Any:
    """Return what a call returns; an API error is an answer too, anything else is a bug."""
    try:
        return call(*arguments, **options)
    except ApiError as error:
        assert error.status in (400, 403, 404, 409, 413, 415, 422, 429, 500), error
        assert error.message
        return None


def play(resource: Any, obj: Any, patch: Any, patch_type: str) -> None:
    store = Store(VirtualClock(), seed=1)
    made = attempt(store.create, resource, obj)
    name = made["metadata"]["name"] if made is not None else "x"
    for subresource in ("", "status") if resource.has_status else ("",):
        attempt(
            store.patch,
            resource,
            name,
            patch,
            patch_type=patch_type,
            subresource=subresource,
            field_manager="f",
            force=True,
        )
    for entry in store.list(resource).entries:
        assert msgspec.json.decode(entry.raw) == entry.obj
        again = attempt(store.update, resource, entry.obj)
        assert again is None or again["metadata"]["resourceVersion"] == entry.obj["metadata"]["resourceVersion"], (
            "what was stored is in its final form"
        )
    encode_table(resource, store.list(resource), 0.0, "Metadata")
    attempt(store.delete, resource, name)


examples = int(NIGHTLY * 150) or 250


@settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
@given(asked())
def test_anything_is_answered(request: tuple[Any, dict, Any, str]) -> None:
    play(*request)


@settings(max_examples=examples, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read_as_protobuf(body: bytes) -> None:
    envelope = b"k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12" + bytes([len(body) & 0x7F]) + body[: len(body) & 0x7F]
    for candidate in (body, b"k8s\x00" + body, envelope):
        try:
            assert isinstance(protobuf.decode(candidate), dict)
        except protobuf.Unreadable:
            continue


@settings(max_examples=examples, deadline=None)
@given(label=st.text(max_size=30), field=st.text(max_size=30))
def test_any_selector_is_read_or_refused(label: str, field: str) -> None:
    store = Store(VirtualClock(), seed=1)
    attempt(store.list, "pods", label_selector=label)
    attempt(store.list, "pods", field_selector=field)


# What fuzzing found: the story, the resource, the object, the patch and its type.
FOUND: list[tuple[str, str, Any, Any, str]] = [
    ("metadata that is a number", "podtemplates", {"metadata": 1}, [], JSON_PATCH),
    ("an object that is nothing", "nodes", None, None, MERGE_PATCH),
    ("an apply of nothing left an empty record of owners", "podtemplates", {"metadata": None}, {}, APPLY_PATCH),
    (
        "a client planted an empty record of owners",
        "workloads",
        {"metadata": {"managedFields": [], "name": "x"}},
        None,
        JSON_PATCH,
    ),
    (
        "a node without status got one by any other write",
        "nodes",
        {"metadata": {"name": "x"}},
        {"status": None},
        MERGE_PATCH,
    ),
]


@pytest.mark.parametrize(
    ("resource", "obj", "patch", "patch_type"), [row[1:] for row in FOUND], ids=[row[0] for row in FOUND]
)
def test_what_fuzzing_found_stays_fixed(resource: str, obj: Any, patch: Any, patch_type: str) -> None:
    play(Store(VirtualClock()).context.resource(resource), obj, patch, patch_type)
