"""Filters called for what-if views, with as many rows at once as gives exact answers.

  a filter that reads one row alone      any number of rows at once
  a filter that counts pods (COUNTED)    any number of rows, if none of the pods that come or go changes its counters; then the
                                         answers that are known hold
  any other                              row by row, each row with counters of its own (`NodeTrial`)

Answers that no pod can change, as those about taints, are never computed again. Example: a pod with a zone spread constraint
wants to preempt. If the possible victims do not match its selector, 500 nodes are tried in a few calls. If they do, removing
one changes the count of its zone, and each node is tried alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass

import numpy as np

from kubesched.scheduler.cluster import Bools, Ints, PodTemplate, PodView, Snapshot
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.inputs import compares_nodes, follows_pods, is_counting, is_kept, kinds_of, own_inputs
from kubesched.scheduler.framework.nominated import NominatedAbove
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.preemption.whatif import WhatIf
from kubesched.scheduler.framework.runtime.blame import blamed, erred
from kubesched.scheduler.framework.runtime.lifting import NodeView, reasons_of
from kubesched.scheduler.framework.runtime.profile import Profile
from kubesched.scheduler.framework.verdicts import Reason, Rejections, Verdicts

Refused = tuple[str, tuple[Reason, ...]]
"""The plugin that refused a node, and why."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """A profile's filters, as far as an attempt does not skip them."""

    active: tuple[Plugin, ...]
    changing: tuple[Plugin, ...]
    counting: tuple[Plugin, ...]
    by_row: bool
    is_rows_only: bool


def _plan(profile: Profile, skipped: frozenset[str]) -> _Plan:
    plans: dict[frozenset[str], _Plan] = profile.kept.setdefault(__name__, {})
    plan = plans.get(skipped)
    if plan is None:
        active = tuple(p for p in profile.filters if p.name not in skipped)
        counting = tuple(p for p in profile.adjusting if p.name not in skipped)
        watched = {p for p in counting if is_counting(p)}
        plan = plans[skipped] = _Plan(
            active=active,
            changing=tuple(p for p in active if follows_pods(p)),
            counting=counting,
            by_row=any(not is_kept(p) and p not in watched for p in active) or any(p not in watched for p in counting),
            is_rows_only=not counting and all(is_kept(p) and not compares_nodes(p) for p in active),
        )
    return plan


