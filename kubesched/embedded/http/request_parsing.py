"""Requests become values: parameters and bodies as the verbs take them.

In: an HTTP request. Out: list queries, write and delete options, decoded objects; or the refusal of a parameter. Nothing here
reads or writes an object.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import yaml
from aiohttp import web
from aiohttp.web_exceptions import HTTPRequestEntityTooLarge

from kubesched.embedded.api_errors import bad_request, invalid_options, timed_out, too_large_body, unsupported_media_type
from kubesched.embedded.schema import protobuf
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.validation import field
from kubesched.embedded.validation.field import Cause
from kubesched.embedded.verbs.context import WriteOptions
from kubesched.embedded.verbs.deletion import DeleteOptions
from kubesched.embedded.verbs.patching import APPLY_PATCH
from kubesched.embedded.verbs.reading import ListQuery
from kubesched.errors import ConfigError
from kubesched.kube.values import yaml_document

JSON, YAML = "application/json", "application/yaml"
MAX_BODY_BYTES = 3 * 1024 * 1024  # kube-apiserver's limit
BODY_SECONDS = 60.0
_LONGEST_MANAGER = 128  # characters of a field manager
_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_decode = msgspec.json.Decoder().decode


def flag(query: Any, name: str) -> bool:
    """Return a boolean parameter: present means true, unless it says false or 0."""
    value = query.get(name)
    return value is not None and value.lower() not in ("false", "0")


def number(query: Any, name: str) -> int | None:
    """Return a whole number, or None if the parameter is absent."""
    text = query.get(name)
    if not text:
        return None
    try:
        if not text.isascii() or text.strip() != text or "_" in text:
            raise ValueError
        return int(text)
    except ValueError:
        raise bad_request(f'{name}: parsing "{text}": invalid syntax') from None


def list_query(query: Any, namespace: str) -> ListQuery:
    """Return the parameters of a list or a watch."""
    number(query, "timeoutSeconds")
    return ListQuery(
        namespace,
        query.get("labelSelector", ""),
        query.get("fieldSelector", ""),
        max(0, number(query, "limit") or 0),
        query.get("continue", ""),
        query.get("resourceVersion", ""),
        query.get("resourceVersionMatch", ""),
        flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
    )


def write_options(request: web.BaseRequest, patch_type: str = "") -> WriteOptions:
    """Return the options of a write; refuse values that the API does not have."""
    query = request.rel_url.query
    causes = _dry_run_problems(query)
    validation = query.get("fieldValidation", "")
    if validation not in _VALIDATIONS:
        causes.append(field.not_supported("fieldValidation", validation, _VALIDATIONS))
    manager = query.get("fieldManager", "")
    if len(manager) > _LONGEST_MANAGER:
        causes.append(field.too_long("fieldManager", _LONGEST_MANAGER))
    force = flag(query, "force")
    if patch_type == APPLY_PATCH and not manager:
        causes.append(field.required("fieldManager", "is required for apply patch"))
    elif patch_type and patch_type != APPLY_PATCH and "force" in query:
        causes.append(field.forbidden("force", "may not be specified for non-apply patch"))
    if causes:
        raise invalid_options(_OPTIONS.get(request.method, "CreateOptions"), causes)
    manager = manager or request.headers.get("User-Agent", "").partition("/")[0][:_LONGEST_MANAGER] or "unknown"
    return WriteOptions("dryRun" in query, manager, force, field_validation=validation or "Warn")


def delete_options(request: web.BaseRequest, raw: bytes) -> DeleteOptions:
    """Return the options of a deletion: those of the body, with the parameters over them."""
    body = decoded_object(request, raw) if raw else {}
    if body.get("kind") not in (None, "", "DeleteOptions"):
        raise bad_request(f"DeleteOptions: the body is a {body['kind']}")
    query = request.rel_url.query
    causes = _dry_run_problems(query)
    if causes:
        raise invalid_options("DeleteOptions", causes)
    grace = number(query, "gracePeriodSeconds")
    if grace is not None:
        body["gracePeriodSeconds"] = grace
    if "propagationPolicy" in query:
        body["propagationPolicy"] = query["propagationPolicy"]
    if "dryRun" in query:
        body["dryRun"] = ["All"]
    return DeleteOptions.read(body)


def _dry_run_problems(query: Any) -> list[Cause]:
    """Return what is wrong with dryRun: only All is a value."""
    given = query.getall("dryRun", [])
    return [] if all(one == "All" for one in given) else [field.not_supported("dryRun", list(given), ("All",))]


async def read_body(request: web.BaseRequest) -> bytes:
    """Return the whole body; 413 if it is too large, 504 if it takes too long."""
    if request.content_length is not None and request.content_length > MAX_BODY_BYTES:
        raise too_large_body(MAX_BODY_BYTES)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except HTTPRequestEntityTooLarge:
        raise too_large_body(MAX_BODY_BYTES) from None
    except TimeoutError:
        raise timed_out(BODY_SECONDS) from None
    except web.RequestPayloadError:  # its words quote the body
        raise bad_request("the body of the request is not what its headers announce") from None


def decoded_object(request: web.BaseRequest, raw: bytes) -> Object:
    """Return the object in a body: JSON, YAML or protobuf."""
    kind = request.content_type
    if kind == protobuf.MEDIA_TYPE:
        try:
            return protobuf.decode(raw)
        except protobuf.Unreadable as error:
            raise bad_request(f"the object provided is unrecognized: {error}") from error
    if kind == YAML:
        body = decoded_yaml(raw)
    elif kind in (JSON, "application/octet-stream", "text/json"):
        body = decoded(raw)
    else:
        raise unsupported_media_type(kind, (JSON, YAML, protobuf.MEDIA_TYPE))
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise bad_request("the body of the request is not a JSON object")
    return body


def decoded(raw: bytes) -> Any:
    """Return the JSON value in a body."""
    try:
        return _decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise bad_request(f"the object provided is unrecognized (must be of type JSON): {error}") from error


def decoded_yaml(raw: bytes) -> Any:
    """Return the value in a YAML body. Most of what is sent as YAML is JSON, which is read a hundred times faster."""
    try:
        return _decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass
    try:
        document = yaml_document(raw)
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(raw, Loader=yaml.CSafeLoader)):
            raise yaml.YAMLError("aliases are not supported: a few of them can stand for gigabytes")
        # To JSON and back: what YAML has and JSON has not is found here.
        return _decode(msgspec.json.encode(document))
    except (yaml.YAMLError, ConfigError, UnicodeDecodeError, RecursionError, TypeError, ValueError) as error:
        raise bad_request(f"error decoding YAML: {error}") from error
