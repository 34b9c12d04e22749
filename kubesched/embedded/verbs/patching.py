"""The three patches: JSON patch (RFC 6902), merge patch (RFC 7386) and strategic merge patch.

In: an object and a patch. Out: a new object; the given one is not changed, but the result may share parts with it. A patch
that does not fit is refused. Whether the result is a valid object is for the verbs to check.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched import errors
from kubesched.embedded.api_errors import bad_request
from kubesched.embedded.schema.language import ANY, Shape
from kubesched.embedded.verbs.managed_fields import field_shape

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
MAX_OPERATIONS = 10_000  # kube-apiserver's own limit
MAX_COPIED_BYTES = 3 * 1024 * 1024  # likewise; a field that is copied into itself doubles each time


def copied(value: Any) -> Any:
    """Return a deep copy of a JSON value."""
    if isinstance(value, dict):
        return {key: copied(one) for key, one in value.items()}
    if isinstance(value, list):
        return [copied(one) for one in value]
    return value


def merge(target: Any, patch: Any) -> Any:
    """Return `target` with an RFC 7386 merge patch applied."""
    if not isinstance(patch, dict):
        return copied(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def json_patch(target: Any, operations: Any) -> Any:
    """Return `target` with an RFC 6902 patch applied; every operation or none."""
    if not isinstance(operations, list):
        raise bad_request("error decoding patch: a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise errors.ApiError(413, "RequestEntityTooLarge", text)
    document, n_copied = copied(target), 0
    for operation in operations:
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise bad_request('error decoding patch: every operation needs "op" and "path"')
        if operation.get("op") == "copy" and isinstance(operation.get("from"), str):
            n_copied += len(msgspec.json.encode(_look(document, operation["from"])))
            if n_copied > MAX_COPIED_BYTES:  # a field copied into itself doubles each time
                text = f"the accumulated size increase of copy is {n_copied}, exceeding the limit {MAX_COPIED_BYTES}"
                raise _unfit(f"Unable to complete the copy, {text}")
        document = _operate(document, operation)
    return document


def _operate(document: Any, operation: dict[str, Any]) -> Any:
    """Apply one operation of a JSON patch to a document that may be changed."""
    kind, path = operation.get("op"), operation["path"]
    if kind in ("add", "replace", "test") and "value" not in operation:
        raise bad_request(f'error decoding patch: operation {kind} at {path} needs "value"')
    if kind == "add":
        return _add(document, path, copied(operation["value"]))
    if kind == "remove":
        return _remove(document, path)[0]
    if kind == "replace":
        if path == "":
            return copied(operation["value"])
        parent, step = _parent(document, path)
        if isinstance(parent, list):  # a field of an object may be replaced although it is not there, as the API has it
            _look(document, path)
        parent[int(step) if isinstance(parent, list) else step] = copied(operation["value"])
        return document
    if kind == "test":
        if _look(document, path) != operation["value"]:
            raise _unfit(f"testing path {path} failed: the value differs")
        return document
    if kind in ("move", "copy"):
        origin = operation.get("from")
        if not isinstance(origin, str):
            raise bad_request(f'error decoding patch: operation {kind} needs "from"')
        if kind == "copy":
            return _add(document, path, copied(_look(document, origin)))
        if path.startswith(origin + "/"):
            raise _unfit(f"cannot move {origin} into itself")
        document, value = _remove(document, origin)
        return _add(document, path, value)
    raise _unfit(f"unknown operation {kind!r}")


def _is_index(step: str) -> bool:
    return step.isdecimal() and len(step) < 10


def _steps(path: str) -> list[str]:
    """Return the steps of a JSON pointer."""
    if path == "":
        return []
    if not path.startswith("/"):
        raise _unfit(f"path {path!r} does not start with /")
    return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]


def _look(document: Any, path: str) -> Any:
    """Return the value at a JSON pointer; refuse one that leads nowhere."""
    return _walk(document, _steps(path), path)


def _walk(document: Any, steps: list[str], path: str) -> Any:
    for step in steps:
        if isinstance(document, list) and _is_index(step) and int(step) < len(document):
            document = document[int(step)]
        elif isinstance(document, dict) and step in document:
            document = document[step]
        else:
            raise _unfit(f"path {path} is missing")
    return document


def _parent(document: Any, path: str) -> tuple[Any, str]:
    """Return the object or list that holds the value of a pointer, and the last step."""
    *above, last = _steps(path)
    document = _walk(document, above, path)
    if not isinstance(document, (dict, list)):
        raise _unfit(f"path {path} is missing")
    return document, last


def _add(document: Any, path: str, value: Any) -> Any:
    """Add a value; "-" appends to a list."""
    if path == "":
        return value
    parent, step = _parent(document, path)
    if isinstance(parent, dict):
        parent[step] = value
    elif step == "-":
        parent.append(value)
    elif _is_index(step) and int(step) <= len(parent):
        parent.insert(int(step), value)
    else:
        raise _unfit(f"path {path} is outside the list")
    return document


def _remove(document: Any, path: str) -> tuple[Any, Any]:
    """Remove a value; return the document and the value."""
    if path == "":
        raise _unfit("the whole object cannot be removed")
    value = _look(document, path)
    parent, step = _parent(document, path)
    del parent[int(step) if isinstance(parent, list) else step]
    return document, value


def _unfit(why: str) -> errors.ApiError:
    return errors.Invalid(422, "Invalid", f"the server rejected our request due to an error in our request\n{why}")


def strategic_merge(target: Any, patch: Any, shape: Shape) -> Any:
    """Return `target` with a strategic merge patch applied.

    Lists with a merge key (containers by name, ports by containerPort) are merged item by item; others are replaced.
    Directives in the patch can replace or delete: `$patch`, `$retainKeys`, `$setElementOrder/LIST` and
    `$deleteFromPrimitiveList/LIST`.
    """
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a strategic merge patch is an object")
    return _merge_object(target if isinstance(target, dict) else {}, patch, shape)


def _merge_object(target: dict[str, Any], patch: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """Merge two objects, field by field. Null removes a field; the order of lists is set at the end."""
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: copied(value) for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"error decoding patch: unknown directive $patch: {directive!r}")
    result = dict(target)
    retained = patch.get("$retainKeys")
    if isinstance(retained, list):
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if key in ("$patch", "$retainKeys"):
            continue
        if key.startswith("$setElementOrder/"):
            continue
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            result[name] = [one for one in result.get(name) or [] if one not in (value or [])]
            continue
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merge_value(result.get(key), value, field_shape(shape, key))
    for key, order in patch.items():
        if key.startswith("$setElementOrder/"):
            name = key.partition("/")[2]
            found = result.get(name)
            if isinstance(found, list) and isinstance(order, list):
                result[name] = _ordered(found, order, field_shape(shape, name).merge_key)
    return result


def _merge_value(target: Any, patch: Any, shape: Shape) -> Any:
    """Merge two values by the shape of their field."""
    if isinstance(patch, dict):
        return _merge_object(target if isinstance(target, dict) else {}, patch, shape)
    if isinstance(patch, list) and shape.form == "list":
        item = shape.item or ANY
        if shape.is_set:
            kept = list(target) if isinstance(target, list) else []
            return kept + [copied(one) for one in patch if one not in kept]
        if shape.keys:
            return _merge_list(target if isinstance(target, list) else [], patch, shape.merge_key, item)
    return _without_directives(patch)


def _merge_list(target: list[Any], patch: list[Any], key: str, item: Shape) -> list[Any]:
    """Merge two lists of objects by their merge key. New items come first, as in kube-apiserver."""
    if any(isinstance(one, dict) and one.get("$patch") == "replace" for one in patch):
        return [copied(one) for one in patch if not (isinstance(one, dict) and "$patch" in one)]
    result, fresh = list(target), []
    for one in patch:
        if not isinstance(one, dict):
            raise bad_request(f"error decoding patch: items of a list merged by {key} are objects")
        if key not in one:
            raise bad_request(f"map: {_brief(one)} does not contain declared merge key: {key}")
        place = next((i for i, have in enumerate(result) if isinstance(have, dict) and have.get(key) == one[key]), -1)
        if one.get("$patch") == "delete":
            if place >= 0:
                del result[place]
        elif place >= 0:
            result[place] = _merge_object(result[place], one, item)
        else:
            fresh.append(_merge_object({}, one, item))
    return fresh + result  # what a patch brings stands before what was there, unless it says in which order


def _ordered(found: list[Any], order: list[Any], key: str) -> list[Any]:
    """Return the list in the order that the patch gives; items that it does not name keep their place."""

    def identity(one: Any) -> Any:
        return one.get(key) if key and isinstance(one, dict) else one

    wanted = [identity(one) for one in order]
    named = sorted((one for one in found if identity(one) in wanted), key=lambda one: wanted.index(identity(one)))
    result: list[Any] = []
    queue = iter(named)
    for one in found:
        result.append(next(queue) if identity(one) in wanted else one)
    return result


def _without_directives(value: Any) -> Any:
    """Return a value that is taken as a whole, without the directives in it."""
    if isinstance(value, dict):
        return {key: _without_directives(one) for key, one in value.items() if not key.startswith("$")}
    if isinstance(value, list):
        return [_without_directives(one) for one in value]
    return value


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) < 100 else text[:100] + "..."