class WhatIfFilters:
    """The filters of a profile for what-ifs about one pod. `by_row`: every row must be tried alone. `known` are the verdicts on
    the rows as they are, if there are any."""

    __slots__ = ("_known", "_moved", "_plan", "by_row", "counting", "pod", "profile", "skipped", "state")

    def __init__(self, profile: Profile, pod: PodView, state: CycleState, known: Verdicts | None) -> None:
        self.profile = profile
        self.pod = pod
        self.state = state
        self.skipped = state.skip_filter
        self._plan = plan = _plan(profile, self.skipped)
        self.by_row = plan.by_row
        self.counting = plan.counting
        self._known: dict[str, Rejections] = {}
        if known is not None and known.nodes.rows is None:
            for name, rejections in known.columns:
                self._known.setdefault(name, rejections)
        self._moved: dict[PodTemplate, bool] = {}

    def is_remembered(self, nodes: Snapshot) -> bool:
        """Return whether the answer for a row holds for every pod of the class until the row, or the pods nominated to it,
        change."""
        if not self._plan.is_rows_only:
            return False
        own = own_inputs(self.pod, nodes.objects)
        return all(is_kept(plugin, own) for plugin in self._plan.active)

    def versions(self, nodes: Snapshot) -> tuple[int, ...]:
        """Return the versions of the objects, other than nodes and pods, that the filters read."""
        return tuple([nodes.objects.version(kind) for plugin in self._plan.active for kind in kinds_of(plugin)])

    def is_moved_by(self, other: PodView, nodes: Snapshot) -> bool:
        """Return whether a pod of this template changes counters if it comes or goes."""
        if not self.counting:
            return False
        moved = self._moved.get(other.template)
        if moved is None:
            call, plugins = self.profile.call, {plugin.name: plugin for plugin in self.counting}
            moved = self._moved[other.template] = any(
                call("PreFilterExtensionAddPod", plugins.get(owner, self.counting[0]), counts.is_moved_by, other, nodes)
                for owner, counts in self.state.all_counts()
                if owner not in self.skipped
            )
        return moved

    def is_apart(self, rows: Ints, ahead: NominatedAbove, own_row: int, nodes: Snapshot) -> Bools:
        """Return the rows that must be tried alone because of the pods nominated to them."""
        if self.by_row:
            return np.ones(len(rows), dtype=np.bool_)
        apart: Bools = rows == own_row
        if self.pod.template.ports and ahead.with_ports:
            apart |= np.isin(rows, list(ahead.with_ports))
        if self.counting:
            moving = [row for row, pods in ahead.pods.items() if any(self.is_moved_by(other, nodes) for other in pods)]
            apart |= np.isin(rows, moving)
        return apart

    def filter(self, imagined: WhatIf) -> Verdicts:
        """Run the filters over rows."""
        return self._run(self._plan.active, imagined)

    def fits(self, imagined: WhatIf) -> Bools:
        """Return which rows pass, if they passed with fewer pods. Only filters that pods can change are called."""
        return self._run(self._plan.changing, imagined).feasible

    def _run(self, plugins: Iterable[Plugin], imagined: WhatIf) -> Verdicts:
        verdicts = Verdicts(imagined)
        for plugin in plugins:
            known = self._known_of(plugin, None)
            if known is None:
                rejections = self.profile.filter_one(plugin, self.pod, imagined, self.state)
            elif known.bits is None:
                continue
            else:
                assert imagined.rows is not None
                rejections = known.taken(imagined.rows)
            verdicts.add(plugin.name, rejections)
            if verdicts.error is not None:
                name, text = verdicts.error
                raise erred(name, "Filter", text, self.pod.key)
        return verdicts

    def refusal(self, imagined: WhatIf, state: CycleState | None = None) -> Refused | None:
        """Run the filters for a view of one node; return the first refusal. `state` has counters for this node alone, if
        any."""
        assert imagined.rows is not None
        node, row = NodeView(imagined, 0), imagined.rows.item(0)
        for plugin in self._plan.active:
            known = self._known_of(plugin, state)
            if known is not None:
                reasons = known.at(row)
            elif plugin.implements("filter_node") and plugin.name not in self.profile.unprepared["filter"]:
                # Without `Profile.call`: this is the innermost loop of preemption, where single plugins are not timed.
                try:
                    reasons = reasons_of(plugin, plugin.filter_node(self.pod, node, state or self.state))
                except BaseException as error:  # somebody else's code: whoever asks is not to blame for what it raises
                    raise blamed(error, plugin.name, "Filter", self.pod.key) from error
            else:
                rejections = self.profile.filter_one(plugin, self.pod, imagined, state or self.state)
                if rejections.errors:
                    raise erred(plugin.name, "Filter", next(iter(rejections.errors.values())), self.pod.key)
                reasons = rejections.at(0)
            if reasons:
                return plugin.name, reasons
        return None

    def _known_of(self, plugin: Plugin, state: CycleState | None) -> Rejections | None:
        """Return a plugin's answers on the rows as they are, if added and removed pods cannot change them: by its `depends_on`,
        and because it has no AddPod and RemovePod, as the plugins for disks and attached volumes have."""
        if state is None:
            stands = is_counting(plugin) or (is_kept(plugin) and not follows_pods(plugin))
        else:
            stands = is_kept(plugin) and not follows_pods(plugin) and plugin not in self.counting
        if stands:
            known = self._known.get(plugin.name)
            if known is not None and not known.errors:
                return known
        return None


class NodeTrial:
    """One node in a what-if: does the pod fit if some pods are removed and others added? If filters count pods, or write values
    that others read, the trial has its own copy of the state. Neither the cluster nor the attempt changes."""

    __slots__ = ("_node", "_nodes", "_row", "_state", "_what_if")

    def __init__(self, what_if: WhatIfFilters, nodes: Snapshot, row: int) -> None:
        self._what_if, self._nodes, self._row = what_if, nodes, row
        self._node = WhatIf.of(nodes, [row])
        self._state = what_if.state.clone() if what_if.counting or what_if.by_row else None

    def move(self, other: PodView, sign: int, row: int | None = None) -> None:
        """Add (1) or remove (-1) a pod: here, or on another row, which changes only counters."""
        row = self._row if row is None else row
        if row == self._row:
            self._node.move(other, sign)
        if self._state is not None:
            self._what_if.profile.adjust(self._what_if.pod, other, row, sign, self._nodes, self._state)

    def refusal(self) -> Refused | None:
        """Return why the pod does not fit as it is now; None if it does."""
        return self._what_if.refusal(self._node, self._state)

    def refusal_beside(self, nominated: Iterable[PodView]) -> Refused | None:
        """Return why the pod does not fit beside other pods that may come; None if it does."""
        others = [other for other in nominated if other.uid != self._what_if.pod.uid]
        if not others:
            return None
        fuller = copy(self)
        fuller._node, fuller._state = self._node.take([0]), self._state.clone() if self._state is not None else None
        for other in others:
            fuller.move(other, 1)
        return fuller.refusal()
