"""Priorities by what a node has: the pod's images, and enough for the pod's limits."""

from __future__ import annotations

import numpy as np

from kubesched.kube.api import CPU, MEMORY, Node
from kubesched.scheduler.cluster import Ints, PodView, Snapshot
from kubesched.scheduler.framework import CycleState, Handle, Input
from kubesched.scheduler.legacy.priorities.base import Priority
from kubesched.scheduler.legacy.releases import LegacyContext
from kubesched.scheduler.legacy.shared.pod_requests import asked
from kubesched.scheduler.plugins.image_locality import LEAST, MEBI, with_tag

MOST = 1000 * MEBI
"""Unlike today, not multiplied by the number of containers."""


class ImageHolders:
    """The number of nodes with an image, as each node knew it when it was last written (a bug of 1.17).

    The old cache counted the nodes with an image while it read a node, and kept the number until that node changed: of three
    nodes that are added one after the other with the same image, the first has the number 1, the last 3. Here nodes are read in
    the order of rows.
    """

    def __init__(self) -> None:
        self._seen: dict[str, Node] = {}
        self._told: dict[str, dict[str, int]] = {}
        self._holders: dict[str, set[str]] = {}
        self._columns: dict[str, Ints] = {}

    def column(self, image: str, nodes: Snapshot) -> Ints:
        """Return the number that each node of a view knows, 0 for nodes without the image."""
        whole = nodes.everything()
        self._follow(whole)
        column = self._columns.get(image)
        if column is None:
            column = np.array([self._told[name].get(image, 0) for name in whole.names], dtype=np.int64)
            self._columns[image] = column
        return column if nodes.rows is None else column[nodes.rows]

    def _follow(self, whole: Snapshot) -> None:
        """Read new and changed nodes, in the order of rows, and drop removed ones."""
        names = whole.names
        changed = [(name, whole.node(row)) for row, name in enumerate(names) if self._seen.get(name) is not whole.node(row)]
        gone = self._seen.keys() - set(names) if len(self._seen) + len(changed) > len(names) else set()
        if not changed and not gone and len(self._seen) == len(names):
            return
        self._columns.clear()
        for name in (*gone, *(name for name, _ in changed)):
            self._drop(name)
        for name, node in changed:
            self._take_in(name, node)

    def _drop(self, name: str) -> None:
        self._seen.pop(name, None)
        for image in self._told.pop(name, {}):
            self._holders[image].discard(name)

    def _take_in(self, name: str, node: Node) -> None:
        self._seen[name] = node
        told = self._told[name] = {}
        for image in node.status.images:
            for image_name in image.names:
                holders = self._holders.setdefault(image_name, set())
                holders.add(name)
                told[image_name] = len(holders)


class ImageLocalityPriority(Priority):
    """Prefer nodes that hold the images of the pod's containers.

    Up to 1.6 an image counts with its full size, by its exact name; later in proportion to the share of nodes that have it.
    """

    def __init__(self, context: LegacyContext, handle: Handle) -> None:
        super().__init__(context, handle)
        self._holders = ImageHolders()

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        return self._in_full(pod, nodes) if self.release.minor < 10 else self._in_proportion(pod, nodes)

    def _in_proportion(self, pod: PodView, nodes: Snapshot) -> Ints:
        here = np.zeros(nodes.n, dtype=np.int64)
        for container in pod.pod.spec.containers:
            name = with_tag(container.image)
            known = nodes.image(name)
            if known is not None:
                share = self._count(name, known.rows, nodes) / float(nodes.total)
                here += (float(known.size) * share).astype(np.int64)
        scores: Ints = self.most * (np.clip(here, LEAST, MOST) - LEAST) // (MOST - LEAST)
        return scores

    def _count(self, name: str, rows: set[int], nodes: Snapshot) -> Ints:
        """Return the number of nodes with an image on each of them, 0 on the others."""
        if self.context.to_the_letter:
            return self._holders.column(name, nodes)
        return nodes.mask(rows) * len(rows)

    def _in_full(self, pod: PodView, nodes: Snapshot) -> Ints:
        here = np.zeros(nodes.n, dtype=np.int64)
        for container in pod.pod.spec.containers:
            known = nodes.image(container.image)
            for row in np.flatnonzero(nodes.mask(known.rows)).tolist() if known is not None else ():
                images = nodes.node(row).status.images
                here[row] += next((i.size_bytes for i in images if container.image in i.names), 0)
        between = self.most * (here - LEAST) // (MOST - LEAST) + 1
        scores: Ints = np.where(here < LEAST, 0, np.where(here >= MOST, self.most, between))
        return scores


class ResourceLimitsPriority(Priority):
    """Score 1 on nodes with enough cpu or memory for the pod's limit."""

    depends_on = (Input.POD_TEMPLATE, Input.NODE)

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        enough = np.zeros(nodes.n, dtype=np.bool_)
        limits = asked(pod, overhead=False).limits
        for name in (CPU, MEMORY):
            limit = limits.get(name, 0)
            if limit:
                enough |= nodes.allocatable(nodes.resource(name)) >= limit
        return enough.astype(np.int64)
