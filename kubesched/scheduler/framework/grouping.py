"""Values about pod groups that plugins and the engine share.

A group is scheduled in two steps. In the rehearsal each member is decided, assumed, reserved and permitted on top of the
members before it; then all of it is undone. Only if the whole group fits, the same is done for real. A plugin finds the
`GroupTurn` under `GROUP_TURN` in the state of a member, with `is_rehearsal`: a rehearsal must leave no trace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from kubesched.kube.api import CompositePodGroup, PodGroup
from kubesched.scheduler.cluster import GroupKey, Ints, PodView, Snapshot
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.preemption.preempting import Preemption
from kubesched.scheduler.framework.verdicts import Diagnosis, Nomination, Status

WORKLOAD = "scheduling.k8s.io"
"""The kind of the groups that pods name in spec.schedulingGroup."""
COMPOSITE = "scheduling.k8s.io/CompositePodGroup"
"""The kind of the groups that are made of groups."""
GROUP_TURN = "kubesched/group-turn"


@dataclass(slots=True)
class GroupTurn:
    """One attempt to place a group, with the uids of the members that take part. `to_come` counts the members that are still to
    be tried."""

    key: GroupKey
    is_rehearsal: bool
    uids: frozenset[str] = frozenset()
    to_come: int = 0
    has_called: bool = False
    """Whether members that do not take part were moved to the active queue."""
    asks_permit: bool = True
    """Whether Permit decides in the rehearsal if the group is complete; otherwise PlacementFeasible does."""
    asks_post_filter: bool = True
    """Whether PostFilter runs for single members; otherwise PodGroupPostFilter runs for the group."""

    def clone(self) -> GroupTurn:
        """Return the same value: a what-if belongs to the same attempt of the group."""
        return self


@dataclass(frozen=True, slots=True)
class Placement:
    """A set of nodes for a whole group; `rows` None means all nodes."""

    name: str
    rows: Ints | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A placement, with the members that found a node in it and the node's name."""

    placement: Placement
    assignments: tuple[tuple[PodView, str], ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """How many members have a node, including those placed before, and how many are still to be tried. For a group of groups,
    its groups are counted."""

    scheduled: int
    remaining: int


@dataclass(frozen=True, slots=True)
class FailedGroup:
    """A group that could not be placed: its object, the members without a node, and the state of each by uid."""

    key: GroupKey
    group: PodGroup | CompositePodGroup
    members: Sequence[PodView]
    states: Mapping[str, CycleState]
    diagnoses: Mapping[str, Diagnosis] = field(default_factory=dict)
    """The diagnoses of the members that no node takes."""

    @property
    def priority(self) -> int:
        """Return the group's priority."""
        return self.group.spec.priority or 0


class GroupTrial(Protocol):
    """A what-if for PodGroupPostFilter: could the group be placed without some pods?"""

    @property
    def nodes(self) -> Snapshot:
        """Return the cluster as it is in the what-if."""
        ...

    def without(self, pods: Sequence[PodView]) -> AbstractContextManager[None]:
        """Remove placed pods for the time of a `with` block."""
        ...

    def rehearse(self) -> Status:
        """Try the whole group and return the result. If it fits, the nodes of the members are kept for `spare` and
        `nominations`."""
        ...

    def spare(self, pods: Sequence[PodView]) -> bool:
        """Put removed pods back if all members can stay on their nodes beside them; return whether they can."""
        ...

    def nominations(self) -> dict[str, Nomination]:
        """Return the nodes of the members, by uid."""
        ...


@dataclass(frozen=True, slots=True)
class GroupPostFiltered:
    """PodGroupPostFilter's answer: pods to evict, and members to nominate, by uid. The engine carries it out, and
    `follow_up`."""

    status: Status
    nominations: Mapping[str, Nomination] = field(default_factory=dict)
    preemption: Preemption | None = None
    follow_up: Callable[[], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why a group could not be placed: the members that would fit, and those that do not, with their messages."""

    key: GroupKey
    fitting: Sequence[PodView]
    refused: Sequence[tuple[PodView, str]]


@dataclass(frozen=True, slots=True)
class GroupRefusal:
    """The messages for the members of a group that could not be placed: one for those that would fit, and by uid what is
    added to the message of each other one. The group is tried again after `retry_after_seconds`, if given."""

    message: str
    additions: Mapping[str, str]
    retry_after_seconds: float | None = None


def workload_of(pod: PodView) -> GroupKey | None:
    """Return the pod group that a pod names in spec.schedulingGroup."""
    named = pod.pod.spec.scheduling_group
    if named is None or not named.pod_group_name:
        return None
    return GroupKey(WORKLOAD, pod.namespace, named.pod_group_name)
