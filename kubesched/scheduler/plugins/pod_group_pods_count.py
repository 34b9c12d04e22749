"""PodGroupPodsCount: prefer the placement that holds most pods of a group.

Scheduled pods count in every placement. NormalizeScore gives the best placement 100: with 2 scheduled pods, and 4 or 1 more,
100 and 50.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.scheduler.cluster import GroupKey, Snapshot
from kubesched.scheduler.framework import GroupHierarchy, Handle, Plugin, Proposal, Status, failed


class PodGroupPodsCount(Plugin):
    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._hierarchy = GroupHierarchy(handle.objects, has_composites=handle.gates.is_enabled("CompositePodGroup"))

    def score_placement(self, group: GroupKey, proposal: Proposal, nodes: Snapshot) -> int | Status:
        count = len(proposal.assignments)
        for leaf in self._hierarchy.leaves(group):
            members = self.handle.groups.get(leaf)
            if members is None:
                return failed(f"pod group state not found for pod group {leaf}")
            count += members.n_scheduled
        return count

    def normalize_placements(self, scores: Sequence[int]) -> Sequence[int] | Status:
        # As in kube-scheduler, no pod in any placement is an error and not a score of 0.
        most = max(scores, default=0)
        if not most:
            return failed("no pods from pod group are assigned to any of the candidate placements")
        return [score * 100 // most for score in scores]
