"""Field ownership: sets of field paths, and their form in managedFields.

A path is a tuple of steps: ("f", name) into an object, ("k", keys) or ("v", value) to an item of a list that is merged, where
keys and value are JSON. A path ends at a value, at a list or map that is replaced as a whole, or with (".",) at the mere
presence of a list item or an object. For example, the image of the container `c` is

    (("f", "spec"), ("f", "containers"), ("k", '{"name":"c"}'), ("f", "image"))
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from kubesched.embedded.schema.language import ANY, Shape
from kubesched.embedded.schema.resources import Object

Step = tuple[str, str]
Path = tuple[Step, ...]
PRESENCE: Step = (".", "")  # a list item or an object exists
# The fields that identify an object have no owner.
UNOWNED = frozenset(
    (
        *("apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"),
        *("metadata.generation", "metadata.creationTimestamp", "metadata.selfLink", "metadata.managedFields"),
        *("metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds", "metadata.generateName"),
    )
)
_KEY_DEFAULTS = {"protocol": "TCP"}  # a port applied without its protocol is the one stored with the default
_encode = msgspec.json.Encoder(order="deterministic").encode


def paths_of(obj: Object, shape: Shape) -> set[Path]:
    """Return the paths of all fields in an object."""
    return {path for path in _walk(obj, shape, ()) if not _is_unowned(path)}


def _is_unowned(path: Path) -> bool:
    """Return whether nobody owns a field: those that identify an object, and those that the server sets."""
    names = ".".join(step[1] for step in path[:2] if step[0] == "f")
    return path[0][1] in UNOWNED or names in UNOWNED or path == (("f", "metadata"), PRESENCE)


def _walk(value: Any, shape: Shape, path: Path) -> Iterator[Path]:
    """Yield the paths below `path`. Lists without merge keys are one value."""
    if isinstance(value, dict) and shape.form in ("object", "map", "any"):
        if not value:
            yield path
        for name, inner in value.items():
            yield from _walk(inner, field_shape(shape, name), (*path, ("f", name)))
    elif isinstance(value, list) and shape.form == "list" and (shape.keys or shape.is_set):
        item = shape.item or ANY
        for one in value:
            step = item_step(one, shape)
            if shape.is_set:
                yield (*path, step)
            else:
                yield (*path, step, PRESENCE)
                if isinstance(one, dict):
                    yield from _walk(one, item, (*path, step))
    else:
        yield path


def field_shape(shape: Shape, name: str) -> Shape:
    """Return the shape of a field; ANY for one that the shape does not know."""
    if shape.form == "object":
        known = shape.fields.get(name)
        return known.shape if known is not None else ANY
    return shape.item or ANY if shape.form == "map" else ANY


def item_step(item: Any, shape: Shape) -> Step:
    """Return the step to an item of a merged list."""
    if shape.is_set or not isinstance(item, dict):
        return "v", _encode(item).decode()
    keys = {key: item.get(key, _KEY_DEFAULTS.get(key)) for key in shape.keys}
    return "k", _encode({key: value for key, value in keys.items() if value is not None}).decode()


def look(obj: Any, path: Path, shape: Shape) -> Any:
    """Return the value at a path, or None."""
    for step in path:
        if step == PRESENCE:
            return True
        obj, shape = _enter(obj, step, shape)
        if obj is None:
            return None
    return obj


def remove(obj: Any, path: Path, shape: Shape) -> None:
    """Remove the value at a path, in place."""
    steps = path if path[-1] != PRESENCE else path[:-1]
    if not steps:
        return
    *above, last = steps
    for step in above:
        obj, shape = _enter(obj, step, shape)
    value, _ = _enter(obj, last, shape)
    if isinstance(obj, dict):
        obj.pop(last[1], None)
    elif isinstance(obj, list) and value is not None:
        obj.remove(value)


def _enter(obj: Any, step: Step, shape: Shape) -> tuple[Any, Shape]:
    """Return what one step leads to, None for nothing, with its shape."""
    if step[0] == "f":
        return obj.get(step[1]) if isinstance(obj, dict) else None, field_shape(shape, step[1])
    found = (one for one in obj if item_step(one, shape) == step) if isinstance(obj, list) else ()
    return next(iter(found), None), shape.item or ANY


def to_fields(paths: set[Path]) -> Object:
    """Return paths as fieldsV1 nests them."""
    root: Object = {}
    for path in sorted(paths):
        place = root
        for kind, text in path:
            place = place.setdefault("." if kind == "." else f"{kind}:{text}", {})
    return root


def from_fields(fields: Object, path: Path = ()) -> set[Path]:
    """Return the paths of a fieldsV1 object."""
    found: set[Path] = set()
    for key, inner in fields.items():
        kind, _, text = key.partition(":")
        here = (*path, PRESENCE if key == "." else (kind, text))
        found |= from_fields(inner, here) if isinstance(inner, dict) and inner else {here}
    return found


def spelled(path: Path) -> str:
    """Return a path as conflict messages write it: .spec.containers[name="c"].image"""
    text = ""
    for kind, name in path:
        if kind == "f":
            text += f".{name}"
        elif kind == "k":
            keys = msgspec.json.decode(name)
            text += "[" + ",".join(f"{key}={_encode(value).decode()}" for key, value in keys.items()) + "]"
        elif kind == "v":
            text += f"[={name}]"
    return text
