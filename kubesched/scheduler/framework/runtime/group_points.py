"""The extension points for groups of pods: the group of a pod, the placements of a group, and what follows if it cannot be
placed.

In: groups and proposals for them. Out: keys, statuses, placements and their scores, merged as kube-scheduler merges them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kubesched.scheduler.cluster import GroupKey, PodView, Snapshot
from kubesched.scheduler.framework.grouping import (
    FailedGroup,
    GroupPostFiltered,
    GroupRefusal,
    GroupTrial,
    Placement,
    Progress,
    Proposal,
    Shortfall,
)
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.runtime.blame import misanswered
from kubesched.scheduler.framework.runtime.plugin_calls import (
    FollowUp,
    PluginCalls,
    all_of,
    are_all,
    named,
    named_follow_up,
    reported,
)
from kubesched.scheduler.framework.verdicts import SUCCESS, Code, Status, failed, unschedulable

MAX_SCORE = 100
NO_PLACEMENTS = "no feasible placements found"


class GroupPoints(PluginCalls):
    """The extension points for groups of pods."""

    def __init__(self, points: Mapping[str, Sequence[tuple[Plugin, int]]]) -> None:
        super().__init__(points)
        self.gatherers = tuple(p for p in self.plugins if p.implements("group_of"))
        self.pod_group_post_filters = self._at("pod_group_post_filter")
        self.feasibility = tuple(p for p in self.plugins if p.implements("placement_feasible"))
        self.placement_generators = self._at("placement_generate")
        self.placement_scorers = tuple((p, weight or 1) for p, weight in self.points.get("placement_score", ()))

    def group_of(self, pod: PodView) -> tuple[Plugin, GroupKey] | None:
        """Return the group that a pod is scheduled together with, and the plugin that knows it."""
        # The first plugin that knows a group wins. A pod is in one group at most.
        for plugin in self.gatherers:
            key = self.group_by(plugin, pod)
            if key is not None:
                return plugin, key
        return None

    def group_by(self, plugin: Plugin, pod: PodView) -> GroupKey | None:
        """Return the group of a pod by one plugin."""
        key = self.call("GroupOf", plugin, plugin.group_of, pod)
        if key is not None and not isinstance(key, GroupKey):
            raise misanswered(plugin.name, "GroupOf", "a GroupKey or None", key, pod.key)
        return key

    def group_failed(self, plugin: Plugin, shortfall: Shortfall) -> GroupRefusal | None:
        """Tell a plugin that its group could not be placed; return its message for the members."""
        refusal = self.call("GroupFailed", plugin, plugin.group_failed, shortfall)
        if refusal is not None and not isinstance(refusal, GroupRefusal):
            raise misanswered(plugin.name, "GroupFailed", "a GroupRefusal or None", refusal)
        return refusal

    @reported("PlacementFeasible", lambda answer: answer.code.text)
    def placement_feasible(self, group: GroupKey, progress: Progress) -> Status:
        """Return SUCCESS if enough members of a group are placed, WAIT if enough may still be, or a refusal."""
        answer = SUCCESS
        for plugin in self.feasibility:
            status = self._ask("PlacementFeasible", plugin, plugin.placement_feasible, group, progress)
            if status is None or status.is_success:
                continue
            if status.code is Code.UNSCHEDULABLE:
                return status.by(plugin.name)
            if status.code is not Code.WAIT:
                return failed(f"running PlacementFeasible plugin: {status.message}").by(plugin.name)
            # WAIT is kept while the others are asked: one refusal outweighs it. The last plugin that says WAIT names the
            # reason.
            answer = status.by(plugin.name)
        return answer

    @reported("PodGroupPostFilter", lambda answer: answer.status.code.text)
    def pod_group_post_filter(self, group: FailedGroup, trial: GroupTrial) -> GroupPostFiltered:
        """Run the PodGroupPostFilters until one makes the group schedulable; merge the reasons of the others."""
        reasons: list[str] = []
        follow_ups: list[FollowUp | None] = []
        for plugin in self.pod_group_post_filters:
            answer = self.call("PodGroupPostFilter", plugin, plugin.pod_group_post_filter, group, trial)
            if not isinstance(answer, GroupPostFiltered) or not isinstance(answer.status, Status):
                raise misanswered(plugin.name, "PodGroupPostFilter", "GroupPostFiltered", answer)
            status = answer.status
            follow_ups.append(named_follow_up(answer.follow_up, plugin, group.members[0]))
            if status.is_success or status.code is Code.UNRESOLVABLE:
                return replace(answer, follow_up=all_of(follow_ups))
            if not status.is_rejected:
                return GroupPostFiltered(failed(status.message).by(plugin.name), follow_up=all_of(follow_ups))
            reasons.extend(status.reasons)
        return GroupPostFiltered(unschedulable(*reasons), follow_up=all_of(follow_ups))

    def generate_placements(self, group: GroupKey, nodes: Snapshot) -> Sequence[Placement] | Status:
        """Return the placements of the first generator; others are ignored, as in kube-scheduler. Without a generator there
        is one placement, the whole cluster."""
        for plugin in self.placement_generators[:1]:
            answer = self.call("PlacementGenerate", plugin, plugin.generate_placements, group, nodes)
            if not isinstance(answer, Status) and not are_all(Placement, answer):
                raise misanswered(plugin.name, "PlacementGenerate", "a Status or a sequence of Placements", answer)
            if isinstance(answer, Status):
                return named(answer, plugin)
            return answer or unschedulable(NO_PLACEMENTS).by(plugin.name)
        return (Placement(""),)

    def score_placements(self, group: GroupKey, proposals: Sequence[Proposal], nodes: Snapshot) -> list[int] | Status:
        """Return the weighted sum of all scorers for each of the proposals, or what went wrong."""
        totals = [0] * len(proposals)
        for plugin, weight in self.placement_scorers:
            raw: list[int] = []
            for proposal in proposals:
                score = self.call("PlacementScore", plugin, plugin.score_placement, group, proposal, nodes)
                if isinstance(score, Status):
                    return failed(f'plugin "{plugin.name}" failed with: {score.message}').by(plugin.name)
                raw.append(score)
            # Checked after normalising, as for nodes: raw scores may be anything.
            scores: Any = raw
            if plugin.implements("normalize_placements"):
                scores = self.call("PlacementScoreExtensionNormalize", plugin, plugin.normalize_placements, raw)
            if isinstance(scores, Status):
                return failed(f'plugin "{plugin.name}" failed with: {scores.message}').by(plugin.name)
            # A normaliser that drops or adds an entry would shift all later scores to other placements.
            if not are_all(int, scores) or len(scores) != len(proposals):
                raise misanswered(plugin.name, "PlacementScore", f"{len(proposals)} whole numbers", scores)
            for i, score in enumerate(scores):
                if not 0 <= score <= MAX_SCORE:
                    return failed(
                        f'plugin "{plugin.name}" returns an invalid score {score}, it should in the range of '
                        f"[0, {MAX_SCORE}] after normalizing"
                    ).by(plugin.name)
                totals[i] += score * weight
        return totals
