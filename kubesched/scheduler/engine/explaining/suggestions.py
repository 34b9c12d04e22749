"""What would help a pod that no node takes: the smallest changes, each with how many nodes would take the pod then.

Every filter has judged every node, so the nodes that only one plugin refuses can be read off the columns:

                        node a   node b   node c
    NodeResourcesFit       x        x
    TaintToleration                 x        x
    refused by             1        2        1        -> a needs only CPU, c only a toleration, b both

A plugin itself turns "my nodes alone" into advice (`Plugin.advise`); if it has none, its reasons are quoted. Advice that
changes the pod is checked by filtering again with the changed pod (`Retrying`). Nothing here loops over nodes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import numpy as np

from kubesched.errors import SchedulerError
from kubesched.kube.api import UNSCHEDULABLE_TAINT, Pod
from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot
from kubesched.scheduler.engine.deciding.all_nodes import Filtered, filter_nodes
from kubesched.scheduler.engine.deciding.attempt import Attempt, Question, Rules
from kubesched.scheduler.engine.records.decision_recorder import profile_without
from kubesched.scheduler.framework import (
    AMOUNT,
    REMARK,
    Advice,
    CycleState,
    Plugin,
    Profile,
    Reason,
    Refused,
    Status,
    Verdicts,
    first_names,
    would_take_it,
)
from kubesched.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kubesched.scheduler.plugins.taint_toleration import TaintToleration, untolerated

log = logging.getLogger(__name__)

_MOST_COLUMNS = 62
"""One bit a plugin in an int64."""


class Obstacles:
    """The nodes that each plugin refuses, one boolean column a plugin."""

    def __init__(self, made: Attempt, verdicts: Verdicts, plugins: Iterable[Plugin] = ()) -> None:
        self.plugins = {plugin.name: plugin for plugin in plugins}
        self.pod, self.nodes, self.verdicts = made.pod, made.nodes, verdicts
        self.by_plugin: dict[str, Bools] = {}
        for plugin, rejections in verdicts.columns:
            if rejections.bits is not None:
                self._add(plugin, rejections.bits != 0)
        before = made.pre_filtered
        if verdicts.considered is not None and before is not None and before.narrowed_by:
            self._add(" and ".join(sorted(before.narrowed_by)), ~verdicts.considered)
        cordon, taints = NodeUnschedulable.name, TaintToleration.name
        if cordon in self.by_plugin and taints in self.by_plugin:
            # A cordon also sets a taint. `kubectl uncordon` removes both, so they count as one obstacle.
            self.by_plugin[taints] &= ~(self.by_plugin[cordon] & self._has_cordon_only())
        self.n_refusing: Ints = np.zeros(self.nodes.n, dtype=np.int64)
        for column in self.by_plugin.values():
            self.n_refusing += column

    def _add(self, plugin: str, refused: Bools) -> None:
        known = self.by_plugin.get(plugin)
        self.by_plugin[plugin] = refused if known is None else known | refused

    def _has_cordon_only(self) -> Bools:
        found = [
            all(taint.key == UNSCHEDULABLE_TAINT.key for taint in untolerated(self.pod, taints))
            for taints in self.nodes.taint_sets
        ]
        columns: Bools = np.array(found, dtype=np.bool_)[self.nodes.taint_set]
        return columns

    def alone(self, plugin: str) -> Bools:
        """Return the nodes that only this plugin refuses."""
        column: Bools = self.by_plugin[plugin] & (self.n_refusing == 1)
        return column

    def owned(self, plugin: str) -> Bools:
        """Return the nodes that count as refused by this plugin: those where it is the first one that refuses."""
        numbers = [number for number, (name, _) in enumerate(self.verdicts.columns) if name == plugin]
        column: Bools = np.isin(self.verdicts.owner, numbers)
        return column if self.verdicts.considered is None else column & self.verdicts.considered

    def too_small(self) -> Bools:
        """Return the nodes that are too small for the pod even if empty, by the plugins that judge sizes."""
        found = np.zeros(self.nodes.n, dtype=np.bool_)
        for name, plugin in self.plugins.items():
            for reason, where in self.reasons(name) if plugin.judges_size else ():
                if not reason.resolvable:
                    found |= where
        return found

    def reasons(self, plugin: str) -> list[tuple[Reason, Bools]]:
        """Return a plugin's reasons, each with its nodes, also those that other plugins refuse too."""
        found: list[tuple[Reason, Bools]] = []
        for name, rejections in self.verdicts.columns:
            if name == plugin and rejections.bits is not None:
                found += [(reason, rejections.has(i)) for i, reason in enumerate(rejections.reasons)]
        return found

    def says(self, plugin: str, rows: Bools) -> str:
        """Return a plugin's reasons for refusing some nodes, as text."""
        texts = dict.fromkeys(reason.text for reason, where in self.reasons(plugin) if (where & rows).any())
        return ", ".join(texts) or "not these nodes"

    def refused(self, plugin: str, decide: Callable[[Pod], Bools] | None = None) -> Refused:
        """Return what `Plugin.advise` gets: the refused nodes, and a way to try a changed pod."""
        rows, alone, owned = self.by_plugin[plugin], self.alone(plugin), self.owned(plugin)
        return Refused(plugin, self.pod, self.nodes, rows, alone, owned, self.reasons(plugin), decide)

    def examples(self, rows: Bools) -> tuple[str, ...]:
        """Return the names of the first few of some nodes."""
        return first_names(self.nodes, rows)

    def beyond_eviction(self) -> Bools:
        """Return the nodes that some plugin refuses for a reason that no eviction changes, and those that PreFilter left
        out."""
        found = np.zeros(self.nodes.n, dtype=np.bool_) if self.verdicts.considered is None else ~self.verdicts.considered
        for plugin in self.by_plugin:
            for reason, where in self.reasons(plugin):
                if not reason.resolvable:
                    found |= where
        return found


