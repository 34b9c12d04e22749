"""Conditions of pods, nodes, budgets and workloads: read, and set so that the transition time stays right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubesched.embedded.schema.resources import Object

_TIMES = ("lastTransitionTime", "lastUpdateTime", "lastProbeTime")


def condition(obj: Object, kind: str) -> Object | None:
    """Return the condition of this type, or None."""
    return next((one for one in (obj.get("status") or {}).get("conditions") or () if one.get("type") == kind), None)


def is_true(obj: Object, kind: str) -> bool:
    """Return whether an object has this condition with status True."""
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def with_condition(conditions: Iterable[Object] | None, kind: str, status: str, now: str, **more: Any) -> list[Object]:
    """Return the conditions with one of them set; `more` are its other fields.

    The transition time moves only when the status does. A condition that has these values already stays as it is, so that
    writing it again changes nothing.
    """
    new = {"type": kind, "status": status, "lastTransitionTime": now, **more}
    if not conditions:
        return [new]
    held = list(conditions)
    for at, old in enumerate(held):
        if old.get("type") == kind:
            if any(old.get(name) != value for name, value in new.items() if name not in _TIMES):
                since = old.get("lastTransitionTime", now) if old.get("status") == status else now
                held[at] = new | {"lastTransitionTime": since}
            return held
    return [*held, new]
