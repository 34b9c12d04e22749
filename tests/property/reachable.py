"""How much is kept: the entries of every container that can be reached from some objects, by the path that leads there."""

from __future__ import annotations

import types
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

_ATOMS = (str, bytes, int, float, bool, type(None), type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
_CONTAINERS = (dict, list, set, frozenset, tuple, deque)


def entries(roots: Mapping[str, object]) -> Counter[str]:
    """Return how many entries the containers and arrays of each path have in all; an object counts where it is met first."""
    found: Counter[str] = Counter()
    seen: dict[int, object] = {}
    waiting = deque((path, obj) for path, obj in roots.items())
    while waiting:
        path, obj = waiting.popleft()
        if isinstance(obj, _ATOMS) or id(obj) in seen:
            continue
        seen[id(obj)] = obj
        if isinstance(obj, np.ndarray):
            if obj.base is None:  # a view has nothing of its own
                found[path] += obj.size
            else:
                waiting.append((f"{path}.base", obj.base))
            continue
        if isinstance(obj, (dict, list, set, deque)):
            found[path] += len(obj)
        if isinstance(obj, dict):
            waiting.extend((f"{path}.key", key) for key in list(obj))
            waiting.extend((f"{path}[]", value) for value in list(obj.values()))
        elif isinstance(obj, _CONTAINERS):
            waiting.extend((f"{path}[]", value) for value in list(obj))
        waiting.extend((f"{path}.{name}", value) for name, value in _attributes(obj))
    return found


def _attributes(obj: object) -> Iterator[tuple[str, Any]]:
    if isinstance(obj, types.MethodType):
        yield "__self__", obj.__self__
    yield from list(getattr(obj, "__dict__", {}).items())
    if isinstance(obj, msgspec.Struct):
        for name in obj.__struct_fields__:
            yield name, getattr(obj, name)
    for cls in type(obj).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__weakref__", "__dict__") and hasattr(obj, name):
                yield name, getattr(obj, name)
