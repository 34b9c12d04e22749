"""All objects that are neither nodes nor pods: namespaces, services, claims, classes, budgets.

In: API objects. Out: lookups by kind, name and namespace. A kind is the struct of its objects or, for a kind that only a plugin
knows, its `plural.version.group`. Each kind has a version that changes with every object, so a cached answer can tell whether
it still holds, and a bounded log of changes, so that an index is updated and not built again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar, overload

from kubesched.scheduler.cluster.changelog import ChangeLog

T = TypeVar("T")
Kind = type[Any] | str
_EMPTY: Mapping[str, Any] = {}


class ObjectChange(NamedTuple):
    """An object before and after a change; None if it did not exist."""

    old: Any | None
    new: Any | None


class Objects:
    """API objects by kind, namespace and name."""

    __slots__ = ("_kinds", "_logs", "_shared", "revision")

    def __init__(self, objects: Iterable[Any] = ()) -> None:
        self._kinds: dict[Kind, dict[str, dict[str, Any]]] = {}
        self._logs: dict[Kind, ChangeLog[ObjectChange]] = {}
        self._shared: dict[Any, Any] = {}
        self.revision = 0
        """A number that grows with every change to objects of any kind."""
        for obj in objects:
            self.put(obj)

    def put(self, obj: Any, kind: Kind | None = None) -> Any | None:
        """Add or replace an object; return the one it replaces. Its kind is its type, unless another is named."""
        kind = kind or type(obj)
        names = self._kinds.setdefault(kind, {}).setdefault(obj.metadata.namespace or "", {})
        old = names.get(obj.metadata.name)
        names[obj.metadata.name] = obj
        self._write_down(kind, ObjectChange(old, obj))
        return old

    @overload
    def drop(self, kind: type[T], name: str, namespace: str = "") -> T | None: ...
    @overload
    def drop(self, kind: Kind, name: str, namespace: str = "") -> Any | None: ...
    def drop(self, kind: Kind, name: str, namespace: str = "") -> Any | None:
        """Remove an object; return it, or None if it was not here."""
        namespaces = self._kinds.get(kind)
        names = namespaces.get(namespace) if namespaces else None
        if not names or name not in names:
            return None
        gone = names.pop(name)
        self._write_down(kind, ObjectChange(gone, None))
        return gone

    @overload
    def get(self, kind: type[T], name: str, namespace: str = "") -> T | None: ...
    @overload
    def get(self, kind: Kind, name: str, namespace: str = "") -> Any | None: ...
    def get(self, kind: Kind, name: str, namespace: str = "") -> Any | None:
        """Return the object of that name, or None."""
        namespaces = self._kinds.get(kind)
        if not namespaces:
            return None
        return namespaces.get(namespace, _EMPTY).get(name)

    @overload
    def named(self, kind: type[T], namespace: str = "") -> Mapping[str, T]: ...
    @overload
    def named(self, kind: Kind, namespace: str = "") -> Mapping[str, Any]: ...
    def named(self, kind: Kind, namespace: str = "") -> Mapping[str, Any]:
        """Return the objects of one namespace (or the unnamespaced ones) by name."""
        return self._kinds.get(kind, {}).get(namespace, _EMPTY)

    @overload
    def all(self, kind: type[T]) -> Iterator[T]: ...
    @overload
    def all(self, kind: Kind) -> Iterator[Any]: ...
    def all(self, kind: Kind) -> Iterator[Any]:
        """Yield every object of a kind, in the order in which they came."""
        for names in self._kinds.get(kind, {}).values():
            yield from names.values()

    def count(self, kind: Kind) -> int:
        """Return how many objects of a kind there are."""
        return sum(len(names) for names in self._kinds.get(kind, {}).values())

    def version(self, kind: Kind) -> int:
        """Return a number that grows with every change to objects of this kind."""
        log = self._logs.get(kind)
        return log.end if log is not None else 0

    def log(self, kind: Kind) -> ChangeLog[ObjectChange]:
        """Return the changes to objects of a kind."""
        log = self._logs.get(kind)
        if log is None:
            log = self._logs[kind] = ChangeLog()
        return log

    def _write_down(self, kind: Kind, change: ObjectChange) -> None:
        self.revision += 1
        self.log(kind).append(change)

    def shared(self, make: Callable[[Objects], T]) -> T:
        """Return the one value that `make` makes of these objects, made on first use.

        It is for indexes of objects, and promises about them, that all profiles of a scheduler share. `make` is the key, so a
        class such as `DeviceClaims` names its one instance.
        """
        found: T | None = self._shared.get(make)
        if found is None:
            found = self._shared[make] = make(self)
        return found


class KindVersions:
    """The versions of some kinds at one time, to find out fast whether any of them changed since.

    Every decision asks this for each cached answer. `revision` counts changes of all kinds, so if it is the same, one
    comparison is enough. Otherwise the versions of the kinds are compared.
    """

    __slots__ = ("_kinds", "_objects", "_revision", "_versions")

    def __init__(self, objects: Objects, kinds: tuple[Kind, ...]) -> None:
        self._objects = objects
        self._kinds = kinds
        self._revision = objects.revision
        self._versions = self._look()

    def is_current(self) -> bool:
        """Return whether all of the kinds are as they were."""
        revision = self._objects.revision
        if revision == self._revision:
            return True
        if self._look() != self._versions:
            return False
        self._revision = revision
        return True

    def _look(self) -> list[int]:
        return [self._objects.version(kind) for kind in self._kinds]
