"""Making a scene that shows a difference as small as it can be, for whoever has to understand it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

Raw = dict[str, Any]


def shrink(things: list[Any], still_fails: Callable[[list[Any]], bool]) -> list[Any]:
    """Return what is left when every thing, and every part of a thing, that is not needed for the failure is gone."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(things):
            if _fails(candidate, still_fails):
                things, smaller = candidate, True
                break
    return things


def _fails(candidate: list[Any], still_fails: Callable[[list[Any]], bool]) -> bool:
    try:
        return still_fails(candidate)
    except Exception:  # one that cannot even be asked about is no smaller version of the same thing
        return False


def _smaller(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield versions of a value with one part less, larger parts first."""
    if depth > 8:
        return
    if isinstance(value, list):
        for i in range(len(value)):
            yield value[:i] + value[i + 1 :]
        for i, one in enumerate(value):
            for less in _smaller(one, depth + 1):
                yield [*value[:i], less, *value[i + 1 :]]
    elif isinstance(value, dict):
        for key in value:
            if key not in ("kind", "apiVersion", "metadata", "name", "namespace", "uid", "spec", "status"):
                yield {k: v for k, v in value.items() if k != key}
        for key, one in value.items():
            for less in _smaller(one, depth + 1):
                yield {**value, key: less}


def shown(things: list[Any]) -> str:
    """Return things as text, one a line."""
    return "\n".join(json.dumps(thing) for thing in things)
