"""The columns of each resource's table, as `kubectl get` shows them on a cluster.

schema/tables/columns.txt has one paragraph for each resource: its columns, separated by bars. A column is `Title: cell`, and
`Title*` is shown only with -o wide. Its cell is one of

    .spec.nodeName       a field; `[]` after a list stands for each item, and the texts are joined by commas
    #.spec.replicas      a field that is a number, 0 when it is not there
    count .secrets       the length of a list
    pod_status           a function of cells.py, of the object
    labels_text .spec    a function of cells.py, of a field
    usage(cpu)           a function of cells.py, with more arguments

`=<none>` is what stands there for a field that is not there, `:boolean` the type of a column that holds no text.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from kubesched.embedded.printing import cells
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.schema.tables import table

Cell = Callable[[Object, float], Any]

_USUAL = {"Name": ".metadata.name", "Age": "age", "Created At": ".metadata.creationTimestamp"}
_COLUMNS = table("columns")


class Column:
    """A column: its title, its cell as a function of object and time, and whether it is shown only with -o wide."""

    __slots__ = ("cell", "kind", "title", "wide")

    def __init__(self, title: str, cell: Cell, wide: bool = False, kind: str = "string") -> None:
        self.title = title
        self.cell = cell
        self.wide = wide
        self.kind = kind

    @property
    def definition(self) -> Object:
        return {
            "name": self.title,
            "type": self.kind,
            "format": "name" if self.title == "Name" else "",
            "description": "",
            "priority": 1 if self.wide else 0,
        }


def field_cell(steps: list[str], default: Any = "") -> Cell:
    """Return the cell that shows a field. A step that ends in `[]` is a list; the cell joins what its items hold."""

    def look(found: Any, at: int) -> Any:
        for number, step in enumerate(steps[at:], at):
            name = step.removesuffix("[]")
            found = found.get(name) if isinstance(found, dict) and name else found
            if name != step:
                return ",".join(str(look(one, number + 1) or "") for one in found or ()) or None
        return found

    def cell(obj: Object, now: float) -> Any:
        found = look(obj, 0)
        return default if found is None else found

    return cell


@cache
def columns_of_table(name: str) -> list[Column]:
    """Return the columns of a built-in resource; one without a paragraph has a name and an age."""
    return [_read(column) for column in _COLUMNS.get(name, "Name | Age").split(" | ")]


def _read(column: str) -> Column:
    """Return the column that a few words of the table describe."""
    title, _, written = column.partition(": ")
    name = title.rstrip("*")
    words = (written or _USUAL[name]).split()
    kind = "string"
    default: Any = ""
    if words[-1].startswith(":"):
        kind = words.pop()[1:]
    if words[-1].startswith("="):
        text = words.pop()[1:]
        default = msgspec.json.decode(text) if text in ("true", "false") or text.isdecimal() else text
    if words[0].startswith("#"):
        kind, default, words = "integer", 0, [words[0][1:]]
    elif words[0] == "count":
        kind = "integer"
    look = field_cell(words[-1].split(".")[1:], default)
    if words[0].startswith("."):
        cell = look
    else:
        name_of, _, given = words[0].rstrip(")").partition("(")
        function, arguments = getattr(cells, name_of), given.split(",") if given else []
        if len(words) == 2:
            cell = lambda obj, now: function(look(obj, now), *arguments)  # noqa: E731
        elif "now" in inspect.signature(function).parameters:
            cell = function
        else:
            cell = lambda obj, now: function(obj, *arguments)  # noqa: E731
    return Column(name, cell, title != name, kind)
