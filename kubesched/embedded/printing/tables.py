"""Tables: lists and objects as rows, so that `kubectl get` looks as on a cluster.

In: entries of any resource. Out: a Table with the columns of its kind. Kinds without columns of their own have a name and an
age, custom resources what their definition says.
"""

from __future__ import annotations

from kubesched.embedded.http.encoding import encode, list_metadata
from kubesched.embedded.printing.cells import since
from kubesched.embedded.printing.columns import Cell, Column, columns_of_table, field_cell
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.storage.watch import Entry
from kubesched.embedded.verbs.reading import Listing

_ENDINGS = {
    "Succeeded": {"reason": "Succeeded", "message": "The pod has completed successfully."},
    "Failed": {"reason": "Failed", "message": "The pod failed."},
}


def columns_of(resource: Resource) -> list[Column]:
    """Return the columns of a resource's table."""
    if resource.custom is None:
        return columns_of_table(resource.table)
    extra = [_custom_column(one) for one in resource.custom.get("additionalPrinterColumns") or ()]
    name, age = columns_of_table("")
    return [name, *extra] if extra else [name, age]


def _custom_column(wanted: Object) -> Column:
    """Return the column that a definition describes. Its jsonPath may name fields, but not filter lists."""
    path = [step for step in str(wanted.get("jsonPath", "")).replace("\\.", "\0").split(".") if step]
    steps = [step.replace("\0", ".") for step in path]
    is_date = wanted.get("type") == "date"
    look = field_cell(steps)
    cell: Cell = (lambda obj, now: since(look(obj, now), now)) if is_date else look
    kind = "string" if is_date else str(wanted.get("type", "string"))
    return Column(str(wanted.get("name", "")), cell, bool(wanted.get("priority")), kind)


def row(columns: list[Column], entry: Entry, now: float, include: str) -> Object:
    """Return one row; `include` says how much of the object goes along: kubectl needs the metadata, for labels and names."""
    found: Object = {"cells": [column.cell(entry.obj, now) for column in columns]}
    ending = _ENDINGS.get((entry.obj.get("status") or {}).get("phase", "")) if entry.obj.get("kind") == "Pod" else None
    if ending is not None:
        found["conditions"] = [{"type": "Completed", "status": "True", **ending}]
    if include == "Object":
        return {**found, "object": entry.obj}
    if include == "None":
        return {**found, "object": None}
    partial_object = {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": entry.obj["metadata"],
    }
    return {**found, "object": partial_object}


def encode_table(resource: Resource, listing: Listing, now: float, include: str) -> bytes:
    """Return a list as a Table."""
    columns = columns_of(resource)
    table: Object = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": list_metadata(listing)}
    table["columnDefinitions"] = [column.definition for column in columns]
    table["rows"] = [row(columns, entry, now, include) for entry in listing.entries]
    return encode(table)
