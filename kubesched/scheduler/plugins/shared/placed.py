"""Following the pods that come to nodes and leave them, so that an index over placed pods is never built twice.

In: snapshots, one after the other. Out: calls of `came` and `left` for every pod that moved since the last one, or of
`restart` and `came` for all pods when nodes were added or removed, or when too much happened to have been written down.
"""

from __future__ import annotations

from kubesched.scheduler.cluster import Change, PodView, Reader, Snapshot


class PlacedPods:
    """The base of indexes over placed pods."""

    def __init__(self) -> None:
        self._reader: Reader[Change] = Reader()

    def follow(self, nodes: Snapshot) -> None:
        """Bring the index up to date with the cluster that a view is of."""
        changes = self._reader.changed(nodes.journal)
        if changes is not None:
            for change in changes:
                pod = change.pod
                if pod is not None and pod.pod.spec.volumes:
                    if change.sign > 0:
                        self.came(pod, change.row)
                    else:
                        self.left(pod, change.row)
            return
        self.restart(nodes)
        row_of_slot = nodes.slots.row.data
        for slot, pod in enumerate(nodes.slots.views):
            if pod is not None and pod.pod.spec.volumes:
                self.came(pod, int(row_of_slot[slot]))

    def restart(self, nodes: Snapshot) -> None:
        """Forget everything; the pods of the cluster come one by one after this."""
        raise NotImplementedError

    def came(self, pod: PodView, row: int) -> None:
        """Take in a pod with volumes that came to a row of the whole cluster."""
        raise NotImplementedError

    def left(self, pod: PodView, row: int) -> None:
        """Let go of a pod with volumes that left a row of the whole cluster."""
        raise NotImplementedError
