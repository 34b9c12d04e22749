"""How the answers of a profile's plugins are remembered: kept, counted, or asked for every pod.

In: a profile, and what a kind of pod has of its own. Out: its plugins sorted by what they declare (framework/inputs). Drawn up
once for each such kind; framework/equivalence_cache/cache follows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.kube.api.meta import TopLevel
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


@dataclass(frozen=True, slots=True)
class CachePlan:
    """The plugins of a profile, sorted by how their answers for a kind of pod are kept."""

    kept_filters: tuple[Plugin, ...]
    live_filters: tuple[tuple[Plugin, bool], ...]
    """With each, whether it may judge whole domains."""
    fixed_scores: tuple[tuple[Plugin, int], ...]
    """Scores that follow from the node objects and need no normalising."""
    row_scores: tuple[tuple[Plugin, int], ...]
    """Scores that follow from a node and its pods and need no normalising."""
    scaled_scores: tuple[tuple[Plugin, int], ...]
    """Scores that follow from the node objects and are normalised for every pod."""
    live_scores: tuple[tuple[Plugin, int, bool], ...]
    """With each its weight, and whether it may score whole domains."""
    kept_pre_filters: tuple[Plugin, ...]
    live_pre_filters: tuple[tuple[Plugin, bool], ...]
    kept_pre_scores: tuple[Plugin, ...]
    live_pre_scores: tuple[tuple[Plugin, bool], ...]
    """With each, whether what it writes belongs to the class (its counters) or to the one pod."""
    is_for_unlike: bool
    """Whether the pods have no more in common than their node constraints."""
    answers_for_class: bool
    """Whether all filters answer for the class as a whole."""
    kept_kinds: tuple[type[TopLevel], ...]
    """Kinds of objects that kept answers are made of, and below, those that counters are built from."""
    counted_kinds: tuple[type[TopLevel], ...]
    is_shared: bool
    """Whether kept answers are the same for all pods that ask the same of a node."""
    compares_nodes: bool
    """Whether a node's change may change kept answers on other rows, other than fixed scores."""


def plan_for(profile: Profile, own: Inputs) -> CachePlan:
    """Sort a profile's plugins for pods that have these inputs of their own."""
    kept = {p for p in profile.plugins if is_kept(p, own)}
    counting = {p for p in profile.plugins if is_counting(p, own)}
    # A score that follows the pods on nodes, and is normalised over all of them, is another one after every pod anyway.
    kept_scores = [(p, w) for p, w in profile.scorers if p in kept and not (p.implements("normalize") and follows_pods(p))]
    live_scores = [(p, w) for p, w in profile.scorers if (p, w) not in kept_scores]
    plain = [(p, w) for p, w in kept_scores if not p.implements("normalize")]
    kept_filters = tuple(p for p in profile.filters if p in kept)
    kept_pre_filters = tuple(p for p in profile.pre_filters if p in kept)
    kept_pre_scores = tuple(p for p in profile.pre_scores if p in kept)
    fixed = tuple((p, w) for p, w in plain if not follows_pods(p))
    computed_anew = {p for p, _ in fixed if not (p.implements("pre_filter") or p.implements("pre_score"))} - {*kept_filters}
    asked = {*kept_filters, *kept_pre_filters, *kept_pre_scores, *(p for p, _ in kept_scores)}
    return CachePlan(
        kept_filters=kept_filters,
        live_filters=tuple((p, p.implements("filter_domains")) for p in profile.filters if p not in kept),
        fixed_scores=fixed,
        row_scores=tuple((p, w) for p, w in plain if follows_pods(p)),
        scaled_scores=tuple((p, w) for p, w in kept_scores if p.implements("normalize")),
        live_scores=tuple((p, w, p in counting and p.implements("score_domains")) for p, w in live_scores),
        kept_pre_filters=kept_pre_filters,
        live_pre_filters=tuple((p, p in counting) for p in profile.pre_filters if p not in kept),
        kept_pre_scores=kept_pre_scores,
        live_pre_scores=tuple((p, p in counting) for p in profile.pre_scores if p not in kept),
        is_for_unlike=own >= UNLIKE,
        answers_for_class=not own >= UNLIKE and all(p in kept or p in counting for p in profile.filters),
        kept_kinds=_kinds(p for p in profile.plugins if p in asked),
        counted_kinds=_kinds(p for p in profile.plugins if p in counting),
        is_shared=not any(Input.POD_TEMPLATE in (p.depends_on or ()) for p in asked),
        compares_nodes=any(compares_nodes(p) for p in asked if p not in computed_anew),
    )


def _kinds(plugins: Iterable[Plugin]) -> tuple[type[TopLevel], ...]:
    return tuple(dict.fromkeys(kind for plugin in plugins for kind in kinds_of(plugin)))
