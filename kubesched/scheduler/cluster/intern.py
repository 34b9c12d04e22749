"""Strings and other hashable values to small integers, and back.

In: a value. Out: its number. Numbers are dense from zero, so they index arrays. An `Interner` never forgets: what passes
through it (label values, resources) is little beside the objects that carry it. `Leases` take a number back when nobody
holds its value any more: some taints carry the time at which they were set, so there is no end of them.
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


class Leases(Generic[V]):
    """Number values that come and go. The first value is always there, and stands where a number is free."""

    __slots__ = ("_free", "_held", "_ids", "values")

    def __init__(self, first: V) -> None:
        self.values: list[V] = [first]
        self._ids: dict[V, int] = {first: 0}
        self._held: list[int] = [0]
        self._free: list[int] = []

    def take(self, value: V) -> int:
        """Return the number of `value`, to be given back once."""
        number = self._ids.get(value)
        if number is None:
            if self._free:
                number = self._free.pop()
                self.values[number] = value
            else:
                number = len(self.values)
                self.values.append(value)
                self._held.append(0)
            self._ids[value] = number
        self._held[number] += 1
        return number

    def give_back(self, number: int) -> None:
        """Say that one holder of a number is gone; the first number is nobody's."""
        if not number:
            return
        self._held[number] -= 1
        if not self._held[number]:
            del self._ids[self.values[number]]
            self.values[number] = self.values[0]
            self._free.append(number)
