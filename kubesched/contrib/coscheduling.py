"""Coscheduling: gangs of the scheduler-plugins project: minMember pods of a group are placed together, or none.

Pods have the label `scheduling.x-k8s.io/pod-group`; a PodGroup (scheduling.x-k8s.io/v1alpha1) of that name has minMember.
Configuration, objects and most texts are those of the project's plugin.

The project's plugin tries the members one by one, and holds each at Permit until the last one fits or a timeout ends. Two gangs
that need 9 of 10 nodes each may then hold 5 nodes each and wait for each other. Here the engine tries all members in one
attempt. If too few fit, none of them keeps a node. So the first gang gets all 9 nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kubesched.errors import SchedulerError
from kubesched.kube.api import COSCHEDULING_LABEL, COSCHEDULING_LABEL_OLD, CoschedulingPodGroup, Pod, parse_time, requests
from kubesched.kube.values import quantity
from kubesched.scheduler.cluster import Group, GroupKey
from kubesched.scheduler.config import Args, FieldError, Gates, Int64, Path, invalid
from kubesched.scheduler.framework import (
    ADD,
    GROUP_TURN,
    POD,
    SUCCESS,
    UPDATE,
    Code,
    CycleState,
    GroupRefusal,
    GroupTurn,
    Handle,
    Plugin,
    PodView,
    PreFilterAnswer,
    Shortfall,
    Snapshot,
    Status,
    failed,
    on,
    unresolvable,
    unschedulable,
)

KIND = "scheduling.x-k8s.io"
RESOURCE = "podgroups.v1alpha1.scheduling.x-k8s.io"
MOST_NAMES = 3
"""The number of members that a message names; the others are counted."""


class CoschedulingArgs(Args, frozen=True, rename="camel"):
    """The wait at Permit for groups without `scheduleTimeoutSeconds`, and the pause of a group after a failure."""

    permit_waiting_time_seconds: Int64 = 60
    pod_group_backoff_seconds: Int64 = 0

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        named = (
            ("permitWaitingTimeSeconds", self.permit_waiting_time_seconds),
            ("podGroupBackoffSeconds", self.pod_group_backoff_seconds),
        )
        below = [(name, value) for name, value in named if value < 0]
        return [invalid(path.child(name), value, "must be greater than or equal to 0") for name, value in below]


class Coscheduling(Plugin):
    """`_doomed` are members that were refused at Permit and not yet unreserved; `_resting` are groups in their pause."""

    Args = CoschedulingArgs
    wakes_on = (on(POD, ADD, "sibling_came", by_template=True), on(RESOURCE, ADD | UPDATE, "group_changed", by_template=True))

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args if isinstance(args, CoschedulingArgs) else CoschedulingArgs(), handle)
        self._doomed: dict[GroupKey, set[str]] = {}
        self._resting: dict[GroupKey, float] = {}

    def group_of(self, pod: PodView) -> GroupKey | None:
        """Return the group that the pod's label names."""
        name = pod.labels.get(COSCHEDULING_LABEL) or pod.labels.get(COSCHEDULING_LABEL_OLD)
        return GroupKey(KIND, pod.namespace, name) if name else None

    def sort_key(self, pod: PodView, queued_at: float) -> tuple[int, float, str]:
        """Order by priority; then the members of a group by its age, other pods by their own; then by name."""
        # Members of a group must be neighbours in the queue, so they sort by their group's age and not by their own.
        key = self.group_of(pod)
        group = self._object(key) if key is not None else None
        created = group.metadata.creation_timestamp if group is not None else None
        return -pod.priority, parse_time(created) if created else queued_at, pod.key

    # Is the group complete, and can it fit

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        """Refuse a member whose group has too few pods, needs more than is free, or is in its pause."""
        key = self.group_of(pod)
        group = self._object(key) if key is not None else None
        if key is None or group is None:
            return None
        if self._rests(key):
            return unresolvable(f"podGroup {key} failed recently")
        members, wanted = self.handle.groups.get(key) or Group(), group.spec.min_member
        if members.n_all < wanted:
            return unresolvable(
                f"pre-filter pod {pod.name} cannot find enough sibling pods, current pods number: "
                f"{members.n_all}, minMember of group: {wanted}"
            )
        if group.spec.min_resources and not members.n_scheduled:
            # For the first member only: later ones would find the nodes of the earlier ones taken.
            return self._gap(key, group, nodes)
        return None

    def _gap(self, key: GroupKey, group: CoschedulingPodGroup, nodes: Snapshot) -> Status | None:
        """Return a refusal with what is missing of minResources, and of pod slots, in the whole cluster; None if all is
        free."""
        missing, n_slots = [], group.spec.min_member
        # The whole cluster's free amounts, without regard to nodes: a quick answer "cannot fit" for a group that is far
        # too large. A node that is over its capacity counts as 0 and does not lower the sum.
        for name, text in group.spec.min_resources.items():
            try:
                wanted = requests.amounts({name: quantity.parse(text)}, pods=True).get(name, 0)
            except (SchedulerError, ValueError) as error:
                return failed(f"podGroup {key}: spec.minResources[{name}]: {error}")
            if name == requests.PODS:
                n_slots = max(n_slots, wanted)
                continue
            lacking = wanted - int(np.maximum(nodes.free(nodes.resource(name)), 0).sum())
            if lacking > 0:
                missing.append(f"{lacking}m cpu" if name == "cpu" else f"{lacking} {name}")
        slots = n_slots - int(np.maximum(nodes.allowed_pods - nodes.pod_count, 0).sum())
        if slots > 0:
            missing.append(f"{slots} pods")
        return unresolvable(f"podGroup {key} needs {', '.join(missing)} more than is free") if missing else None

    # All or none

    def reserve(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Do nothing. The plugin is at Reserve so that Unreserve is called."""
        return None

    def unreserve(self, pod: PodView, node_name: str, state: CycleState) -> None:
        """Refuse the waiting members if the group cannot reach minMember without this one."""
        turn: GroupTurn | None = state.find(GROUP_TURN)
        if turn is None or turn.is_rehearsal or turn.key.kind != KIND:
            return
        # This member was refused at Permit or lost its node. `left` is how many members still hold one; `to_come` are
        # those that the attempt of the group has not decided yet. If both together are too few, the others are released
        # now and need not wait for a timeout.
        doomed = self._doomed.get(turn.key, set())
        doomed.discard(pod.uid)
        if not doomed:
            self._doomed.pop(turn.key, None)
        members, group = self.handle.groups.get(turn.key), self._object(turn.key)
        if members is None:
            return
        left = members.n_scheduled - len(doomed) - (pod.uid in members.assumed)
        if group is None or left + turn.to_come < group.spec.min_member:
            message = f"podGroup {turn.key} cannot be completed: member {pod.name} lost its place on node {node_name}"
            self._give_up(turn.key, members, message, pod.uid)

    def permit(self, pod: PodView, node_name: str, state: CycleState) -> tuple[Status, float]:
        """Hold each member until minMember are assumed; then allow all of them."""
        key = self.group_of(pod)
        if key is None:
            return SUCCESS, 0.0
        group, members = self._object(key), self.handle.groups.get(key)
        if group is None or members is None:
            return unschedulable("PodGroup not found"), 0.0
        turn: GroupTurn | None = state.find(GROUP_TURN)
        is_real = turn is None or not turn.is_rehearsal
        # `doomed` members are refused already but still counted as scheduled until they are unreserved.
        wanted, doomed = group.spec.min_member, self._doomed.get(key, set())
        booked = members.n_scheduled - len(doomed)
        if booked >= wanted:
            if is_real:
                for uid in members.assumed:
                    waiting = self.handle.waiting.get(uid) if uid not in doomed else None
                    if waiting is not None:
                        waiting.allow(self.name)
            return SUCCESS, 0.0
        # Refused at once, rather than held, if the members still to come cannot make it. In a rehearsal it waits: the
        # engine counts.
        to_come = turn.to_come if turn is not None else 0
        if is_real and booked + to_come < wanted:
            return unschedulable(f"podGroup {key} cannot be completed: {booked} of {wanted} members have a place"), 0.0
        timeout = group.spec.schedule_timeout_seconds
        seconds = self.args.permit_waiting_time_seconds if timeout is None else timeout
        return Status(Code.WAIT, (f"waiting for {wanted - booked} more members of podGroup {key}",)), float(seconds)

    def _give_up(self, key: GroupKey, members: Group, message: str, leaving_out: str) -> None:
        # `reject` sends the member back to the queue through Unreserve, which removes it from `_doomed` again.
        for uid in members.assumed:
            waiting = self.handle.waiting.get(uid) if uid != leaving_out else None
            if waiting is not None and waiting.reject(self.name, message):
                self._doomed.setdefault(key, set()).add(uid)

    # Messages

    def group_failed(self, shortfall: Shortfall) -> GroupRefusal:
        """Return the message with the missing members and their reasons; start the group's pause, if it has one."""
        key = shortfall.key
        group, members = self._object(key), self.handle.groups.get(key) or Group()
        if group is None or members.n_all < group.spec.min_member:
            return GroupRefusal(f"podGroup {key} is not complete", {})
        now = self.handle.clock.monotonic()
        if self._rests(key):
            return GroupRefusal(f"podGroup {key} failed recently", {}, max(self._resting[key] - now, 0.0))
        seconds = self.args.pod_group_backoff_seconds
        if seconds:
            self._resting = {k: end for k, end in self._resting.items() if end > now}
            self._resting[key] = now + seconds
        # Example: podGroup default/train needs 8 members and 6 fit; train-6, train-7: 0/4 nodes are available: 4
        # Insufficient cpu
        fit = members.n_scheduled + len(shortfall.fitting)
        text = f"podGroup {key} needs {group.spec.min_member} members and {fit} fit"
        missing = [*_by_reason(shortfall), *_not_tried(shortfall, members)]
        additions = {
            pod.uid: f"PodGroup {key} gets rejected due to Pod {pod.name} is unschedulable even after PostFilter"
            for pod, _ in shortfall.refused
        }
        return GroupRefusal("; ".join((text, *missing)), additions, float(seconds) if seconds else None)

    def _rests(self, key: GroupKey) -> bool:
        return self.handle.clock.monotonic() < self._resting.get(key, 0.0)

    def _object(self, key: GroupKey | None) -> CoschedulingPodGroup | None:
        return self.handle.objects.get(CoschedulingPodGroup, key.name, key.namespace) if key is not None else None

    # Queueing hints

    def sibling_came(self, pod: PodView, old: Pod | None, new: Pod) -> bool:
        """Return whether a pod of the same group was added."""
        labels = new.metadata.labels or {}
        name = labels.get(COSCHEDULING_LABEL) or labels.get(COSCHEDULING_LABEL_OLD)
        return bool(name) and GroupKey(KIND, new.metadata.namespace, name or "") == self.group_of(pod)

    def group_changed(self, pod: PodView, old: CoschedulingPodGroup | None, new: CoschedulingPodGroup) -> bool:
        """Return whether the pod's own group is new or its spec changed."""
        if GroupKey(KIND, new.metadata.namespace, new.metadata.name) != self.group_of(pod):
            return False
        return old is None or old.spec != new.spec


def _by_reason(shortfall: Shortfall) -> list[str]:
    """Return the refused members by reason."""
    names: dict[str, list[str]] = {}
    for pod, message in shortfall.refused:
        names.setdefault(message.split(". ", 1)[0].rstrip("."), []).append(pod.name)
    return [f"{_listed(same)}: {reason}" for reason, same in names.items()]


def _not_tried(shortfall: Shortfall, members: Group) -> list[str]:
    """Return the members that were not tried: gated, or waiting for evictions."""
    tried = {pod.uid for pod in shortfall.fitting} | {pod.uid for pod, _ in shortfall.refused}
    names = [pod.name for uid, pod in members.unscheduled.items() if uid not in tried]
    return [f"{_listed(names)}: not ready to be tried"] if names else []


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:MOST_NAMES])
    return shown if len(names) <= MOST_NAMES else f"{shown} and {len(names) - MOST_NAMES} more"
