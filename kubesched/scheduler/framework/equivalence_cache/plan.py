"""How the answers of a profile's plugins are remembered: kept, counted, or asked for every pod.

In: a profile, and what a kind of pod has of its own. Out: its plugins sorted by what they declare (framework/inputs). Drawn up
once for each such kind; framework/equivalence_cache/cache follows it.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.kube.api import TopLevel
from kubesched.scheduler.framework.counting import CountsPods
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


class Asked:
    """Plugins by the point at which they are asked, in their order; scorers with their weights."""

    __slots__ = ("filters", "pre_filters", "pre_scores", "scorers")

    def __init__(self, profile: Profile, plugins: frozenset[Plugin], scorers: Iterable[tuple[Plugin, int]]) -> None:
        self.pre_filters = tuple(plugin for plugin in profile.pre_filters if plugin in plugins)
        self.filters = tuple(plugin for plugin in profile.filters if plugin in plugins)
        self.pre_scores = tuple(plugin for plugin in profile.pre_scores if plugin in plugins)
        self.scorers = tuple(scorers)

    @property
    def plugins(self) -> frozenset[Plugin]:
        """Return all of them."""
        return frozenset((*self.pre_filters, *self.filters, *self.pre_scores, *(plugin for plugin, _ in self.scorers)))


class CachePlan:
    """Which plugins are asked once for a kind of pod (`kept`), and which for every pod (`live`)."""

    def __init__(self, profile: Profile, own: Inputs) -> None:
        kept = frozenset(p for p in profile.plugins if is_kept(p, own))
        # A score that follows the pods on nodes, and is normalised over all of them, is another one after every pod anyway.
        scorers = [(p, w) for p, w in profile.scorers if p in kept and not (p.implements("normalize") and follows_pods(p))]
        self.kept = Asked(profile, kept, scorers)
        self.live = Asked(
            profile, frozenset(profile.plugins) - kept, (scorer for scorer in profile.scorers if scorer not in scorers)
        )
        self.counting = frozenset(p for p in profile.plugins if is_counting(p, own))
        """Those of the live ones whose answers follow from counters: what they write belongs to the class, not to the pod."""
        self.judging = frozenset(p for p in self.live.filters if isinstance(p, CountsPods) and p.depends_on is not None)
        """Those of the live ones that may be asked for verdicts on whole domains, and below, for scores of them."""
        self.rating = frozenset(p for p in self.counting if isinstance(p, CountsPods))
        self.is_for_unlike = own >= UNLIKE
        """Whether the pods have no more in common than their node constraints."""
        self.answers_for_class = not self.is_for_unlike and self.counting.issuperset(self.live.filters)
        """Whether all filters answer for the class as a whole."""
        asked = self.kept.plugins
        self.is_shared = not any(Input.POD_TEMPLATE in (p.depends_on or ()) for p in asked)
        """Whether kept answers are the same for all pods that ask the same of a node."""
        self.compares_nodes = any(compares_nodes(p) for p in asked if not self._is_computed_anew(p))
        """Whether a node's change may change kept answers on other rows, other than those that are computed anew."""
        self.kept_kinds = _kinds(p for p in profile.plugins if p in asked)
        """Kinds of objects that kept answers are made of, and below, those that counters are built from."""
        self.counted_kinds = _kinds(p for p in profile.plugins if p in self.counting)

    def _is_computed_anew(self, plugin: Plugin) -> bool:
        """Return whether all that is kept of a plugin is a score that is computed again on all rows when a node changes."""
        asked_before = (*self.kept.pre_filters, *self.kept.filters, *self.kept.pre_scores)
        return plugin not in asked_before and not follows_pods(plugin) and not plugin.implements("normalize")


def _kinds(plugins: Iterable[Plugin]) -> tuple[type[TopLevel], ...]:
    return tuple(dict.fromkeys(kind for plugin in plugins for kind in kinds_of(plugin)))
