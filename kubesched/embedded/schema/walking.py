"""A walk through an object by its shape, with a function (a *visit*) for some of the types in it.

In: which type has which visit, and an object. Out: what the visits return, all together. An object is visited before what it
holds, so a visit may still add to it. Fields below which no type has a visit are not entered. The object's own status is left
out: only controllers write it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Generic, TypeVar

from kubesched.embedded.schema.language import Shape
from kubesched.embedded.schema.resources import Object

T = TypeVar("T")
Visit = Callable[[Object, str], Iterable[T]]


class Walk(Generic[T]):
    """A walk with one visit for each type that `visit_of` has one for. Defaults and validation are such walks."""

    def __init__(self, visit_of: Callable[[Shape], Visit[T] | None]) -> None:
        self._visit_of = cache(visit_of)
        self._plans: dict[str, tuple[Visit[T] | None, list[tuple[str, Shape]]]] = {}

    def __call__(self, obj: Object, shape: Shape) -> list[T]:
        """Return what the visits return for `obj` and everything in it."""
        found: list[T] = []
        self._object(obj, shape, "", found)
        return found

    def _object(self, obj: Object, shape: Shape, path: str, found: list[T]) -> None:
        """Visit an object, then what it holds. This runs in every write, so the plan of each type is made once."""
        # One call for each object of a type that something is known of: this is on the way of every write.
        visit, below = self._plans.get(shape.name) or self._plan(shape)
        if visit is not None:
            found += visit(obj, path)
        for name, inner in below:
            value = obj.get(name)
            if value is None or (name == "status" and not path):
                continue
            if inner.form == "object":
                self._object(value, inner, f"{path}.{name}" if path else name, found)
            else:
                self._items(value, inner, f"{path}.{name}" if path else name, found)

    def _items(self, value: Any, shape: Shape, path: str, found: list[T]) -> None:
        """Visit the items of a list or a map."""
        item = shape.item
        assert item is not None
        for at, one in enumerate(value) if shape.form == "list" else value.items():
            if item.form == "object":
                self._object(one, item, f"{path}[{at}]", found)
            else:
                self._items(one, item, f"{path}[{at}]", found)

    def _plan(self, shape: Shape) -> tuple[Visit[T] | None, list[tuple[str, Shape]]]:
        """Return the visit of a type, and the fields that lead to types with a visit."""
        below = [(one.name, one.shape) for one in shape.fields.values() if self._leads(one.shape, {shape.name})]
        plan = self._plans[shape.name] = (self._visit_of(shape), below)
        return plan

    def _leads(self, shape: Shape, seen: set[str]) -> bool:
        """Return whether a type with a visit can be reached from here."""
        if shape.form != "object":
            return shape.item is not None and self._leads(shape.item, seen)
        if self._visit_of(shape) is not None:
            return True
        if shape.name in seen:
            return False
        seen.add(shape.name)
        return any(self._leads(one.shape, seen) for one in shape.fields.values())
