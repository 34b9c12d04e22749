"""Server-side apply: each manager applies the fields it wants, and the server records which manager owns which field.

In: the stored object, and what a manager applies. Out: the merged object with its managedFields, or a 409 with the fields that
another manager set to other values. A field that its manager no longer applies is removed, unless somebody else owns it too.
Ownership is recorded from an object's first apply on; before that all fields belong to `before-first-apply`.

Example: manager A applies {x: 1, y: 1}, then B applies {y: 1}. Now both own y. If A applies {x: 1}, y stays, for B owns it. If
B then applies {x: 2}, it gets a conflict on x, or takes x over with force; in either case y goes only when B drops it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubesched import errors
from kubesched.embedded.clock import timestamp
from kubesched.embedded.schema.custom_resources import shape_of
from kubesched.embedded.schema.language import ANY, Shape
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.verbs.context import WriteOptions
from kubesched.embedded.verbs.managed_fields import (
    PRESENCE,
    Path,
    field_shape,
    from_fields,
    item_step,
    look,
    paths_of,
    remove,
    spelled,
    to_fields,
)
from kubesched.embedded.verbs.patching import copied
from kubesched.errors import ApiError

BEFORE = "before-first-apply"  # the manager of fields that were there before the first apply


@dataclass(slots=True)
class Share:
    """The fields that one manager owns, by one operation, in one subresource: an entry of managedFields."""

    manager: str
    operation: str  # Apply or Update
    api_version: str
    subresource: str
    time: str
    paths: set[Path]

    def is_by(self, manager: str, operation: str, subresource: str) -> bool:
        return (self.manager, self.operation, self.subresource) == (manager, operation, subresource)


def first_apply(resource: Resource, body: Object, manager: str, now: float) -> Object:
    """Return the object to create; its manager owns everything in it."""
    paths = paths_of(body, shape_of(resource))
    share = Share(manager, "Apply", resource.api_version, "", timestamp(now), paths)
    _record(body, [share])
    return body


def apply(resource: Resource, live: Object, body: Object, options: WriteOptions, subresource: str, now: float) -> Object:
    """Return `live` with the applied fields merged in; 409 for fields of other managers, unless forced."""
    shape = shape_of(resource)
    shares = _read(live["metadata"].get("managedFields"))
    if not shares:
        shares = [Share(BEFORE, "Update", resource.api_version, "", timestamp(now), paths_of(live, shape))]
    mine = next((one for one in shares if one.is_by(options.manager, "Apply", subresource)), None)
    others = [one for one in shares if one is not mine]
    wanted = paths_of(body, shape)
    contested = {path for path in wanted if look(body, path, shape) != look(live, path, shape)}
    conflicts = [(one, one.paths & contested) for one in others if one.paths & contested]
    if conflicts and not options.force:
        raise _refuse(conflicts)
    for one, paths in conflicts:
        one.paths -= paths
    result: Object = _merged(copied(live), body, shape)
    owned_elsewhere: set[Path] = set().union(*(one.paths for one in others))
    dropped = (mine.paths if mine else set()) - wanted - owned_elsewhere
    # An item of a list goes as a whole, before the fields by which it would be found.
    for path in sorted(dropped, key=lambda one: (one[-1] != PRESENCE, len(one))):
        remove(result, path, shape)
    if mine is None or mine.paths != wanted:
        mine = Share(options.manager, "Apply", resource.api_version, subresource, timestamp(now), wanted)
    _record(result, [*others, mine])
    return result


def note_update(
    resource: Resource, before: Object, new: Object, managed: Any, manager: str, subresource: str, now: float
) -> None:
    """Record which manager changed which fields by an ordinary write, on objects whose ownership is recorded."""
    shares = _read(before["metadata"].get("managedFields"))
    if not shares or managed in ([], [{}]):  # a client may clear the record by sending an empty list
        new["metadata"].pop("managedFields", None)
        return
    shape = shape_of(resource)
    after_paths = paths_of(new, shape)
    changed = {path for path in after_paths if look(new, path, shape) != look(before, path, shape)}
    gone = paths_of(before, shape) - after_paths
    if changed or gone:
        for one in shares:
            one.paths -= changed | gone
        if changed:
            mine = next((one for one in shares if one.is_by(manager, "Update", subresource)), None)
            if mine is None:
                mine = Share(manager, "Update", resource.api_version, subresource, "", set())
                shares.append(mine)
            mine.paths |= changed
            mine.time = timestamp(now)
    _record(new, shares)


def _merged(live: Any, wanted: Any, shape: Shape) -> Any:
    """Return `live` with `wanted` merged in: objects by field, lists by key, everything else replaced."""
    if isinstance(live, dict) and isinstance(wanted, dict) and shape.form in ("object", "map", "any"):
        for name, value in wanted.items():
            if shape.name == "ObjectMeta" and name in ("resourceVersion", "uid"):
                live[name] = value  # preconditions, judged by the update
            else:
                live[name] = _merged(live.get(name), value, field_shape(shape, name))
        return live
    if isinstance(live, list) and isinstance(wanted, list) and shape.form == "list":
        if shape.is_set:
            return live + [one for one in wanted if one not in live]
        if shape.keys:
            return _merged_items(live, wanted, shape)
    return copied(wanted)


def _merged_items(live: list[Any], wanted: list[Any], shape: Shape) -> list[Any]:
    """Merge two lists of objects by their keys; new items come last, unlike in a strategic merge patch."""
    item = shape.item or ANY
    places = {item_step(one, shape): at for at, one in enumerate(live)}
    for one in wanted:
        at = places.get(item_step(one, shape))
        if at is None:
            live.append(copied(one))
        else:
            live[at] = _merged(live[at], one, item)
    return live


def _read(managed: Any) -> list[Share]:
    """Return managedFields as shares."""
    shares = []
    for one in managed or ():
        fields = one.get("fieldsV1")
        shares.append(
            Share(
                one.get("manager", ""),
                one.get("operation", ""),
                one.get("apiVersion", ""),
                one.get("subresource", ""),
                one.get("time", ""),
                from_fields(fields) if isinstance(fields, dict) else set(),
            )
        )
    return shares


def _record(obj: Object, shares: list[Share]) -> None:
    """Write the shares into an object's managedFields."""
    written = _written(shares)
    if written:
        obj["metadata"]["managedFields"] = written
    else:
        obj["metadata"].pop("managedFields", None)


