"""Strings and other hashable values to small integers, and back.

In: a value. Out: its number, the same for as long as the interner lives. Numbers are dense from zero, so they index
arrays. Nothing is ever forgotten: the values that pass through here (label values, taint sets, label sets) are few
beside the objects that carry them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

V = TypeVar("V", bound=Hashable)


class Interner(Generic[V]):
    """Number values in the order in which they are first seen."""

    __slots__ = ("ids", "values")

    def __init__(self, *values: V) -> None:
        self.ids: dict[V, int] = {}
        self.values: list[V] = []
        for value in values:
            self.id(value)

    def __len__(self) -> int:
        return len(self.values)

    def id(self, value: V) -> int:
        """Return the number of `value`, giving it one if it is new."""
        found = self.ids.get(value)
        if found is None:
            found = self.ids[value] = len(self.values)
            self.values.append(value)
        return found

    def find(self, value: V) -> int:
        """Return the number of `value`, or -1 if it was never seen."""
        return self.ids.get(value, -1)