class Retrying:
    """Filters again with one thing changed. Nothing is booked, counted or cached."""

    def __init__(self, nodes: Snapshot, profile: Profile, rules: Rules) -> None:
        self._nodes, self._profile, self._rules = nodes, profile, rules

    def changed(self, pod: Pod) -> Bools:
        """Return the nodes that would take a changed pod."""
        return self._feasible(self._filtered(self._nodes.templates.view(pod), self._profile))

    def without(self, plugins: Collection[str], pod: PodView) -> tuple[Status | None, Bools]:
        """Return PreFilter's status and the feasible nodes for a profile without some of its plugins."""
        found = self._filtered(pod, profile_without(self._profile, plugins))
        return found.pre_filtered.status if found is not None else None, self._feasible(found)

    def _filtered(self, pod: PodView, profile: Profile) -> Filtered | None:
        state = CycleState()
        try:
            before = profile.pre_filter(pod, self._nodes, state)
            return filter_nodes(Question(pod, self._nodes, profile, self._rules), state, before)
        except SchedulerError:  # a changed pod may break a plugin that the real pod does not: no advice then
            return None

    def _feasible(self, found: Filtered | None) -> Bools:
        if found is None or found.feasible is None:
            return np.zeros(self._nodes.n, dtype=np.bool_)
        return found.feasible


@dataclass(frozen=True, slots=True)
class Ever:
    """Whether a pod would fit one of these nodes if all their pods were gone."""

    n_nodes: int
    n_large: int
    """Nodes that are large enough."""
    n_open: int
    """Those of them that refuse it only for reasons that evictions change, and not for a taint, selector or cordon."""

    @property
    def text(self) -> str:
        """Return the answer in a sentence."""
        if not self.n_nodes:
            return "not as long as there is no node"
        if not self.n_large:
            return f"never on these nodes: none of the {self.n_nodes} is large enough, even empty"
        large = f"{self.n_large} of {self.n_nodes} nodes {'is' if self.n_large == 1 else 'are'} large enough"
        if not self.n_open:
            return f"not on these nodes as they are: {large}, but something that no eviction changes keeps it off"
        return f"yes: {large}, {self.n_open} of them open to it once others make room"


