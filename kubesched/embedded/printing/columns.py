"""Columns: what one column of a table is, and the ways to find its cell in an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.embedded.printing import cells as p
from kubesched.embedded.resources import Object

Cell = Callable[[Object, float], Any]


class Column:
    """One column: its title, its cell of an object at a moment, and whether it is shown only with -o wide."""

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


def at(*path: str, default: Any = "") -> Cell:
    def cell(obj: Object, now: float) -> Any:
        found: Any = obj
        for step in path:
            found = found.get(step) if isinstance(found, dict) else None
        return default if found is None else found

    return cell


def of(function: Callable[[Object], Any]) -> Cell:
    return lambda obj, now: function(obj)


NAME = Column("Name", at("metadata", "name"))
AGE = Column("Age", p.age)


def number(title: str, *path: str) -> Column:
    return Column(title, at(*path, default=0), kind="integer")
