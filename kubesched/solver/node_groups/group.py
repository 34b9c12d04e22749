"""A group of equal nodes that may grow, as scenario files and node group files have it.

Fields that nobody knows are refused; docs/reference/scenario.md is the reference for the fields.
"""

from __future__ import annotations

import re

import msgspec

from kubesched.kube.api import Quantity, Taint

Seconds = str | int | float
"""A time: seconds, or text such as 90s, 5m or 1h30m."""

_PATTERN = re.compile(r"\{i(?:([%/])([1-9][0-9]*))?\}")


class Spot(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Nodes that their owner may take back: each after a time of its own, by chance; drained when notice is given."""

    mean_life: Seconds
    notice: Seconds = 120


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Equal nodes, NAME-0 to NAME-(count-1). In labels, {i} stands for a node's number, {i%3} and {i/3} for what
    is left when it is divided, and for the quotient. With a `max` it may grow, and shrink down to its `min`."""

    name: str
    count: int = 1
    capacity: dict[str, Quantity]
    allocatable: dict[str, Quantity] | None = None
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    startup: Seconds = 0
    min: int = 0
    max: int | None = None
    price: float = 0.0
    """Of one node for an hour, in any currency."""
    weight: int = 0
    """Groups of a higher weight are taken first, whatever they cost."""
    spot: Spot | None = None
    selector: dict[str, str] = {}
    """The labels by which nodes of a cluster belong to the group; by their names, NAME-NUMBER, if none are given."""
    pool: str = ""
    limits: dict[str, Quantity] = {}
    """What all nodes of the groups of one pool may offer together."""


def numbered(pattern: str, i: int) -> str:
    """Return a label's value for node number i."""

    def filled(match: re.Match[str]) -> str:
        sign, by = match.groups()
        return str(i if sign is None else i % int(by) if sign == "%" else i // int(by))

    return _PATTERN.sub(filled, pattern)
