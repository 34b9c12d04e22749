"""What the page and whoever shows an engine agree on: versions, documents, and the headers that everything goes out with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kubesched.errors import SchedulerError
from kubesched.server.web.answers import NO_SNIFF

Document = Mapping[str, Any]
WHAT_IFS = ("plan", "compare", "snapshot")
"""What a page may offer to ask on any cluster; nothing of it writes."""
HEADERS = {
    **NO_SNIFF,
    "Cache-Control": "no-cache, private",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}


class NotReady(SchedulerError):
    """There is nothing to show yet, or nobody who has the time; asking again helps."""


@dataclass(frozen=True, slots=True)
class Versions:
    """Which versions of the columns the asker has already got; empty for none."""

    nodes: str = ""
    usage: str = ""


class PageData(Protocol):
    """Shows an engine in values that JSON knows. What is not known is None."""

    def state(self, seen: Versions) -> Document:
        """Return the picture of the moment; columns that the asker has are left out."""
        ...

    async def queue(self, part: str, search: str) -> Document:
        """Return the pods in the queue by its parts, all or one of them, that match what is searched for."""
        ...

    async def pending(self) -> Document:
        """Return the pods that are held back, grouped by what would help them."""
        ...

    async def pod(self, key: str) -> Document | None:
        """Return what is known of a pod and how the nodes look to it."""
        ...

    async def pod_nodes(self, key: str) -> Document | None:
        """Return who refuses each node for a pod and what each scores, as columns."""
        ...

    async def pod_node(self, key: str, node_name: str) -> Document | None:
        """Return what every plugin says of one node for a pod."""
        ...

    def pod_decisions(self, key: str) -> Document:
        """Return the decisions about a pod that are on record, newest first; also of one that is gone."""
        ...

    async def node(self, name: str) -> Document | None:
        """Return what is known of a node."""
        ...

    async def pods_inside(self) -> Document:
        """Return the pods on nodes as columns."""
        ...

    def label(self, key: str) -> Document:
        """Return a label of all nodes as a column."""
        ...

    def history(self, after: float) -> Document:
        """Return figures of the last hours as columns."""
        ...

    def node_changes(self, since: float, until: float) -> Document:
        """Return what changed about nodes in a time, newest first."""
        ...

    def configuration(self) -> Document:
        """Return the profiles and their plugins."""
        ...
