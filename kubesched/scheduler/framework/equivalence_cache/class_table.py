"""Equivalence classes by what their pods have in common, within a budget.

In: classes as they are asked for. Out: those that are worth keeping. Most classes that are asked for a second time will be
asked for again, and of pods with a label of their own each, as those of a StatefulSet, none ever is: so classes that were asked
for once have only a part of the budget, in which they push out each other and nobody else.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from kubesched.scheduler.framework.equivalence_cache.equivalence_class import EquivalenceClass
from kubesched.scheduler.framework.inputs import Inputs

Key = tuple[bytes, Inputs]
"""What pods have in common, and what each of them has of its own."""

SHARE_OF_NEW = 4
"""One part in so many of the budget is for classes that were asked for once."""


class ClassTable:
    """What is remembered; of each part, the classes not asked for longest go first."""

    __slots__ = ("_again", "_once")

    def __init__(self) -> None:
        self._once: OrderedDict[Key, EquivalenceClass] = OrderedDict()
        self._again: OrderedDict[Key, EquivalenceClass] = OrderedDict()

    def __len__(self) -> int:
        return len(self._once) + len(self._again)

    def __iter__(self) -> Iterator[Key]:
        return iter([*self._once, *self._again])

    def get(self, key: Key) -> EquivalenceClass | None:
        """Return a class, or None if it is not known."""
        return self._again.get(key) or self._once.get(key)

    def note_use(self, key: Key) -> None:
        """Note that a class which is known was asked for again."""
        try:
            self._again.move_to_end(key)
        except KeyError:
            self._again[key] = self._once.pop(key)

    def put(self, key: Key, of_class: EquivalenceClass, budget_bytes: int) -> None:
        """Remember a class in the place of what was known by its key. Of those that were asked for once, each taken to be as
        large as this one, as many are left as their part of the budget takes."""
        known = self._again if key in self._again else self._once
        known[key] = of_class
        known.move_to_end(key)
        while len(self._once) > max(1, budget_bytes // SHARE_OF_NEW // of_class.nbytes):
            self._once.popitem(last=False)

    def forget_oldest(self, but: Key) -> None:
        """Forget the class that was not asked for longest, but for one; those that were asked for again before the others."""
        oldest = self._again if len(self._again) > (but in self._again) else self._once
        oldest.popitem(last=False)

    def forget(self, key: Key) -> None:
        """Forget a class, if it is known."""
        self._once.pop(key, None)
        self._again.pop(key, None)

    def clear(self) -> None:
        """Forget all of them."""
        self._once.clear()
        self._again.clear()