def _written(shares: list[Share]) -> list[Object]:
    """Return shares as managedFields, in kube-apiserver's order: applies first, then older before newer. Empty ones go."""
    written = []
    # Applies first, then older before newer.
    for share in sorted(shares, key=lambda one: (one.operation, one.time, one.manager, one.subresource)):
        if not share.paths:
            continue
        one: Object = {
            "manager": share.manager,
            "operation": share.operation,
            "apiVersion": share.api_version,
            "time": share.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields(share.paths),
        }
        if share.subresource:
            one["subresource"] = share.subresource
        written.append(one)
    return written


def _refuse(conflicts: list[tuple[Share, set[Path]]]) -> ApiError:
    """Return the 409 that lists every conflict."""
    causes = []
    for share, paths in conflicts:
        using = f" using {share.api_version}" if share.operation == "Update" else ""
        by = f'conflict with "{share.manager}"{using}'
        causes += [{"reason": "FieldManagerConflict", "message": by, "field": spelled(path)} for path in sorted(paths)]
    lines = [f"{cause['message']}: {cause['field']}" for cause in causes]
    if len(lines) == 1:
        text = f"Apply failed with 1 conflict: {lines[0]}"
    else:
        text = f"Apply failed with {len(lines)} conflicts: " + "\n".join(f"- {line}" for line in lines)
    return errors.Conflict(409, "Conflict", text, details={"causes": causes})
