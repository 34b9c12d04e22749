"""Which plugins are called once for many pods, and which for every pod.

In: a profile, and what its pods have of their own (framework/inputs). Out: the profile's plugins by extension point, in two
groups. Answers of a kept plugin are stored in `NodeAnswers`. A live plugin is called for every pod. Live plugins that count
pods keep their counters in the pod's equivalence class.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.kube.api import TopLevel
from kubesched.scheduler.framework.counting import AddsScores
from kubesched.scheduler.framework.inputs import (
    UNLIKE,
    Input,
    Inputs,
    compares_nodes,
    follows_pods,
    is_counting,
    is_kept,
    kinds_of,
)
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.runtime.profile import Profile


class CachePlan:
    """The plugins of a profile by how they are called. Scorers come with their weights."""

    def __init__(self, profile: Profile, own: Inputs) -> None:
        kept = {plugin for plugin in profile.plugins if is_kept(plugin, own)}
        # A score that changes with every booked pod and is normalised over all nodes would have to be computed anew each time.
        scores = {plugin for plugin in kept if not (plugin.implements("normalize") and follows_pods(plugin))}
        self.kept_pre_filters, self.pre_filters = _split(profile.pre_filters, kept)
        self.kept_filters, self.filters = _split(profile.filters, kept)
        self.kept_pre_scores, self.pre_scores = _split(profile.pre_scores, kept)
        self.kept_scorers = tuple(scorer for scorer in profile.scorers if scorer[0] in scores)
        self.scorers = tuple(scorer for scorer in profile.scorers if scorer[0] not in scores)
        self.counting = frozenset(plugin for plugin in profile.plugins if is_counting(plugin, own))
        """Live plugins that answer from pod counters. What they write belongs to the equivalence class."""
        self.adding = frozenset(plugin for plugin in self.counting if isinstance(plugin, AddsScores))
        self.is_for_unlike = own >= UNLIKE
        """Whether the pods share nothing but their node constraints."""
        self.answers_for_class = not self.is_for_unlike and self.counting.issuperset(self.filters)
        """Whether all filters give the same answer for all pods of a class."""
        self.is_shared = not any(Input.POD_TEMPLATE in (plugin.depends_on or ()) for plugin in kept)
        """Whether kept answers hold for all pods that ask the same of a node, whatever their labels."""
        before_score = {*self.kept_pre_filters, *self.kept_filters, *self.kept_pre_scores}
        scored_anew = {p for p in scores - before_score if not (follows_pods(p) or p.implements("normalize"))}
        self.compares_nodes = any(compares_nodes(plugin) for plugin in kept - scored_anew)
        """Whether a changed node changes kept answers of other nodes. Scores that are computed anew for all nodes whenever a
        node changes do not count."""
        self.kept_kinds = _kinds(plugin for plugin in profile.plugins if plugin in kept)
        self.counted_kinds = _kinds(plugin for plugin in profile.plugins if plugin in self.counting)
        """Kinds of API objects that the kept answers, and the counters, are made from."""


def _split(plugins: Iterable[Plugin], kept: set[Plugin]) -> tuple[tuple[Plugin, ...], tuple[Plugin, ...]]:
    plugins = tuple(plugins)
    return tuple(p for p in plugins if p in kept), tuple(p for p in plugins if p not in kept)


def _kinds(plugins: Iterable[Plugin]) -> tuple[type[TopLevel], ...]:
    return tuple(dict.fromkeys(kind for plugin in plugins for kind in kinds_of(plugin)))
