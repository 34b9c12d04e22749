"""Hashable values to small integers, and back.

In: a value. Out: its number. Numbers start at zero and have few gaps, so they can index arrays. New values never end
(hostnames, labels, taints with a timestamp), so a number is used again when its value is gone. There are two ways to know that:

  Leases        callers take a number and give it back. Nodes do so, row by row.
  WeakInterner  values are objects, held by weak references. When the last pod of a template is gone, so is the template, and
  the
                interner drops it.

Example with `Leases`: two nodes have zone "a" (number 0), one has "b" (1). The last node of "a" leaves; the next new value is
0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Generic, TypeVar
from weakref import ref

T = TypeVar("T")
V = TypeVar("V", bound=Hashable)
_FEWEST = 64
"""A memo is not looked through while it has fewer entries."""


class Interned:
    """A value that a `WeakInterner` numbers."""

    __slots__ = ("__weakref__", "number", "serial")

    def __init__(self) -> None:
        self.number = 0
        """An index into arrays. When this value is gone, another one gets the number."""
        self.serial = 0
        """A number that no other value of this process ever has. Later values have higher ones."""


K = TypeVar("K", bound=Hashable)
I = TypeVar("I", bound=Interned)  # noqa: E741


class _Known(ref[I], Generic[K, I]):
    """A value, and where its interner has it."""

    __slots__ = ("filed", "key", "number", "serial")

    filed: tuple[Hashable, ...]
    key: K
    number: int
    serial: int


_SERIALS = count(1)


class WeakInterner(Generic[K, I]):
    """Values by key, as long as something else refers to them. It keeps weak references only, and drops what it knows of a
    value together with it.

    Every value has a number for indexing arrays, and a serial number for caches. A number is used again: a cache by number
    could return an answer about a value that is gone. A serial number is never used again, so a cache by serial number cannot.
    A subclass may file values under words (`filed_under`), to find them by these.
    """

    __slots__ = ("__weakref__", "_by_key", "_by_serial", "_by_word", "_forget", "_free", "_numbered", "newest")

    def __init__(self, *, reserved: int = 1) -> None:
        """The first `reserved` numbers are not used."""
        self._by_key: dict[K, _Known[K, I]] = {}
        self._by_serial: dict[int, _Known[K, I]] = {}
        self._by_word: dict[Hashable, dict[int, _Known[K, I]]] = {}
        self._numbered: list[_Known[K, I] | None] = [None] * reserved
        self._free: list[int] = []
        self.newest = 0
        """The highest serial number that was given."""

        mine = ref(self)  # so that nothing has to look for cycles

        def forget(known: ref[I]) -> None:
            interner = mine()
            if interner is not None:
                interner._drop(known)  # type: ignore[arg-type]

        self._forget = forget

    def __len__(self) -> int:
        """Return how long an array must be that is indexed by the numbers."""
        return len(self._numbered)

    def at(self, number: int) -> I | None:
        """Return the value of a number, None if nobody has one."""
        known = self._numbered[number]
        return known() if known is not None else None

    def find(self, key: K) -> int:
        """Return the number of a key's value, -1 if nobody has it."""
        known = self._by_key.get(key)
        return known.number if known is not None else -1

    def __contains__(self, serial: object) -> bool:
        return serial in self._by_serial

    @property
    def n_known(self) -> int:
        """Return how many values there are."""
        return len(self._by_serial)

    def number(self, serial: int) -> int:
        """Return the number of a value that is there."""
        return self._by_serial[serial].number

    def intern(self, key: K, make: Callable[[], I]) -> I:
        """Return the value of a key; make it if there is none. The caller must keep it."""
        known = self._by_key.get(key)
        value = known() if known is not None else None
        if value is None:
            value = make()
            known = _Known(value, self._forget)
            if not self._free:
                self._free.append(len(self._numbered))
                self._numbered.append(None)
            known.key = key
            known.number = value.number = self._free.pop()
            known.serial = value.serial = self.newest = next(_SERIALS)
            known.filed = tuple(self.filed_under(value))
            self._by_key[key] = self._by_serial[known.serial] = self._numbered[known.number] = known
            for word in known.filed:
                self._by_word.setdefault(word, {})[known.serial] = known
        return value

    def _drop(self, known: _Known[K, I]) -> None:
        if self._by_key[known.key] is known:
            del self._by_key[known.key]
        del self._by_serial[known.serial]
        for word in known.filed:
            alike = self._by_word[word]
            del alike[known.serial]
            if not alike:
                del self._by_word[word]
        self._numbered[known.number] = None
        self._free.append(known.number)

    def filed_under(self, value: I) -> Iterable[Hashable]:
        """Return the words, each once, that a value is to be found by."""
        return ()

    def n_under(self, word: Hashable) -> int:
        """Return how many values are filed under a word."""
        return len(self._by_word.get(word, _NONE))

    def under(self, word: Hashable, newer_than: int = 0) -> Iterator[I]:
        """Yield the values that are filed under a word, the newest first, down to a serial number that is not wanted."""
        alike = self._by_word.get(word)
        if alike is not None:
            for known in reversed([*alike.values()]):  # a copy: values may go meanwhile
                if known.serial <= newer_than:
                    return
                value = known()
                if value is not None:
                    yield value


_NONE: Mapping[int, object] = {}


class Memo(dict[int, T]):
    """A cache with one entry for each value of an interner, by serial number. Entries of values that are gone are dropped when
    there are twice as many entries as values. So it is bounded, and adding an entry costs the same on average."""

    __slots__ = ("__weakref__", "interner")

    def __init__(self, interner: WeakInterner[Any, Any]) -> None:
        super().__init__()
        self.interner = interner

    def __setitem__(self, serial: int, found: T) -> None:
        if len(self) >= max(_FEWEST, 2 * self.interner.n_known):
            for gone in [known for known in self if known not in self.interner]:
                del self[gone]
        super().__setitem__(serial, found)


class Leases(Generic[V]):
    """Numbers for values that come and go. Callers take a number and give it back; a value with no taker is gone."""

    __slots__ = ("_free", "_held", "_ids", "_n_always", "_nobody", "values")

    def __init__(self, nobody: V, *, is_first: bool = False) -> None:
        """`nobody` fills the places of free numbers. With `is_first` it is itself a value with the number 0, which never
        goes."""
        self._nobody = nobody
        self._n_always = int(is_first)
        self.values: list[V] = [nobody] if is_first else []
        self._ids: dict[V, int] = {nobody: 0} if is_first else {}
        self._held: list[int] = [0] if is_first else []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_empty(self) -> bool:
        """Return whether nobody has any value."""
        return not self._ids

    def find(self, value: V) -> int:
        """Return the number of a value, or -1 if nobody has it."""
        return self._ids.get(value, -1)

    def take(self, value: V) -> int:
        """Return the number of a value, to be given back once."""
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
        """Say that one who had a number is gone."""
        if number < self._n_always:
            return
        self._held[number] -= 1
        if not self._held[number]:
            del self._ids[self.values[number]]
            self.values[number] = self._nobody
            self._free.append(number)
