"""The HTTP side: paths, methods, parameters and bodies become calls of the verbs, and results become JSON.

In: HTTP requests. Out: objects, lists, tables, watch streams; every refusal as a Status. The handler first reads the whole
body and then acts without waiting, so a write is never half done. A client that stops reading its watch is cut off.

    handle  >  _answer: origin, user, target, rights  >  _resource_request: by method  >  _get, _list, _watch, _post, ...
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable

from aiohttp import web

from kubesched.embedded.api_errors import (
    Undecoded,
    bad_request,
    internal,
    method_not_allowed,
    not_running,
    page_not_found,
    path_not_found,
    status_of,
    unfit_patch,
    unsupported_media_type,
)
from kubesched.embedded.http import discovery, request_parsing
from kubesched.embedded.http.access import Access, AccessRequest, User, check_review
from kubesched.embedded.http.encoding import JSON, Form, encode, encode_listing, encoder_for, wanted_form
from kubesched.embedded.http.openapi import V2_PROTOBUF, V2_PROTOBUF_TYPE, OpenApi
from kubesched.embedded.http.request_parsing import MAX_BODY_BYTES as MAX_BODY_BYTES
from kubesched.embedded.http.request_parsing import YAML
from kubesched.embedded.http.streaming import stream_watch
from kubesched.embedded.printing.tables import encode_table
from kubesched.embedded.printing.usage_metrics import get_metrics, is_metrics, list_metrics
from kubesched.embedded.schema import protobuf
from kubesched.embedded.schema.resources import SUBRESOURCE_VERBS, Object, Resource
from kubesched.embedded.storage.watch import Entry
from kubesched.embedded.verbs import deletion, reading, subresources, writing
from kubesched.embedded.verbs.context import Context, Target, WriteOptions
from kubesched.embedded.verbs.deletion import DeleteOptions
from kubesched.embedded.verbs.patching import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    PATCH_TYPES,
    STRATEGIC_PATCH,
    json_patch,
    merge,
)
from kubesched.embedded.verbs.reading import ListQuery
from kubesched.errors import ApiError, Forbidden
from kubesched.http import Origins

_KNOWN_PATHS = ("api", "apis", "healthz", "livez", "openapi", "readyz", "version")
_JSON_HEADERS = {"Content-Type": JSON}
_KUBELETS = frozenset(("log", "exec", "attach", "portforward", "proxy"))  # what only a real kubelet can answer
_KUBERNETES_CLIENT = " kubernetes/"  # in the User-Agent of whatever is built with Kubernetes' own client library
_INCLUDED = ("", "Metadata", "Object", "None")
_logger = logging.getLogger(__name__)


class HttpFace:
    """Answers the requests to one server."""

    def __init__(
        self,
        context: Context,
        access: Access,
        origins: Origins | None = None,
        bookmark_seconds: float = 60.0,
        stall_seconds: float = 30.0,
    ) -> None:
        """With `origins` no caller shows credentials, and requests that a web site could have sent are refused."""
        self._context = context
        self._origins = origins
        self._access = access
        self._openapi = OpenApi(context.catalogue)
        self._bookmark_seconds = bookmark_seconds
        self._stall_seconds = stall_seconds

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request. Whatever goes wrong becomes a Status."""
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
        """Find out who asks and for what, check the rights, and answer."""
        if self._origins is not None:
            _require_own_origin(self._origins, request)
        user = self._access.user_for(request.headers.get("Authorization", ""))
        steps = [step for step in request.path.split("/") if step]
        first = steps[0] if steps else ""
        if first in ("api", "apis") and len(steps) > (2 if first == "api" else 3):
            target = self._target(steps)
            self._access.require(user, _access_request(request, target))
            return await self._resource_request(request, target, user)
        verb = "get" if request.method in ("GET", "HEAD") else request.method.lower()
        self._access.require(user, AccessRequest(verb, path=request.path))
        if verb != "get":
            raise method_not_allowed() if first in _KNOWN_PATHS else page_not_found()
        if first in ("api", "apis"):
            return self._discover(request, steps)
        return self._document(steps, request.headers.get("Accept", ""))

    def _document(self, steps: list[str], accept: str) -> web.StreamResponse:
        """Answer the paths that are neither resources nor discovery: health, version and OpenAPI."""
        if not steps:
            return _json({"paths": [f"/{path}" for path in _KNOWN_PATHS]})
        if steps[0] in ("healthz", "livez", "readyz"):
            return web.Response(text="ok")
        if steps == ["version"]:
            return _json(discovery.version(self._context.catalogue.release))
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
            raise page_not_found()
        return web.Response(body=body, headers=_JSON_HEADERS)

    def _discover(self, request: web.BaseRequest, steps: list[str]) -> web.StreamResponse:
        """Answer /api, /apis and the lists of groups and resources below them."""
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
            raise path_not_found() if len(steps) > 2 or steps[0] == "api" else page_not_found()
        return _json(document)

    def _target(self, steps: list[str]) -> Target:
        """Return what a path addresses.

        /api/v1/namespaces/NS/pods/NAME/status, /apis/apps/v1/deployments, /api/v1/namespaces/NS/finalize, ...
        """
        group, version, rest = ("", steps[1], steps[2:]) if steps[0] == "api" else (steps[1], steps[2], steps[3:])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        if len(rest) > 3:
            raise path_not_found()
        resource = self._context.catalogue.at(group, version, rest[0])
        if resource is None and group and group not in self._context.catalogue.groups():
            raise page_not_found()
        if resource is None or (namespace and not resource.namespaced):
            raise path_not_found()
        name = rest[1] if len(rest) > 1 else ""
        subresource = rest[2] if len(rest) > 2 else ""
        if name and resource.namespaced and not namespace:
            raise path_not_found()
        if subresource and subresource not in resource.subresources:
            if resource.table == "pods" and subresource in _KUBELETS:
                self._context.get(resource, namespace, name)
                raise not_running(name, subresource)
            raise path_not_found()
        return Target(resource, namespace, name, subresource)

    async def _resource_request(self, request: web.BaseRequest, target: Target, user: User) -> web.StreamResponse:
        """Answer a request to a resource by its method."""
        method = request.method
        query = request.rel_url.query
        _require_subresource_verb(method, target)
        if method in ("GET", "HEAD"):
            if target.name:
                return self._get(request, target)
            listing = request_parsing.list_query(query, target.namespace)
            if request_parsing.flag(query, "watch"):
                if method == "HEAD":  # there is nothing to say about a stream before it flows
                    return web.Response(headers=_JSON_HEADERS)
                return await self._watch(request, target, listing)
            return self._list(request, target, listing)
        body = await request_parsing.read_body(request)
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
        """Answer with one object, or with its Scale."""
        _require_verb(target, "get")
        if is_metrics(target.resource):
            made = get_metrics(self._context, target.resource, target.namespace, target.name)
            return self._entry(request, target.resource, made)
        entry = self._context.get(target.resource, target.namespace, target.name)
        if target.subresource == "scale":
            return _json(subresources.scale_of(target.resource, entry))
        return self._entry(request, target.resource, entry)

    def _list(self, request: web.BaseRequest, target: Target, query: ListQuery) -> web.StreamResponse:
        """Answer with a list or a table."""
        _require_verb(target, "list")
        form = wanted_form(request.headers.get("Accept", ""))
        listed = list_metrics if is_metrics(target.resource) else reading.list_objects
        listing = listed(self._context, target.resource, query)
        if form.kind == "Table":
            include = _included(request)
            body = encode_table(target.resource, listing, self._context.clock.now(), include)
        else:
            body = encode_listing(target.resource, listing, form)
        return web.Response(body=body, headers=_JSON_HEADERS)

    async def _watch(self, request: web.BaseRequest, target: Target, query: ListQuery) -> web.StreamResponse:
        """Answer with a stream of events."""
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
        """Return the form that the Accept header asks for, and the function that writes an entry in it."""
        form = wanted_form(request.headers.get("Accept", ""))
        if form.kind != "Table":
            return form, encoder_for(resource, form)
        include = _included(request)
        now = self._context.clock.now

        def one_row(entry: Entry) -> bytes:
            return encode_table(resource, reading.Listing([entry], entry.version), now(), include)

        return dataclasses.replace(form, version=f"v1 with {include}"), one_row

    def _entry(
        self, request: web.BaseRequest, resource: Resource, entry: Entry, status: int = 200, options: WriteOptions | None = None
    ) -> web.Response:
        """Answer with one entry; warnings go out as headers, which kubectl prints."""
        _, write = self._writer(request, resource)
        response = web.Response(body=write(entry), status=status, headers=_JSON_HEADERS)
        for warning in options.warnings if options is not None else ():
            response.headers.add("Warning", f'299 - "{_quotable(warning)}"')
        return response

    # --- writing

    def _post(self, request: web.BaseRequest, target: Target, raw: bytes, user: User) -> web.StreamResponse:
        """Create an object, or do what the subresource does. Reviews are answered and not stored."""
        options = request_parsing.write_options(request)
        body = request_parsing.decoded_object(request, raw)
        resource = target.resource
        if target.subresource == "binding" or resource.table == "bindings":
            name = target.name or (body.get("metadata") or {}).get("name") or ""
            subresources.bind_object(self._context, target.namespace, name, body, options)
            return _json(_success(201), 201)
        if target.subresource == "eviction":
            return self._evict(target, body, options)
        if target.name:
            raise method_not_allowed()
        if resource.group in ("authentication.k8s.io", "authorization.k8s.io"):
            if resource.plural.endswith("accessreviews"):
                check_review(resource, body)
            answer = {**body, "kind": resource.kind, "apiVersion": resource.api_version}
            return _json({**answer, "status": self._access.review(resource.table, body, user)}, 201)
        _require_verb(target, "create")
        if resource.namespaced and not target.namespace:
            raise method_not_allowed()
        entry = writing.create(self._context, target, body, options)
        return self._entry(request, resource, entry, 201, options)

    def _evict(self, target: Target, body: Object, options: WriteOptions) -> web.StreamResponse:
        """Evict the pod that an Eviction object names."""
        if (body.get("metadata") or {}).get("name") != target.name:
            raise bad_request("name in URL does not match name in Eviction object")
        delete_options = DeleteOptions.read({**(body.get("deleteOptions") or {}), **({"dryRun": 1} if options.dry_run else {})})
        subresources.evict(self._context, target.namespace, target.name, delete_options)
        return _json(_success(201), 201)

    def _put(self, request: web.BaseRequest, target: Target, raw: bytes) -> web.StreamResponse:
        """Replace an object, its scale, or the finalizers of a namespace."""
        options = request_parsing.write_options(request)
        body = request_parsing.decoded_object(request, raw)
        context, resource = self._context, target.resource
        if target.subresource == "scale":
            entry = context.get(resource, target.namespace, target.name)
            return _json(subresources.scale_of(resource, subresources.set_scale(context, resource, entry, body, options)))
        if target.subresource == "finalize":
            finalizers = [str(one) for one in (body.get("spec") or {}).get("finalizers") or ()]
            return self._entry(request, resource, deletion.finalize_namespace(context, target.name, finalizers, options))
        _require_verb(target, "update")
        is_new = context.find(resource, target.namespace, target.name) is None
        entry = writing.update(context, target, body, options)
        return self._entry(request, resource, entry, 201 if is_new else 200, options)

    def _patch(self, request: web.BaseRequest, target: Target, raw: bytes) -> web.StreamResponse:
        """Patch an object or its scale. A scale is not stored, so it is read, patched and set."""
        patch_type = request.content_type
        if patch_type not in PATCH_TYPES:
            raise unsupported_media_type(patch_type, PATCH_TYPES)
        options = request_parsing.write_options(request, patch_type)
        body = request_parsing.decoded_yaml(raw) if patch_type == APPLY_PATCH else request_parsing.decoded(raw)
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
            try:
                scaled = subresources.set_scale(context, resource, entry, after, options)
            except Undecoded as error:
                raise unfit_patch(str(error)) from error
            return _json(subresources.scale_of(resource, scaled))
        _require_verb(target, "patch")
        is_new = context.find(resource, target.namespace, target.name) is None
        entry = writing.patch(context, target, body, patch_type, options)
        return self._entry(request, resource, entry, 201 if is_new else 200, options)

    def _delete(self, request: web.BaseRequest, target: Target, raw: bytes) -> web.StreamResponse:
        """Delete an object or a collection.

        Most resources answer with a Status once the object is gone, some with the object.
        """
        context, resource = self._context, target.resource
        if resource.namespaced and not target.namespace:
            raise method_not_allowed()
        options = request_parsing.delete_options(request, raw)
        if not target.name:
            _require_verb(target, "deletecollection")
            query = request_parsing.list_query(request.rel_url.query, target.namespace)
            entries = deletion.delete_collection(context, resource, query, options)
            listing = reading.Listing(entries, context.storage.version)
            return web.Response(body=encode_listing(resource, listing, Form()), headers=_JSON_HEADERS)
        _require_verb(target, "delete")
        done = deletion.delete(context, resource, target.namespace, target.name, options)
        if not done.is_gone or resource.returned_when_deleted:
            return self._entry(request, resource, done.entry)
        details: Object = {"name": target.name, "kind": resource.plural, "uid": done.entry.obj["metadata"]["uid"]}
        if resource.group:
            details["group"] = resource.group
        return _json(_success() | {"details": details})


