"""Who stands between a pod and which nodes, one column a plugin.

In: an attempt whose filters have all judged all nodes. Out: for each plugin the nodes that it refuses, whoever else does,
and those that it alone refuses: they would take the pod if that one plugin did not mind. `suggestions` makes advice of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import numpy as np

from kubesched.errors import SchedulerError
from kubesched.kube.api import UNSCHEDULABLE_TAINT, Pod
from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot
from kubesched.scheduler.engine.deciding.all_nodes import Filtered, filter_nodes
from kubesched.scheduler.engine.deciding.attempt import Attempt, Question, Rules
from kubesched.scheduler.framework import CycleState, Plugin, Profile, Reason, Refused, Status, Verdicts, first_names
from kubesched.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kubesched.scheduler.plugins.taint_toleration import TaintToleration, untolerated


class Obstacles:
    """The refusals of an attempt by plugin."""

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
            # A cordon is also written as a taint. One act lifts both, so it counts as one obstacle.
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
        """Return the nodes that nobody but this plugin refuses."""
        column: Bools = self.by_plugin[plugin] & (self.n_refusing == 1)
        return column

    def owned(self, plugin: str) -> Bools:
        """Return the nodes whose refusal is counted as this plugin's: the first to refuse a node owns it."""
        numbers = [number for number, (name, _) in enumerate(self.verdicts.columns) if name == plugin]
        column: Bools = np.isin(self.verdicts.owner, numbers)
        return column if self.verdicts.considered is None else column & self.verdicts.considered

    def too_small(self) -> Bools:
        """Return the nodes that could not hold the pod even if they were empty, as the plugins say that judge size."""
        found = np.zeros(self.nodes.n, dtype=np.bool_)
        for name, plugin in self.plugins.items():
            for reason, where in self.reasons(name) if plugin.judges_size else ():
                if not reason.resolvable:
                    found |= where
        return found

    def reasons(self, plugin: str) -> list[tuple[Reason, Bools]]:
        """Return what a plugin says, and of which nodes; whoever else refuses them."""
        found: list[tuple[Reason, Bools]] = []
        for name, rejections in self.verdicts.columns:
            if name == plugin and rejections.bits is not None:
                found += [(reason, rejections.has(i)) for i, reason in enumerate(rejections.reasons)]
        return found

    def says(self, plugin: str, rows: Bools) -> str:
        """Return what a plugin says of some nodes, in its own words."""
        texts = dict.fromkeys(reason.text for reason, where in self.reasons(plugin) if (where & rows).any())
        return ", ".join(texts) or "not these nodes"

    def refused(self, plugin: str, decide: Callable[[Pod], Bools] | None = None) -> Refused:
        """Return what a plugin is asked for advice about."""
        rows, alone, owned = self.by_plugin[plugin], self.alone(plugin), self.owned(plugin)
        return Refused(plugin, self.pod, self.nodes, rows, alone, owned, self.reasons(plugin), decide)

    def examples(self, rows: Bools) -> tuple[str, ...]:
        """Return the names of the first of some nodes."""
        return first_names(self.nodes, rows)

    def beyond_eviction(self) -> Bools:
        """Return the nodes that some plugin refuses for a reason that no eviction changes, or that were left out."""
        found = np.zeros(self.nodes.n, dtype=np.bool_) if self.verdicts.considered is None else ~self.verdicts.considered
        for plugin in self.by_plugin:
            for reason, where in self.reasons(plugin):
                if not reason.resolvable:
                    found |= where
        return found


class Retrying:
    """Decides again with one thing changed; nothing is booked, counted or remembered."""

    def __init__(self, nodes: Snapshot, profile: Profile, rules: Rules) -> None:
        self._nodes, self._profile, self._rules = nodes, profile, rules

    def changed(self, pod: Pod) -> Bools:
        """Return the nodes that would take a changed pod."""
        return self._feasible(self._filtered(self._nodes.templates.view(pod), self._profile))

    def without(self, plugins: Collection[str], pod: PodView) -> tuple[Status | None, Bools]:
        """Return what PreFilter says of a pod in a profile that does without some plugins, and which nodes Filter leaves."""
        points = {
            point: tuple(entry for entry in entries if entry[0].name not in plugins)
            for point, entries in self._profile.points.items()
        }
        found = self._filtered(pod, Profile(self._profile.name, points, self._profile.percentage_of_nodes))
        return found.pre_filtered.status if found is not None else None, self._feasible(found)

    def _filtered(self, pod: PodView, profile: Profile) -> Filtered | None:
        state = CycleState()
        try:
            before = profile.pre_filter(pod, self._nodes, state)
            return filter_nodes(Question(pod, self._nodes, profile, self._rules), state, before)
        except SchedulerError:  # a changed pod may break a plugin that the real one does not: then it is no advice
            return None

    def _feasible(self, found: Filtered | None) -> Bools:
        if found is None or found.feasible is None:
            return np.zeros(self._nodes.n, dtype=np.bool_)
        return found.feasible
