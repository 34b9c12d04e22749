"""Zones, and the order in which kube-scheduler visits nodes.

Nodes are grouped by region and zone. Zones are in the order of their first node, nodes in the order in which they were added.
The visit takes the first node of every zone, then the second of every zone, and so on: a search that stops early has seen all
zones. Example: zone 1 has a, b, c and zone 2 has d: the order is a, d, b, c.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.kube.values import BETA_REGION, BETA_ZONE, REGION, ZONE

ZONE_LABELS, REGION_LABELS = (BETA_ZONE, ZONE), (BETA_REGION, REGION)


def zone_key(labels: Mapping[str, str]) -> str:
    """Return the key of a node's zone; empty for a node that names neither region nor zone."""
    zone = next((labels[k] for k in ZONE_LABELS if k in labels), "")
    region = next((labels[k] for k in REGION_LABELS if k in labels), "")
    return f"{region}:\x00:{zone}" if zone or region else ""


SavedOrder = tuple[dict[str, dict[str, None]], list[str] | None]


class VisitOrder:
    """Node names by zone; lists them round-robin."""

    __slots__ = ("_names", "_zone_of", "_zones")

    def __init__(self) -> None:
        self._zones: dict[str, dict[str, None]] = {}
        self._zone_of: dict[str, str] = {}
        self._names: list[str] | None = None

    def saved(self) -> SavedOrder:
        """Return the order as it is now, for `restore`."""
        return {zone: dict(names) for zone, names in self._zones.items()}, self._names

    def restore(self, saved: SavedOrder) -> None:
        """Let the nodes stand as when the order was saved."""
        self._zones, self._names = saved
        self._zone_of = {name: zone for zone, names in self._zones.items() for name in names}

    def put(self, name: str, labels: Mapping[str, str]) -> None:
        """Add a node, or move it to another zone if its labels say so."""
        zone = zone_key(labels)
        if name in self._zone_of:
            if self._zone_of[name] == zone:
                return
            self.drop(name)
        self._zones.setdefault(zone, {})[name] = None
        self._zone_of[name] = zone
        self._names = None

    def drop(self, name: str) -> None:
        """Forget a node; a zone without nodes loses its place."""
        zone = self._zone_of.pop(name)
        del self._zones[zone][name]
        if not self._zones[zone]:
            del self._zones[zone]
        self._names = None

    @property
    def names(self) -> list[str]:
        """Return all node names in visiting order; borrowed, not copied."""
        if self._names is None:
            turns = [list(zone) for zone in self._zones.values()]
            longest = max(map(len, turns), default=0)
            self._names = [zone[i] for i in range(longest) for zone in turns if i < len(zone)]
        return self._names
