"""One node tried out: does the pod fit it when some pods are gone, and others have come back?

In: a pod, a node, the filters. Out: whether it fits, and why not. It must fit with and without the pods that are nominated to
the node. Who looks for victims asks here; nothing of it happens in the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from kubesched.cluster import PodView, Snapshot
from kubesched.framework.whatif import WhatIf
from kubesched.framework.whatif_filters import Refused, WhatIfFilters


class NodeTrial:
    """A node as somebody imagines it, with counters of its own where filters count pods."""

    def __init__(self, pod: PodView, nodes: Snapshot, row: int, what_if: WhatIfFilters, nominated: Iterable[PodView]) -> None:
        self._pod, self._nodes, self._row, self._what_if = pod, nodes, row, what_if
        self._nominated = [other for other in nominated if other.uid != pod.uid]
        self._node = WhatIf.of(nodes, [row])
        self._state = what_if.state.clone() if what_if.counting else None

    def move(self, other: PodView, sign: int, row: int | None = None) -> None:
        """Let a pod come (1) or go (-1): here, or on another row, of which only the counters are told."""
        row = self._row if row is None else row
        if row == self._row:
            self._node.move(other, sign)
        if self._state is not None:
            self._what_if.profile.adjust(self._pod, other, row, sign, self._nodes, self._state)

    def refusal(self) -> Refused | None:
        """Return why the pod does not fit as it is now; None if it does."""
        if self._nominated:
            fuller = copy(self)
            fuller._node, fuller._nominated = self._node.take([0]), []
            fuller._state = self._state.clone() if self._state is not None else None
            for other in self._nominated:
                fuller.move(other, 1)
            refused = fuller.refusal()
            if refused is not None:
                return refused
        return self._what_if.refusal(self._node, self._state)
