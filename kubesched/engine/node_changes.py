"""What changed about nodes, in words and with its time: the other half of what changed at 14:05.

In: nodes as they come, change and go. Out: the last so many changes that a decision may read: a node that came or went, was
cordoned, got another taint, label or amount, became ready or ceased to be. Heartbeats and the like are no changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from msgspec import Struct

from kubesched.api import quantity
from kubesched.api.meta import Quantity
from kubesched.api.node import Node, Taint

MOST_CHANGES = 5000
_READY = "Ready"


class NodeChange(Struct, frozen=True, gc=False):
    """One change to one node."""

    at: float
    node: str
    text: str


class NodeChanges:
    """The last changes."""

    def __init__(self, most: int = MOST_CHANGES) -> None:
        self._changes: deque[NodeChange] = deque(maxlen=most)

    def __len__(self) -> int:
        return len(self._changes)

    def take(self, old: Node | None, new: Node | None, at: float) -> None:
        """Take in two versions of a node; none before it came, none after it went."""
        known = new or old
        if known is not None:
            self._changes.extend(NodeChange(at, known.metadata.name, text) for text in told(old, new))

    def between(self, since: float, until: float) -> Iterator[NodeChange]:
        """Yield the changes of a time, newest first."""
        return (change for change in reversed(self._changes) if since <= change.at <= until)


def told(old: Node | None, new: Node | None) -> list[str]:
    """Return what is different between two versions of a node."""
    if old is None or new is None:
        return ["added" if old is None else "removed"]
    texts = []
    if old.spec.unschedulable != new.spec.unschedulable:
        texts.append("cordoned" if new.spec.unschedulable else "uncordoned")
    if _is_ready(old) != _is_ready(new):
        texts.append("became ready" if _is_ready(new) else "is not ready")
    if old.spec.taints != new.spec.taints:
        before, after = ({_taint(taint) for taint in node.spec.taints} for node in (old, new))
        texts += [f"taint {taint} added" for taint in sorted(after - before)]
        texts += [f"taint {taint} removed" for taint in sorted(before - after)]
    texts += _differences("label ", old.metadata.labels, new.metadata.labels)
    if old.status.allocatable != new.status.allocatable:
        texts += _differences("", _amounts(old.status.allocatable), _amounts(new.status.allocatable))
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
    """Return amounts as people write them, so that 1 and 1000m are the same."""
    kinds = {True: "BinarySI", False: "DecimalSI"}
    return {
        name: quantity.format_quantity(quantity.parse(amount), kinds[quantity.is_bytes(name)])
        for name, amount in amounts.items()
    }


def _taint(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _is_ready(node: Node) -> bool:
    return next((each.status == "True" for each in node.status.conditions if each.type == _READY), True)
