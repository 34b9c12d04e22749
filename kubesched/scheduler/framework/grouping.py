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
    """One group's turn, and the uids of the members that take part in it. `to_come` counts those that have not been
    looked at yet; when the turn is over it is zero."""

    key: GroupKey
    is_rehearsal: bool
    uids: frozenset[str] = frozenset()
    to_come: int = 0
    has_called: bool = False
    """Whether the members that do not take part were called to come."""
    asks_permit: bool = True
    """Whether Permit says in the rehearsal if the group holds; otherwise that is left to PlacementFeasible."""
    asks_post_filter: bool = True
    """Whether PostFilter seeks a way out for single members; otherwise that is left to PodGroupPostFilter."""

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
class Progress:
    """How far a group's turn has come: how many members have a place, those placed before included, and how many have not been
    looked at yet. Of a group of groups its groups are counted."""

    scheduled: int
    remaining: int


@dataclass(frozen=True, slots=True)
class FailedGroup:
    """A group that came to nothing: its object, the members without a place, and by uid what plugins wrote down about each."""

    key: GroupKey
    group: PodGroup | CompositePodGroup
    members: Sequence[PodView]
    states: Mapping[str, CycleState]
    diagnoses: Mapping[str, Diagnosis] = field(default_factory=dict)
    """Why no node took them, of those that were refused."""

    @property
    def priority(self) -> int:
        """Return the group's priority."""
        return self.group.spec.priority or 0


class GroupTrial(Protocol):
    """What PodGroupPostFilter may try out: what would become of the group if pods were gone."""

    @property
    def nodes(self) -> Snapshot:
        """Return the cluster, as it is imagined just now."""
        ...

    def without(self, pods: Sequence[PodView]) -> AbstractContextManager[None]:
        """Let placed pods be gone for as long as the context lasts."""
        ...

    def rehearse(self) -> Status:
        """Try the whole group; return what came of it. If all is well, who went where is kept for `spare` and `nominations`."""
        ...

    def spare(self, pods: Sequence[PodView]) -> bool:
        """Let pods be back if the members can stay where they went beside them; return whether they can."""
        ...

    def nominations(self) -> dict[str, Nomination]:
        """Return where the members went, by uid."""
        ...


@dataclass(frozen=True, slots=True)
class GroupPostFiltered:
    """PodGroupPostFilter's answer: evict these pods, and nominate members, by uid. Carried out by the engine, as is
    `follow_up`."""

    status: Status
    nominations: Mapping[str, Nomination] = field(default_factory=dict)
    preemption: Preemption | None = None
    follow_up: Callable[[], Awaitable[None]] | None = None


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