def _access_request(request: web.BaseRequest, target: Target) -> AccessRequest:
    """Return the verb and the object of a request, as RBAC names them."""
    method = request.method
    if method in ("GET", "HEAD"):
        if target.name:
            verb = "get"
        else:
            verb = "watch" if request_parsing.flag(request.rel_url.query, "watch") else "list"
    elif method == "DELETE":
        verb = "delete" if target.name else "deletecollection"
    else:
        verb = {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(method, method.lower())
    resource = target.resource
    path = f"{resource.plural}/{target.subresource}" if target.subresource else resource.plural
    return AccessRequest(verb, resource.group, path, target.namespace, target.name)


def _require_own_origin(origins: Origins, request: web.BaseRequest) -> None:
    """Refuse what a web site makes a browser send: without tokens every caller is an administrator, a browser too."""
    refused = origins.refusal(request.headers)
    if refused:
        raise Forbidden(403, "Forbidden", refused)
    # Without a type a browser sends a POST for any site, without asking us first. `kubectl create --raw` sends none either,
    # but it has a name that no site can make a browser use.
    is_typed = request.headers.get("Content-Type") or _KUBERNETES_CLIENT in request.headers.get("User-Agent", "")
    if request.method in ("POST", "PUT", "PATCH") and not is_typed:
        raise unsupported_media_type("", (JSON, YAML, protobuf.MEDIA_TYPE) if request.method != "PATCH" else PATCH_TYPES)


def _require_verb(target: Target, verb: str) -> None:
    """Refuse with 405 a verb that the resource does not have."""
    if verb not in target.resource.verbs:
        raise method_not_allowed()


def _require_subresource_verb(method: str, target: Target) -> None:
    """Refuse with 405 a method that the subresource does not have."""
    if target.subresource:
        verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "GET": "get", "HEAD": "get"}.get(method, "")
        if verb not in SUBRESOURCE_VERBS[target.subresource]:
            raise method_not_allowed()


def _included(request: web.BaseRequest) -> str:
    """Return how much of each object the rows of a table carry."""
    found = request.rel_url.query.get("includeObject", "")
    if found not in _INCLUDED:
        text = f"includeObject: Invalid value: \"{found}\": must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(f"Unable to convert to Table as requested: {text}")
    return found or "Metadata"


def _json(document: Object, status: int = 200) -> web.Response:
    return web.Response(body=encode(document), status=status, headers=_JSON_HEADERS)


def _success(code: int | None = None) -> Object:
    """Return the Status of something that was done and has no object to show."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return status if code is None else {**status, "code": code}


def _refusal(error: ApiError) -> web.Response:
    """Return an error as a response; one without a reason is plain text."""
    if not error.reason:
        return web.Response(text=error.message, status=error.status)
    response = _json(status_of(error), error.status)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(int(error.retry_after))
    return response


def _quotable(text: str) -> str:
    """Return a text as it may stand in a Warning header."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
