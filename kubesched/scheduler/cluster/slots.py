"""Placed pods as columns with one slot for each pod. Pods are counted per domain by NumPy, without a loop over pods.

In: pods that come to rows and leave them. Out: for every slot the row, the label class and the affinity group; and the slots
that hold each host port and volume claim. Example: the pods of label class 7 in each zone are
`bincount(zone_of_row[row[class_id == 7]])`. A free slot has class 0 and group 0, which match nothing.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from kubesched.kube.api import HostPort
from kubesched.scheduler.cluster.changelog import ChangeLog
from kubesched.scheduler.cluster.columns import Table
from kubesched.scheduler.cluster.pods import LabelClass, PodView

K = TypeVar("K")


class PodSlots:
    """The table of placed pods."""

    def __init__(self) -> None:
        self.table = Table()
        self.row = self.table.column(np.int64)
        self.class_id = self.table.column(np.int64)
        self.affinity_id = self.table.column(np.int64)
        self.views: list[PodView | None] = []
        self._free: list[int] = []
        self.classes: dict[LabelClass, int] = {}
        self.by_namespace: dict[str, set[LabelClass]] = {}
        """The label classes of placed pods: how many pods each has, and which there are in a namespace."""
        self.affinities: dict[int, int] = {}
        """How many placed pods each affinity group has, by its serial number."""
        self.ports: dict[tuple[str, int], dict[str, set[int]]] = {}
        self.claims: dict[str, set[int]] = {}
        self.reordered: ChangeLog[int] = ChangeLog()
        """The rows whose pods changed their order (`PodsOnNode`). It is a log apart from the journal, because nearly every pod
        status is written here and only preemption reads it."""

    def add(self, pod: PodView, row: int) -> None:
        """Give a pod a slot on a row."""
        slot = self._free.pop() if self._free else self.table.append()
        if slot == len(self.views):
            self.views.append(None)
        template = pod.template
        pod.slot = slot
        self.views[slot] = pod
        self.row.cells[slot] = row
        self.class_id.cells[slot] = template.class_id
        known = self.classes.get(template.label_class, 0)
        self.classes[template.label_class] = known + 1
        if not known:
            self.by_namespace.setdefault(template.namespace, set()).add(template.label_class)
        group = template.affinity_group
        if group.serial:
            self.affinity_id.data[slot] = group.number
            self.affinities[group.serial] = self.affinities.get(group.serial, 0) + 1
        for port in template.ports:
            self.ports.setdefault((port.protocol, port.port), {}).setdefault(port.ip, set()).add(slot)
        if pod.pod.spec.volumes:
            for claim in claims_of(pod):
                self.claims.setdefault(claim, set()).add(slot)

    def remove(self, pod: PodView) -> None:
        """Take a pod's slot back."""
        slot, template = pod.slot, pod.template
        self.row.data[slot] = self.class_id.data[slot] = self.affinity_id.data[slot] = 0
        self.views[slot] = None
        self._free.append(slot)
        _count_down(self.classes, template.label_class)
        if template.label_class not in self.classes:
            alike = self.by_namespace[template.namespace]
            alike.discard(template.label_class)
            if not alike:
                del self.by_namespace[template.namespace]
        if template.affinity_group.serial:
            _count_down(self.affinities, template.affinity_group.serial)
        for port in template.ports:
            holders = self.ports[(port.protocol, port.port)]
            holders[port.ip].discard(slot)
            if not holders[port.ip]:
                del holders[port.ip]
                if not holders:
                    del self.ports[(port.protocol, port.port)]
        for claim in claims_of(pod):
            users = self.claims.get(claim)
            if users is not None:
                users.discard(slot)
                if not users:
                    del self.claims[claim]
        pod.slot = -1

    def replace(self, pod: PodView, by: PodView) -> None:
        """Let a newer version of the same pod, equal in everything that counts, take its slot."""
        by.slot, pod.slot = pod.slot, -1
        self.views[by.slot] = by

    def cut_back(self, n: int) -> None:
        """Undo that the table grew beyond `n` slots: those behind are free, and are given up."""
        if self.table.n > n:
            self._free = [slot for slot in self._free if slot < n]
            del self.views[n:]
            self.table.n = n

    def holders(self, port: HostPort) -> set[int]:
        """Return the slots whose pods conflict with a host port."""
        by_ip = self.ports.get((port.protocol, port.port))
        if not by_ip or port.port <= 0:
            return set()
        if port.ip == "0.0.0.0":
            return set().union(*by_ip.values())
        return by_ip.get(port.ip, set()) | by_ip.get("0.0.0.0", set())


def claims_of(pod: PodView) -> list[str]:
    """Return the keys (namespace/name) of the volume claims that a pod names directly."""
    volumes = pod.pod.spec.volumes
    if not volumes:
        return []
    return [f"{pod.namespace}/{v.persistent_volume_claim.claim_name}" for v in volumes if v.persistent_volume_claim is not None]


def _count_down(counts: dict[K, int], key: K) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
