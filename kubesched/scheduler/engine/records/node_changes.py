"""The newest changes of nodes, with their times. "What changed at 14:05?" is often answered by a node, not by a decision.

Only changes that a decision may read are kept: a node was added, removed, cordoned, became ready or not, or changed a taint, a
label or an amount. Heartbeats are not. A change becomes text only when somebody reads it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from msgspec import Struct

from kubesched.kube.api import Node, Quantity, Taint
from kubesched.kube.values import quantity

MOST_CHANGES = 5000
_READY = "Ready"

T = TypeVar("T")


class NodeChange(Struct, frozen=True, gc=False):
    """One change to one node."""

    at: float
    node: str
    text: str


class _Facts(NamedTuple):
    """The parts of a node that a decision may read."""

    is_unschedulable: bool
    is_ready: bool
    taints: Sequence[Taint]
    labels: Mapping[str, str]
    allocatable: Mapping[str, Quantity]


_ANY = _Facts(False, True, (), {}, {})
"""Stands for a node that exists."""


class NodeChanges:
    """The newest changes, up to a number."""

    def __init__(self, most: int = MOST_CHANGES) -> None:
        self._changes: deque[tuple[float, str, _Facts | None, _Facts | None]] = deque(maxlen=most)

    def take(self, old: Node | None, new: Node | None, at: float) -> None:
        """Keep how a node changed; `old` None: it was added, `new` None: it was removed."""
        if old is not None and new is not None:
            before, after = _facts(old), _facts(new)
            if before != after:
                self._changes.append((at, new.metadata.name, *_apart(before, after)))
        elif new is not None:
            self._changes.append((at, new.metadata.name, None, _ANY))
        elif old is not None:
            self._changes.append((at, old.metadata.name, _ANY, None))

    def between(self, since: float, until: float) -> Iterator[NodeChange]:
        """Yield the changes between two times, newest first."""
        for at, name, before, after in reversed(self._changes):
            if since <= at <= until:
                for text in reversed(_texts(before, after)):
                    yield NodeChange(at, name, text)


def _facts(node: Node) -> _Facts:
    is_ready = True
    for condition in node.status.conditions:
        if condition.type == _READY:
            is_ready = condition.status == "True"
            break
    return _Facts(node.spec.unschedulable, is_ready, node.spec.taints, node.metadata.labels, node.status.allocatable)


def _apart(old: _Facts, new: _Facts) -> tuple[_Facts, _Facts]:
    """Return two versions without the labels and amounts that are equal in both, to keep little."""
    labels, amounts = _differing(old.labels, new.labels), _differing(old.allocatable, new.allocatable)
    return old._replace(labels=labels[0], allocatable=amounts[0]), new._replace(labels=labels[1], allocatable=amounts[1])


def _differing(old: Mapping[str, T], new: Mapping[str, T]) -> tuple[Mapping[str, T], Mapping[str, T]]:
    if old == new:
        return {}, {}
    return (
        {name: value for name, value in old.items() if new.get(name) != value},
        {name: value for name, value in new.items() if old.get(name) != value},
    )


def _texts(old: _Facts | None, new: _Facts | None) -> list[str]:
    """Return the differences between two versions of a node, as texts."""
    if old is None or new is None:
        return ["added" if old is None else "removed"]
    texts = []
    if old.is_unschedulable != new.is_unschedulable:
        texts.append("cordoned" if new.is_unschedulable else "uncordoned")
    if old.is_ready != new.is_ready:
        texts.append("became ready" if new.is_ready else "is not ready")
    if old.taints != new.taints:
        before, after = ({_taint(taint) for taint in facts.taints} for facts in (old, new))
        texts += [f"taint {taint} added" for taint in sorted(after - before)]
        texts += [f"taint {taint} removed" for taint in sorted(before - after)]
    texts += _differences("label ", old.labels, new.labels)
    if old.allocatable != new.allocatable:
        texts += _differences("", _amounts(old.allocatable), _amounts(new.allocatable))
    return texts


def _differences(kind: str, old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    if old == new:
        return []
    return [
        f"{kind}{name} {old.get(name, 'nothing')} → {new.get(name, 'nothing')}"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]


def _amounts(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    """Return amounts in one format, so that 1 and 1000m are equal."""
    kinds = {True: "BinarySI", False: "DecimalSI"}
    return {
        name: quantity.format_quantity(quantity.parse(amount), kinds[quantity.is_bytes(name)])
        for name, amount in amounts.items()
    }


def _taint(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
