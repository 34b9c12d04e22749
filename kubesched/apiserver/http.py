"""The HTTP face: paths, methods, query and body of a request become calls, results become JSON.

In: HTTP requests. Out: objects, lists, tables, streams of watch events; every refusal as a Status. The handler reads
the whole body first and then acts without waiting, so a write is never half done. A client that stops reading its watch
is cut off; nobody waits for it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.web_exceptions import HTTPRequestEntityTooLarge

from kubesched.apiserver import deleting, discovery, reading, subresources, writing
from kubesched.apiserver.access import Access, User, Wish
from kubesched.apiserver.context import Asked, Context
from kubesched.apiserver.deleting import DeleteOptions
from kubesched.apiserver.encoding import JSON, Form, encode, encode_listing, encoder_for, wanted_form
from kubesched.apiserver.openapi import V2_PROTOBUF, V2_PROTOBUF_TYPE, OpenApi
from kubesched.apiserver.patching import JSON_PATCH, MERGE_PATCH, PATCH_TYPES, STRATEGIC_PATCH, json_patch, merge
from kubesched.apiserver.reading import ListQuery
from kubesched.apiserver.refusals import (
    bad_request,
    internal,
    method_not_allowed,
    path_not_found,
    status_of,
    too_large_body,
    unsupported_media_type,
)
from kubesched.apiserver.resources import Object, Resource
from kubesched.apiserver.schema import protobuf
from kubesched.apiserver.streaming import stream_watch
from kubesched.apiserver.tables import encode_table
from kubesched.apiserver.watch import Entry
from kubesched.errors import ApiError

MAX_BODY_BYTES = 3 * 1024 * 1024
_KNOWN_PATHS = ("api", "apis", "healthz", "livez", "openapi", "readyz", "version")
_JSON_HEADERS = {"Content-Type": JSON}
_TRUE = ("true", "1", "t", "T", "TRUE", "True")
_logger = logging.getLogger(__name__)
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Target:
    """What a path under /api or /apis points at."""

    resource: Resource
    namespace: str
    name: str
    subresource: str


class HttpFace:
    """Answers requests from one context."""

    def __init__(
        self, context: Context, access: Access, bookmark_seconds: float = 60.0, stall_seconds: float = 30.0
    ) -> None:
        self._context = context
        self._access = access
        self._openapi = OpenApi(context.catalogue)
        self._bookmark_seconds = bookmark_seconds
        self._stall_seconds = stall_seconds

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; whatever goes wrong is answered with a Status."""
        try:
            return await self._answer(request)
        except ApiError as error:
            return _refusal(error)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as error:  # the face must answer: a bug in one verb may not take the server away
            _logger.exception("request failed: %s %s", request.method, request.path)
            return _refusal(internal(f"{type(error).__name__}: {error}"))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        user = self._access.user_for(request.headers.get("Authorization", ""))
        steps = [step for step in request.path.split("/") if step]
        first = steps[0] if steps else ""
        if first in ("api", "apis") and len(steps) > (2 if first == "api" else 3):
            target = self._target(steps)
            self._access.require(user, _wish(request, target))
            return await self._resource_request(request, target, user)
        verb = "get" if request.method in ("GET", "HEAD") else request.method.lower()
        self._access.require(user, Wish(verb, path=request.path))
        if verb != "get":
            raise method_not_allowed() if first in _KNOWN_PATHS else path_not_found()
        if first in ("api", "apis"):
            return self._discover(request, steps)
        return self._document(steps, request.headers.get("Accept", ""))

    def _document(self, steps: list[str], accept: str) -> web.StreamResponse:
        """Answer for the paths that are neither resources nor discovery."""
        if not steps:
            return _json({"paths": [f"/{path}" for path in _KNOWN_PATHS]})
        if steps[0] in ("healthz", "livez", "readyz"):
            return web.Response(text="ok")
        if steps == ["version"]:
            return _json(discovery.VERSION)
        body: bytes | None = None
        if steps == ["openapi", "v2"]:
            if "proto-openapi.spec.v2" in accept and JSON not in accept:
                return web.Response(body=V2_PROTOBUF, headers={"Content-Type": V2_PROTOBUF_TYPE})
            body = self._openapi.v2()
        elif steps == ["openapi", "v3"]:
            body = self._openapi.index()
        elif steps[:2] == ["openapi", "v3"]:
            body = self._openapi.document("/".join(steps[2:]))
        if body is None:
            raise path_not_found()
        return web.Response(body=body, headers=_JSON_HEADERS)

    def _discover(self, request: web.BaseRequest, steps: list[str]) -> web.StreamResponse:
        catalogue = self._context.catalogue
        document: Object | None
        if len(steps) == 1:
            form = wanted_form(request.headers.get("Accept", ""))
            if form.kind == "APIGroupDiscovery":
                media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
                document = discovery.aggregated(catalogue, core=steps[0] == "api")
                return web.Response(body=encode(document), headers={"Content-Type": media})
            if steps[0] == "api":
                document = discovery.api_versions(request.host)
            else:
                document = discovery.group_list(catalogue)
        elif steps[0] == "api":
            document = discovery.resource_list(catalogue, "", steps[1])
        elif len(steps) == 2:
            document = discovery.group(catalogue, steps[1])
        else:
            document = discovery.resource_list(catalogue, steps[1], steps[2])
        if document is None:
            raise path_not_found()
        return _json(document)

    def _target(self, steps: list[str]) -> Target:
        group, version, rest = ("", steps[1], steps[2:]) if steps[0] == "api" else (steps[1], steps[2], steps[3:])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        if len(rest) > 3:
            raise path_not_found()
        resource = self._context.catalogue.at(group, version, rest[0])
        if resource is None or (namespace and not resource.namespaced):
            raise path_not_found()
        name = rest[1] if len(rest) > 1 else ""
        subresource = rest[2] if len(rest) > 2 else ""
        if name and resource.namespaced and not namespace:
            raise path_not_found()
        if subresource and subresource not in resource.subresources:
            raise path_not_found()
        return Target(resource, namespace, name, subresource)

    async def _resource_request(self, request: web.BaseRequest, target: Target, user: User) -> web.StreamResponse:
        method = request.method
        query = request.rel_url.query
        if method in ("GET", "HEAD"):
            if target.name:
                return self._get(request, target)
            listing = _list_query(target, query)
            if query.get("watch") in _TRUE:
                return await self._watch(request, target, listing)
            return self._list(request, target, listing)
        body = await _read_body(request)
        if method == "POST":
            return self._post(request, target, body, user)
        if method == "PUT" and target.name:
            return self._put(request, target, body)
        if method == "PATCH" and target.name:
            return self._patch(request, target, body)
        if method == "DELETE":
            return self._delete(request, target, body)
        raise method_not_allowed()

    # --- reading

    def _get(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        _require_verb(target, "get")
        entry = self._context.get(target.resource, target.namespace, target.name)
        if target.subresource == "scale":
            return _json(subresources.scale_of(target.resource, entry))
        return self._entry(request, target.resource, entry)

    def _list(self, request: web.BaseRequest, target: Target, query: ListQuery) -> web.StreamResponse:
        _require_verb(target, "list")
        form = wanted_form(request.headers.get("Accept", ""))
        listing = reading.list_objects(self._context, target.resource, query)
        if form.kind == "Table":
            include = request.rel_url.query.get("includeObject", "Metadata")
            body = encode_table(target.resource, listing, self._context.clock.now(), include)
        else:
            body = encode_listing(target.resource, listing, form)
        return web.Response(body=body, headers=_JSON_HEADERS)

    async def _watch(self, request: web.BaseRequest, target: Target, query: ListQuery) -> web.StreamResponse:
        _require_verb(target, "watch")
        return await stream_watch(
            self._context,
            request,
            target.resource,
            query,
            self._writer(request, target.resource),
            self._bookmark_seconds,
            self._stall_seconds,
        )

    def _writer(self, request: web.BaseRequest, resource: Resource) -> tuple[Form, Callable[[Entry], bytes]]:
        form = wanted_form(request.headers.get("Accept", ""))
        if form.kind != "Table":
            return form, encoder_for(resource, form)
        include = request.rel_url.query.get("includeObject", "Metadata")
        now = self._context.clock.now

        def one_row(entry: Entry) -> bytes:
            return encode_table(resource, reading.Listing([entry], entry.version), now(), include)

        return dataclasses.replace(form, version=f"v1 with {include}"), one_row

    def _entry(
        self, request: web.BaseRequest, resource: Resource, entry: Entry, status: int = 200, asked: Asked | None = None
    ) -> web.Response:
        _, write = self._writer(request, resource)
        response = web.Response(body=write(entry), status=status, headers=_JSON_HEADERS)
        for warning in asked.warnings if asked is not None else ():
            response.headers.add("Warning", f'299 - "{_quotable(warning)}"')
        return response

    # --- writing

    def _post(self, request: web.BaseRequest, target: Target, raw: bytes, user: User) -> web.StreamResponse:
        asked = _asked(request)
        body = _object(request, raw)
        resource = target.resource
        if target.subresource == "binding":
            subresources.bind_object(self._context, target.namespace, target.name, body, asked)
            return _json(_success(), 201)
        if target.subresource == "eviction":
            return self._evict(target, body, asked)
        if target.name:
            raise method_not_allowed()
        if resource.table == "bindings":
            name = (body.get("metadata") or {}).get("name") or ""
            subresources.bind_object(self._context, target.namespace, name, body, asked)
            return _json(_success(), 201)
        if resource.group in ("authentication.k8s.io", "authorization.k8s.io"):
            answer = {**body, "kind": resource.kind, "apiVersion": resource.api_version}
            return _json({**answer, "status": self._access.review(resource.table, body, user)}, 201)
        _require_verb(target, "create")
        if resource.namespaced and not target.namespace:
            raise method_not_allowed()
        entry = writing.create(self._context, resource, body, target.namespace, asked)
        return self._entry(request, resource, entry, 201, asked)

    def _evict(self, target: Target, body: Object, asked: Asked) -> web.StreamResponse:
        given = (body.get("metadata") or {}).get("name")
        if given not in (None, "", target.name):
            raise bad_request(f"name in URL does not match name in Eviction object ({target.name} is not {given})")
        options = DeleteOptions.read({**(body.get("deleteOptions") or {}), **({"dryRun": 1} if asked.dry_run else {})})
        subresources.evict(self._context, target.namespace, target.name, options)
        return _json(_success(), 201)

    def _put(self, request: web.BaseRequest, target: Target, raw: bytes) -> web.StreamResponse:
        asked = _asked(request)
        body = _object(request, raw)
        context, resource = self._context, target.resource
        if target.subresource == "scale":
            entry = context.get(resource, target.namespace, target.name)
            return _json(subresources.scale_of(resource, subresources.set_scale(context, resource, entry, body, asked)))
        if target.subresource == "finalize":
            finalizers = [str(one) for one in (body.get("spec") or {}).get("finalizers") or ()]
            return self._entry(request, resource, deleting.finalize_namespace(context, target.name, finalizers, asked))
        _require_verb(target, "update")
        is_new = context.find(resource, target.namespace, target.name) is None
        entry = writing.update(context, resource, target.name, target.namespace, body, target.subresource, asked)
        return self._entry(request, resource, entry, 201 if is_new else 200, asked)

    def _patch(self, request: web.BaseRequest, target: Target, raw: bytes) -> web.StreamResponse:
        patch_type = request.content_type
        if patch_type not in PATCH_TYPES:
            raise unsupported_media_type(patch_type, PATCH_TYPES)
        asked = _asked(request)
        body = _decoded(raw)
        context, resource = self._context, target.resource
        if target.subresource == "scale":
            entry = context.get(resource, target.namespace, target.name)
            before = subresources.scale_of(resource, entry)
            if patch_type == JSON_PATCH:
                after = json_patch(before, body)
            elif patch_type in (MERGE_PATCH, STRATEGIC_PATCH):
                after = merge(before, body)
            else:
                raise unsupported_media_type(patch_type, (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH))
            return _json(
                subresources.scale_of(resource, subresources.set_scale(context, resource, entry, after, asked))
            )
        _require_verb(target, "patch")
        is_new = context.find(resource, target.namespace, target.name) is None
        entry = writing.patch(
            context, resource, target.name, target.namespace, body, patch_type, target.subresource, asked
        )
        return self._entry(request, resource, entry, 201 if is_new else 200, asked)

    def _delete(self, request: web.BaseRequest, target: Target, raw: bytes) -> web.StreamResponse:
        if target.subresource:
            raise method_not_allowed()
        options = _delete_options(request, raw)
        context, resource = self._context, target.resource
        if not target.name:
            _require_verb(target, "deletecollection")
            query = _list_query(target, request.rel_url.query)
            entries = deleting.delete_collection(context, resource, query, options)
            listing = reading.Listing(entries, context.storage.version)
            return web.Response(body=encode_listing(resource, listing, Form()), headers=_JSON_HEADERS)
        _require_verb(target, "delete")
        done = deleting.delete(context, resource, target.namespace, target.name, options)
        if not done.is_gone or resource.table in ("pods", "namespaces"):
            return self._entry(request, resource, done.entry)
        details: Object = {"name": target.name, "kind": resource.plural, "uid": done.entry.obj["metadata"]["uid"]}
        if resource.group:
            details["group"] = resource.group
        return _json(_success() | {"details": details})


def _wish(request: web.BaseRequest, target: Target) -> Wish:
    method = request.method
    if method in ("GET", "HEAD"):
        if target.name:
            verb = "get"
        else:
            verb = "watch" if request.rel_url.query.get("watch") in _TRUE else "list"
    elif method == "DELETE":
        verb = "delete" if target.name else "deletecollection"
    else:
        verb = {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(method, method.lower())
    resource = target.resource
    path = f"{resource.plural}/{target.subresource}" if target.subresource else resource.plural
    return Wish(verb, resource.group, path, target.namespace, target.name)


def _require_verb(target: Target, verb: str) -> None:
    if verb not in target.resource.verbs:
        raise method_not_allowed()


def _list_query(target: Target, query: Any) -> ListQuery:
    limit = query.get("limit") or "0"
    if not limit.isascii() or not limit.isdecimal():
        raise bad_request(f'limit: Invalid value: "{limit}": must be a non-negative integer')
    initial = query.get("sendInitialEvents")
    field_selector = query.get("fieldSelector", "")
    if target.name:
        field_selector = f"metadata.name={target.name}"
    return ListQuery(
        target.namespace,
        query.get("labelSelector", ""),
        field_selector,
        int(limit),
        query.get("continue", ""),
        query.get("resourceVersion", ""),
        query.get("resourceVersionMatch", ""),
        None if initial is None else initial in _TRUE,
    )


def _asked(request: web.BaseRequest) -> Asked:
    query = request.rel_url.query
    dry_run = query.getall("dryRun", [])
    if any(one not in ("All", "") for one in dry_run):
        raise bad_request(f'dryRun: Unsupported value: {dry_run}: supported values: "All"')
    validation = query.get("fieldValidation") or "Warn"
    if validation not in ("Strict", "Warn", "Ignore"):
        raise bad_request(
            f'fieldValidation: Unsupported value: "{validation}": supported values: "Ignore", "Strict", "Warn"'
        )
    manager = query.get("fieldManager") or request.headers.get("User-Agent", "").partition("/")[0] or "unknown"
    return Asked("All" in dry_run, manager[:128], query.get("force") in _TRUE, field_validation=validation)


def _delete_options(request: web.BaseRequest, raw: bytes) -> DeleteOptions:
    body = _object(request, raw) if raw else {}
    query = request.rel_url.query
    if "gracePeriodSeconds" in query:
        try:
            body["gracePeriodSeconds"] = int(query["gracePeriodSeconds"])
        except ValueError:
            raise bad_request(f"gracePeriodSeconds: {query['gracePeriodSeconds']!r} is not an integer") from None
    if "propagationPolicy" in query:
        body["propagationPolicy"] = query["propagationPolicy"]
    if "dryRun" in query:
        body["dryRun"] = query["dryRun"]
    return DeleteOptions.read(body)


async def _read_body(request: web.BaseRequest) -> bytes:
    if request.content_length is not None and request.content_length > MAX_BODY_BYTES:
        raise too_large_body(MAX_BODY_BYTES)
    try:
        return await request.read()
    except HTTPRequestEntityTooLarge:
        raise too_large_body(MAX_BODY_BYTES) from None


def _object(request: web.BaseRequest, raw: bytes) -> Object:
    if request.content_type == protobuf.MEDIA_TYPE:
        try:
            return protobuf.decode(raw)
        except protobuf.Unreadable as error:
            raise bad_request(f"the object provided is unrecognized: {error}") from error
    if request.content_type not in (JSON, "application/octet-stream", "text/json"):
        raise unsupported_media_type(request.content_type, (JSON, protobuf.MEDIA_TYPE))
    body = _decoded(raw)
    if not isinstance(body, dict):
        raise bad_request("the body of the request is not a JSON object")
    return body


def _decoded(raw: bytes) -> Any:
    try:
        return _decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise bad_request(f"the object provided is unrecognized (must be of type JSON): {error}") from error


def _json(document: Object, status: int = 200) -> web.Response:
    return web.Response(body=encode(document), status=status, headers=_JSON_HEADERS)


def _success() -> Object:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def _refusal(error: ApiError) -> web.Response:
    response = _json(status_of(error), error.status)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(int(error.retry_after))
    return response


def _quotable(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
