"""How the answers of a profile's plugins are remembered: kept, counted, or asked for every pod.

In: a profile, and the plugins that will not be remembered for a kind of pod. Out: its plugins sorted by what their scope
allows. Drawn up once for each such kind; framework/equivalence_cache follows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kubesched.framework.plugin import Plugin, Scope
from kubesched.framework.profile import Profile


@dataclass(frozen=True, slots=True)
class CachePlan:
    """The plugins of a profile, sorted by how their answers for a kind of pod are kept."""

    kept_filters: tuple[Plugin, ...]
    live_filters: tuple[Plugin, ...]
    fixed_scores: tuple[tuple[Plugin, int], ...]
    """Scores that follow from the node objects and need no normalising."""
    row_scores: tuple[tuple[Plugin, int], ...]
    """Scores that follow from a node and its pods and need no normalising."""
    scaled_scores: tuple[tuple[Plugin, int], ...]
    live_scores: tuple[tuple[Plugin, int, bool], ...]
    """With each its weight, and whether it may score whole domains."""
    kept_pre_filters: tuple[Plugin, ...]
    live_pre_filters: tuple[tuple[Plugin, bool], ...]
    kept_pre_scores: tuple[Plugin, ...]
    live_pre_scores: tuple[tuple[Plugin, bool], ...]
    """With each, whether what it writes belongs to the class (its counters) or to the one pod."""
    domain_plugins: tuple[Plugin, ...]
    answers_for_class: bool
    """Whether all filters answer for the class as a whole."""
    kept_reads: tuple[type[Any], ...]
    """Kinds of objects that kept answers are made of, and below, those that counters are built from."""
    counted_reads: tuple[type[Any], ...]
    is_impersonal: bool
    """Whether kept answers are the same for all pods that ask the same of a node."""


def plan_for(profile: Profile, unremembered: frozenset[str]) -> CachePlan:
    """Sort a profile's plugins; those named are asked anew for every pod, whatever their scope."""
    filters, scorers = set(profile.filters), {plugin for plugin, _ in profile.scorers}

    def filter_scope(plugin: Plugin) -> Scope:
        return Scope.CLUSTER if plugin.name in unremembered else plugin.filter_scope

    def score_scope(plugin: Plugin) -> Scope:
        return Scope.CLUSTER if plugin.name in unremembered else plugin.score_scope

    def is_live(plugin: Plugin) -> bool:
        if plugin not in filters and plugin not in scorers:  # it only looks at the pod, at PreFilter or PreScore
            return filter_scope(plugin) >= Scope.DOMAINS
        return (plugin in filters and filter_scope(plugin) >= Scope.DOMAINS) or (
            plugin in scorers and score_scope(plugin) >= Scope.DOMAINS
        )

    kept_scores = [(p, w) for p, w in profile.scorers if score_scope(p) < Scope.DOMAINS]
    plain = [(p, w) for p, w in kept_scores if not p.implements("normalize")]
    domains = tuple(
        p
        for p in profile.plugins
        if is_live(p) and p.name not in unremembered and Scope.DOMAINS in (p.filter_scope, p.score_scope)
    )
    kept_filters = tuple(p for p in profile.filters if filter_scope(p) < Scope.DOMAINS)
    kept_pre_filters = tuple(p for p in profile.pre_filters if not is_live(p))
    kept_pre_scores = tuple(p for p in profile.pre_scores if not is_live(p))
    kept = {*kept_filters, *kept_pre_filters, *kept_pre_scores, *(p for p, _ in kept_scores)}
    return CachePlan(
        kept_filters=kept_filters,
        live_filters=tuple(p for p in profile.filters if filter_scope(p) >= Scope.DOMAINS),
        fixed_scores=tuple((p, w) for p, w in plain if p.score_scope is not Scope.ROW),
        row_scores=tuple((p, w) for p, w in plain if p.score_scope is Scope.ROW),
        scaled_scores=tuple((p, w) for p, w in kept_scores if p.implements("normalize")),
        live_scores=tuple(
            (p, w, p in domains and p.implements("score_domains"))
            for p, w in profile.scorers
            if score_scope(p) >= Scope.DOMAINS
        ),
        kept_pre_filters=kept_pre_filters,
        live_pre_filters=tuple((p, p in domains) for p in profile.pre_filters if is_live(p)),
        kept_pre_scores=kept_pre_scores,
        live_pre_scores=tuple((p, p in domains) for p in profile.pre_scores if is_live(p)),
        domain_plugins=domains,
        answers_for_class=all(p in domains for p in profile.filters if filter_scope(p) >= Scope.DOMAINS),
        kept_reads=_all_reads(p for p in profile.plugins if p in kept),
        counted_reads=_all_reads(p for p in profile.plugins if is_live(p)),
        is_impersonal=all(p.is_impersonal for p in kept),
    )


def _all_reads(plugins: Iterable[Plugin]) -> tuple[type[Any], ...]:
    return tuple(dict.fromkeys(kind for plugin in plugins for kind in plugin.reads))
