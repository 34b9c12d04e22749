"""Whatever comes in, the store and the server answer with an object or an API error, and stay whole.

Bounded to seconds here. A long run lasts about as long as KUBESCHED_FUZZ_SECONDS says; what it found is in FOUND.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from typing import Any

import aiohttp
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.embedded import ApiServer, ManualClock, ObjectStore
from kubesched.embedded.printing.tables import encode_table
from kubesched.embedded.schema import Shape, protobuf, root_shape
from kubesched.embedded.verbs.patching import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from kubesched.errors import ApiError

NIGHTLY = float(os.environ.get("KUBESCHED_FUZZ_SECONDS", "0"))
KINDS = [
    resource
    for resource in ObjectStore(ManualClock()).context.catalogue
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
    store = ObjectStore(ManualClock(), seed=1)
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
    store = ObjectStore(ManualClock(), seed=1)
    attempt(store.list, "pods", label_selector=label)
    attempt(store.list, "pods", field_selector=field)


# --- the same over HTTP: every method, path, parameter and header, right and wrong

ALL = list(ObjectStore(ManualClock()).context.catalogue)
names = st.sampled_from(["a", "b", "default", "x" * 300, "A b", "%00", "..", "é", "a%2Fb"])
numbers = st.sampled_from(["0", "1", "2", "5", "-1", "x", "", "99999999999999999999999", "1.5", "٣"])
yes = st.sampled_from(["true", "false", "1", "0", "", "x"])
labels = st.sampled_from(
    ["a", "!a", "a=b", "a!=b", "a in (b,c)", "a notin ()", "a>1", "a==", ",", "((", "a in (", "\x00", "=" * 40]
)
fields = st.sampled_from(
    [
        "metadata.name=a",
        "metadata.name!=a",
        "spec.nodeName=",
        "status.phase=x",
        "metadata.name",
        "a=b",
        "=",
        ",,",
        "metadata.name=a\\,b",
    ]
)
PARAMETERS: dict[str, st.SearchStrategy[str]] = {
    "labelSelector": labels | st.text(max_size=12),
    "fieldSelector": fields | st.text(max_size=12),
    "limit": numbers,
    "continue": st.sampled_from(["", "x", "WzEsImEiXQ", "Wy0xLCJhIl0", "e30"]),
    "resourceVersion": numbers,
    "resourceVersionMatch": st.sampled_from(["Exact", "NotOlderThan", "x", ""]),
    "sendInitialEvents": yes,
    "allowWatchBookmarks": yes,
    "watch": yes,
    "timeoutSeconds": numbers,
    "dryRun": st.sampled_from(["All", "x", ""]),
    "fieldManager": st.sampled_from(["f", "", "x" * 129, "\x00"]),
    "force": yes,
    "fieldValidation": st.sampled_from(["Strict", "Warn", "Ignore", "x"]),
    "gracePeriodSeconds": numbers,
    "propagationPolicy": st.sampled_from(["Foreground", "Background", "Orphan", "x"]),
    "includeObject": st.sampled_from(["None", "Metadata", "Object", "x"]),
}
media = st.sampled_from(
    [
        "application/json",
        JSON_PATCH,
        MERGE_PATCH,
        STRATEGIC_PATCH,
        APPLY_PATCH,
        protobuf.MEDIA_TYPE,
        "application/yaml",
        "x",
        "",
    ]
)
accepts = st.sampled_from(
    [
        "application/json",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/vnd.kubernetes.protobuf",
        "*/*",
        "x;;=,",
        "",
    ]
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, dict[str, str], dict[str, str], bytes]:
    """Draw a request: method, path, parameters, headers, body."""
    resource = draw(st.sampled_from(ALL))
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    if resource.namespaced and draw(st.integers(0, 7)):
        root += f"/namespaces/{draw(st.sampled_from(['default', 'default', 'default', 'no', 'A b']))}"
    path = f"{root}/{resource.plural}"
    if draw(st.booleans()):
        path += f"/{draw(names)}"
        if draw(st.integers(0, 2)) == 0:
            path += f"/{draw(st.sampled_from([*resource.subresources, 'status', 'scale', 'binding', 'eviction', 'x', 'a/b']))}"
    if draw(st.integers(0, 19)) == 0:
        path = draw(
            st.sampled_from(
                ["/", "//", "/api", "/apis", "/api/v1", "/apis/apps/v1", "/openapi/v2", "/openapi/v3/x", "/version", "/x"]
            )
        )
    method = draw(st.sampled_from(["GET", "GET", "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE", "OPTIONS", "HEAD"]))
    chosen = draw(st.lists(st.sampled_from(sorted(PARAMETERS)), max_size=4, unique=True))
    parameters = {name: draw(PARAMETERS[name]) for name in chosen}
    if _is_watch(parameters):
        parameters.setdefault("timeoutSeconds", "1")
    shape = root_shape(resource.api_version, resource.kind)
    body: Any = draw(values)
    if shape is not None and draw(st.integers(0, 4)):
        body = {name: draw(shaped(one.shape)) for name, one in shape.fields.items() if draw(st.booleans())}
        if draw(st.integers(0, 4)):
            body = body | {"metadata": {"name": draw(names)}}
        if draw(st.integers(0, 4)):
            body = body | {"apiVersion": resource.api_version, "kind": resource.kind}
    raw = msgspec.json.encode(body) if draw(st.integers(0, 9)) else draw(st.binary(max_size=30))
    return method, path, parameters, {"Content-Type": draw(media), "Accept": draw(accepts)}, raw


def _is_watch(parameters: dict[str, str]) -> bool:
    return parameters.get("watch", "false") not in ("false", "0")


class Running:
    """A server and a client in one loop, for as long as the module is tested."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.server = ApiServer(ObjectStore(seed=1), bookmark_seconds=0.01)
        self.loop.run_until_complete(self.server.start())
        self.session = aiohttp.ClientSession(loop=self.loop)

    def ask(self, method: str, path: str, parameters: dict[str, str], headers: dict[str, str], body: bytes) -> None:
        self.loop.run_until_complete(self._ask(method, path, parameters, headers, body))

    async def _ask(self, method: str, path: str, parameters: dict[str, str], headers: dict[str, str], body: bytes) -> None:
        url = f"{self.server.url}{path}"
        data = body if method in ("POST", "PUT", "PATCH", "DELETE") else None
        async with self.session.request(method, url, params=parameters, headers=headers, data=data) as answer:
            if answer.status == 200 and _is_watch(parameters) and answer.headers.get("Transfer-Encoding"):
                answer.close()  # a stream; its beginning was fine, and the next request will show that the server is
                return
            text = await answer.read()
        assert answer.status != 500, text
        if answer.status >= 400 and method != "HEAD" and answer.content_type == "application/json":
            said = json.loads(text)
            assert (said["kind"], said["code"]) == ("Status", answer.status)
            assert said["message"]
        elif answer.status >= 400:
            # What is not HTTP is refused before it is a request, and a path that belongs to nobody in plain text.
            assert method == "HEAD" or answer.status == 400 or text == b"404 page not found\n", text

    def close(self) -> None:
        self.loop.run_until_complete(self.session.close())
        self.loop.run_until_complete(self.server.stop())
        self.loop.close()


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    made = Running()
    yield made
    made.close()


@settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests())
def test_any_request_is_answered(running: Running, request: Any) -> None:
    running.ask(*request)


def test_a_watch_that_asks_for_no_body_gets_none(running: Running) -> None:
    """Found by fuzzing: a HEAD with watch=1 was streamed to, and what it had not asked for was read as the next answer."""
    running.ask("HEAD", "/api/v1/namespaces", {"watch": "1", "timeoutSeconds": "1"}, {}, b"")
    running.ask("GET", "/api/v1/namespaces", {}, {}, b"")


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


@pytest.mark.parametrize(("resource", "obj", "patch", "patch_type"), [row[1:] for row in FOUND], ids=[row[0] for row in FOUND])
def test_what_fuzzing_found_stays_fixed(resource: str, obj: Any, patch: Any, patch_type: str) -> None:
    play(ObjectStore(ManualClock()).context.resource(resource), obj, patch, patch_type)