def ever(obstacles: Obstacles) -> Ever:
    """Return whether the pod would fit one of the nodes if it were empty."""
    nodes = obstacles.nodes
    large = (nodes.allowed_pods > 0) & ~obstacles.too_small()
    return Ever(nodes.n, int(np.count_nonzero(large)), int(np.count_nonzero(large & ~obstacles.beyond_eviction())))


def suggest(made: Attempt, obstacles: Obstacles | None, again: Retrying | None = None) -> list[Advice]:
    """Return advice, what helps most nodes first; nothing if the pod was not refused."""
    if obstacles is None:
        status = made.pre_filtered.status if made.pre_filtered is not None else None
        return _refused_as_a_whole(made, status, again) if status is not None else []
    found: list[Advice] = []
    for name in obstacles.by_plugin:
        refused = obstacles.refused(name, again.changed if again is not None else None)
        plugin = obstacles.plugins.get(name)
        advice: list[Advice] = []
        if plugin is not None:
            try:
                advice = plugin.advise(refused)
            except Exception:  # a plugin's bug costs its own advice, and not the explanation
                log.exception("plugin %s cannot say what would help pod %s", plugin.name, refused.pod.key)
        found += advice or (_quoted(obstacles, name, refused.alone) if refused.alone.any() else [])
    if obstacles.by_plugin and all(each.rank == REMARK for each in found):
        found += _nearest_to_one(obstacles)
    return sorted(found, key=lambda each: (each.rank, -each.n_nodes))


def _refused_as_a_whole(made: Attempt, status: Status, again: Retrying | None) -> list[Advice]:
    """Return which plugins refuse the pod at PreFilter, before any node is filtered, and what the others would say."""
    if not status.plugin or again is None:
        return []
    who = {status.plugin: status.message}
    next_, fits = again.without(who, made.pod)
    # Each round drops one more plugin, so it ends. What is left over says how many nodes the other plugins would allow.
    while next_ is not None and next_.plugin:
        who[next_.plugin] = next_.message
        next_, fits = again.without(who, made.pod)
    n = int(np.count_nonzero(fits))
    names, reasons = " and ".join(who), ", ".join(dict.fromkeys(who.values()))
    others = f"; otherwise {would_take_it(n, first_names(made.nodes, fits))}" if n else ""
    return [
        Advice(
            "whole",
            f"{names} refuse{'s' if len(who) == 1 else ''} it wherever it would go: {reasons}{others}",
            names,
            n,
            change={"plugins": list(who)},
        )
    ]


def _quoted(obstacles: Obstacles, plugin: str, alone: Bools) -> list[Advice]:
    n, examples = int(np.count_nonzero(alone)), obstacles.examples(alone)
    text = f"if only {plugin} did not refuse, {would_take_it(n, examples)}; it says: {obstacles.says(plugin, alone)}"
    return [Advice("alone", text, plugin, n, examples)]


def _nearest_to_one(obstacles: Obstacles) -> list[Advice]:
    """Return the smallest set of plugins that together refuse most nodes, if no single change helps.

    Each node gets a number with one bit for each plugin that refuses it; the most frequent number with the fewest bits wins.
    """
    plugins = list(obstacles.by_plugin)[:_MOST_COLUMNS]
    codes = np.zeros(obstacles.nodes.n, dtype=np.int64)
    for bit, plugin in enumerate(plugins):
        codes |= obstacles.by_plugin[plugin].astype(np.int64) << bit
    large = ~obstacles.too_small()  # a node that is too small stays so, whatever changes
    large = large if large.any() else ~large
    fewest = int(obstacles.n_refusing[large].min())
    sets, counts = np.unique(codes[large & (obstacles.n_refusing == fewest)], return_counts=True)
    chosen = int(sets[int(counts.argmax())])
    who = [plugin for bit, plugin in enumerate(plugins) if chosen >> bit & 1]
    rows = (codes == chosen) & large
    n, examples = int(counts.max()), obstacles.examples(rows)
    quotes = "; ".join(f"{plugin} says: {obstacles.says(plugin, rows)}" for plugin in who)
    text = f"no single change helps; if neither {' nor '.join(who)} refused, {would_take_it(n, examples)}; {quotes}"
    return [Advice("together", text, " and ".join(who), n, examples, {"plugins": who}, rank=AMOUNT)]
