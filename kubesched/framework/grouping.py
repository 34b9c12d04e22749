"""Pods that are tried together: the words that plugins and the engine share about pod groups.

A group is first rehearsed: every member is decided, booked, reserved and permitted against what the members before it
take, and everything is taken back. Only if the group as a whole has a place it is done for real. A plugin finds the
`GroupTurn` under `GROUP_TURN` in the state of a member and can tell the two apart: a rehearsal must leave no trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kubesched.cluster import GroupKey, Ints, PodView

WORKLOAD = "scheduling.k8s.io"
"""The kind of the groups that pods name in spec.schedulingGroup."""
GROUP_TURN = "kubesched/group-turn"


@dataclass(slots=True)
class GroupTurn:
    """One group's turn, and the uids of the members that take part in it. `to_come` counts those that have not been
    looked at yet; when the turn is over it is zero."""

    key: GroupKey
    is_rehearsal: bool
    uids: frozenset[str] = frozenset()
    to_come: int = 0
    has_called: bool = False
    """Whether the members that do not take part were called to come."""

    def clone(self) -> GroupTurn:
        """Return the same turn: what-ifs are part of it."""
        return self


@dataclass(frozen=True, slots=True)
class Placement:
    """Nodes on which a whole group may lie; `rows` None means all of them."""

    name: str
    rows: Ints | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A placement, and the members that found a node in it, with the node's name."""

    placement: Placement
    assignments: tuple[tuple[PodView, str], ...]


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why a group came to nothing: the members that would fit, and those that do not with what they were told."""

    key: GroupKey
    fitting: Sequence[PodView]
    refused: Sequence[tuple[PodView, str]]


@dataclass(frozen=True, slots=True)
class GroupRefusal:
    """What the members of a group that came to nothing are told: one text for those that would fit, and for each that
    does not, by uid, what is added to its own. The group is worth another try after `retry_after_seconds`, if given."""

    message: str
    additions: Mapping[str, str]
    retry_after_seconds: float | None = None


def workload_of(pod: PodView) -> GroupKey | None:
    """Return the pod group of scheduling.k8s.io that a pod names."""
    named = pod.pod.spec.scheduling_group
    if named is None or not named.pod_group_name:
        return None
    return GroupKey(WORKLOAD, pod.namespace, named.pod_group_name)
