"""TopologyPlacementGenerator: the placements of a pod group with a topology constraint, one for each domain.

    constraint over topology.kubernetes.io/rack    nodes: n1 (r1), n2 (r1), n3 (r2), n4 (no rack)
    placements: r1 {n1, n2}, r2 {n3}

If the group has scheduled pods, only their domain is a placement. A group without a constraint has one placement with all
nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubesched.scheduler.cluster import ABSENT, GroupKey, Snapshot
from kubesched.scheduler.framework import GroupHierarchy, Handle, Placement, Plugin, Status, failed

NO_DOMAIN = "cannot determine domain for already scheduled pods: "


class TopologyPlacementGenerator(Plugin):
    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._hierarchy = GroupHierarchy(handle.objects, has_composites=handle.gates.is_enabled("CompositePodGroup"))

    def generate_placements(self, group: GroupKey, nodes: Snapshot) -> Sequence[Placement] | Status:
        """Return one placement for each domain, sorted by the label's value; only the domain of scheduled pods if there are
        some."""
        found = self._hierarchy.get(group)
        if found is None:
            return failed(f'podgroup.scheduling.k8s.io "{group.name}" not found')
        # Like kube-scheduler, read the first topology constraint only.
        constraints = found.spec.scheduling_constraints
        if constraints is None or not constraints.topology:
            return (Placement(""),)
        key = constraints.topology[0].key
        # Domains are codes of the label. Their order is by name, so that placements come in the same order in each run.
        column, codes = nodes.label(key), nodes.codes(key)
        values = [] if column is None else column.values.values
        wanted = self._domain(group, nodes, key)
        if isinstance(wanted, Status):
            return wanted
        numbers = [wanted] if wanted is not None else [int(code) for code in np.unique(codes) if code != ABSENT]
        numbers.sort(key=lambda number: values[number])
        return [Placement(values[number], np.flatnonzero(codes == number)) for number in numbers]

    def _domain(self, group: GroupKey, nodes: Snapshot, key: str) -> int | Status | None:
        """Return the code of the domain of the group's scheduled pods; None if there are none, an error if there are several
        domains."""
        found: set[int] = set()
        # Members that have a node bind the rest to its domain. Each of these errors means that the group is in a state
        # that no placement can satisfy: a node that is gone or without the label, or two domains.
        for pod in (pod for members in self._hierarchy.members(group, self.handle.groups) for pod in members.scheduled()):
            row = nodes.row(pod.node_name)
            if row < 0:
                return failed(f'{NO_DOMAIN}getting node for pod {pod.key}: nodeinfo not found for node name "{pod.node_name}"')
            code = nodes.code_at(key, row)
            if code == ABSENT:
                return failed(f"{NO_DOMAIN}no topology domain found for pod {pod.key}")
            found.add(code)
        if len(found) > 1:
            column = nodes.label(key)
            assert column is not None
            names = sorted(column.values.values[code] for code in found)
            return failed(f"{NO_DOMAIN}more than 1 domain found for pod group: {names[0]}, {names[1]}")
        return found.pop() if found else None
