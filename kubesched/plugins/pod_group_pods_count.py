"""PodGroupPodsCount: prefer the placement that holds most pods of a group.

Pods that already have a place count as well, so that the difference between placements shrinks as the group grows.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.cluster import GroupKey, Snapshot
from kubesched.framework import Plugin, Status, failed
from kubesched.framework.grouping import Proposal


class PodGroupPodsCount(Plugin):
    def score_placement(self, group: GroupKey, proposal: Proposal, nodes: Snapshot) -> int | Status:
        members = self.handle.groups.get(group)
        if members is None:
            return failed(f"pod group state not found for pod group {group}")
        return members.n_scheduled + len(proposal.assignments)

    def normalize_placements(self, scores: Sequence[int]) -> Sequence[int] | Status:
        most = max(scores, default=0)
        if not most:
            return failed("no pods from pod group are assigned to any of the candidate placements")
        return [score * 100 // most for score in scores]
