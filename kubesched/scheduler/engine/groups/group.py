"""The trial of a pod group: would all of its members find nodes? It is called a rehearsal, because everything is taken back.

A gang of three must not take two nodes and wait for the third. So the members are first booked for trial, one after another,
each on top of those before it, and all bookings are taken back before the loop goes on:

    node a has 2 free CPUs, node b has 1; three members need 1 CPU each
    m1 -> a (assume, Reserve, Permit)    m2 -> a    m3 -> b    all fit: verdict SCHEDULED
    forget m3, m2, m1                    the store is as before
    now book m1, m2, m3 for good (pod_groups.py)

With 1 CPU less, m3 is refused and the verdict is UNSCHEDULABLE: nothing was taken. Bookings are made in the store itself, so
that every plugin sees the earlier members without code of its own.

With placements (topology constraints) the rehearsal is repeated on one set of nodes after another. Of the sets that hold the
group, the one with the best score wins.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np

from kubesched.scheduler.cluster import Bools, GroupKey, PodView, Snapshot
from kubesched.scheduler.engine.core import Core
from kubesched.scheduler.engine.deciding.attempt import Attempt
from kubesched.scheduler.engine.deciding.failure import Failure, broken, refusal, refused_on_node
from kubesched.scheduler.engine.deciding.preemptor import Preemptor
from kubesched.scheduler.engine.records.decision_recorder import Tried
from kubesched.scheduler.framework import (
    Code,
    CycleState,
    Failed,
    GroupRefusal,
    GroupTurn,
    Nomination,
    Placed,
    Placement,
    Preemption,
    Profile,
    Proposal,
    Status,
    Unschedulable,
)
from kubesched.scheduler.queue import QueuedPod

UNSCHEDULABLE = "pod group is unschedulable"
WAITS_FOR_ROOM = "pod group is waiting for preemption to complete"
SIBLING_BROKE = "failed to schedule other pod from a pod group: "


class Verdict(Enum):
    """The result for a group, in the words of the metrics."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    WAITING = "waiting_on_preemption"
    ERROR = "error"


class Fate(Enum):
    """The result for a member: it fits, it fits once its victims are gone, no node takes it, its attempt broke."""

    FITS = "fits"
    NEEDS_ROOM = "needs room"
    REFUSED = "refused"
    BROKE = "broke"


@dataclass(slots=True)
class Member:
    """One member in a rehearsal. `permit` is Permit's message if the member `waits` there; `failure` is why no node takes
    it."""

    queued: QueuedPod
    fate: Fate
    tried: Tried | None = None
    node_name: str = ""
    waits: bool = False
    permit: str = ""
    failure: Failure | None = None
    seconds: float = 0.0

    @property
    def made(self) -> Attempt:
        """Return the member's attempt. It has one unless the attempt broke."""
        assert self.tried is not None and self.tried.made is not None
        return self.tried.made

    @property
    def has_place(self) -> bool:
        """Return whether the member has a node, at once or after evictions."""
        return self.fate is Fate.FITS or self.fate is Fate.NEEDS_ROOM


@dataclass(slots=True)
class Rehearsal:
    """The result of a trial: for the group, and by uid for the members that were tried."""

    verdict: Verdict = Verdict.UNSCHEDULABLE
    error: str = UNSCHEDULABLE
    reasons: tuple[str, ...] = ()
    members: dict[str, Member] = field(default_factory=dict)
    refusal: GroupRefusal | None = None
    parts: dict[GroupKey, Rehearsal] = field(default_factory=dict)
    """For a composite group: the result of each group below it."""
    way_out: list[str] = field(default_factory=list)
    """Messages of PodGroupPostFilter. The groups below that fail together with this one share the list, so a message for one is
    in the conditions of all, as in kube-scheduler."""
    nominations: Mapping[str, Nomination] = field(default_factory=dict)
    preemption: Preemption | None = None
    follow_up: Callable[[], Awaitable[None]] | None = None

    @property
    def message_for_untried(self) -> str:
        """Return the message for a member that was not tried."""
        return ", ".join(text for text in (self.error, *self.reasons) if text)

    @property
    def message(self) -> str:
        """Return the message that users see."""
        return ", ".join((*(text for text in (self.error, *self.reasons) if text), *self.way_out))

    def part(self, key: GroupKey) -> Rehearsal:
        """Return the result of one pod group."""
        return self.parts.get(key, self)

    def conclude(self, verdict: Verdict, error: str = "", *reasons: str) -> None:
        """Set the result of the group."""
        self.verdict, self.error, self.reasons = verdict, error, reasons


class GroupActions(Protocol):
    """What groups need of `Attempts`, which tries single pods."""

    def is_worth_trying(self, pod: PodView) -> bool:
        """Return whether a pod still needs a node."""

    def try_pod(self, queued: QueuedPod, profile: Profile, started: float, within: Bools | None, turn: GroupTurn) -> Tried:
        """Find a node for a member, on all nodes or on those of `within`."""

    def book(self, tried: Tried, node_name: str) -> None:
        """Book a member for good. If that breaks, only this member fails."""

    def unreserve(self, profile: Profile, booked: PodView, node_name: str, state: CycleState) -> None:
        """Call Unreserve. A plugin that raises does not stop the others."""

    def evict(self, preemptor: Preemptor, preemption: Preemption, then: Callable[[str], None]) -> None:
        """Evict what PodGroupPostFilter proposed, then call `then` with what went wrong, or an empty text."""

    def follow_up(self, tried: Tried, failure: Failure) -> None:
        """Evict what PostFilter proposed, and let the member fail."""

    def fail(self, tried: Tried, failure: Failure) -> None:
        """End a member's attempt."""


class GroupCycle:
    """Tries groups, member by member."""

    def __init__(self, core: Core, actions: GroupActions) -> None:
        self._store = core.store
        self._clock = core.handle.clock
        self._random = core.handle.random
        self._nominations = core.queue.nominations
        self._actions = actions
        self.trying: QueuedPod | None = None
        """The member that is being tried. If a plugin breaks, it is this member's attempt that broke."""

    def rehearse(
        self,
        key: GroupKey,
        members: Sequence[QueuedPod],
        profile: Profile,
        placement: Placement | None = None,
        *,
        asks_post_filter: bool = True,
    ) -> Rehearsal:
        """Try all members one after another, on all nodes or on those of a placement."""
        within = mask_of(placement, self._store.snapshot())
        rehearsal = Rehearsal()
        uids = frozenset(queued.view.uid for queued in members)
        turn = GroupTurn(key, True, uids, len(members), asks_post_filter=asks_post_filter)
        needs_room = False
        # Each booking pushes its own undo on this stack. Leaving the block takes them back, the last one first.
        with ExitStack() as undoing:
            # Every member is tried, also after one was refused: a group may need only some of its members, and each refused
            # member gets a message of its own.
            for queued in members:
                self.trying = queued
                turn.to_come -= 1
                member = self.try_member(queued, profile, within, turn, undoing)
                rehearsal.members[queued.view.uid] = member
                if member.fate is Fate.BROKE:
                    assert member.failure is not None
                    rehearsal.conclude(Verdict.ERROR, SIBLING_BROKE + member.failure.message)
                    break
                needs_room = needs_room or member.fate is Fate.NEEDS_ROOM
                if member.has_place and not member.waits:
                    # One member that Permit allows is enough. As soon as one member needs evictions, the group does.
                    if needs_room:
                        rehearsal.conclude(Verdict.WAITING, UNSCHEDULABLE, WAITS_FOR_ROOM)
                    else:
                        rehearsal.conclude(Verdict.SCHEDULED)
        return rehearsal

    def rehearse_placements(
        self, key: GroupKey, members: Sequence[QueuedPod], profile: Profile, *, asks_post_filter: bool = True
    ) -> Rehearsal:
        """Try the group in each of its placements; return the rehearsal with the best score among those that hold the group."""
        self.trying = None
        found = profile.generate_placements(key, self._store.snapshot())
        if isinstance(found, Status):
            return concluded(found)
        first: Rehearsal | None = None
        kept: list[tuple[Placement, Rehearsal]] = []
        for placement in found:
            rehearsal = self.rehearse(key, members, profile, placement, asks_post_filter=asks_post_filter)
            if rehearsal.verdict is Verdict.ERROR:
                return rehearsal
            first = first or rehearsal
            # WAITING placements are kept too: the group fits there after evictions.
            if rehearsal.verdict is not Verdict.UNSCHEDULABLE:
                kept.append((placement, rehearsal))
        assert first is not None
        if not kept:
            text = f"0/{len(found)} placements are available, first placement status: {first.error or first.message}"
            first.conclude(Verdict.UNSCHEDULABLE, "", text)
            return first
        best = self.best(key, [(placement, list(rehearsal.members.values())) for placement, rehearsal in kept], profile)
        return concluded(best) if isinstance(best, Status) else kept[best][1]

    def best(self, key: GroupKey, tried: Sequence[tuple[Placement, Sequence[Member]]], profile: Profile) -> int | Status:
        """Return the index of the placement with the best score, a random one among equals."""
        # A single placement wins without a score, as a single feasible node does.
        if len(tried) == 1:
            return 0
        self.trying = None
        proposals = [
            Proposal(placement, tuple((member.queued.view, member.node_name) for member in members if member.node_name))
            for placement, members in tried
        ]
        totals = profile.score_placements(key, proposals, self._store.snapshot())
        if isinstance(totals, Status):
            return totals
        best = [i for i, total in enumerate(totals) if total == max(totals)]
        return best[self._random.randrange(len(best))]

    def try_member(
        self, queued: QueuedPod, profile: Profile, within: Bools | None, turn: GroupTurn, undoing: ExitStack
    ) -> Member:
        """Decide one member and book it. `undoing` takes the booking back."""
        self.trying = queued
        started = self._clock.monotonic()
        tried = self._actions.try_pod(queued, profile, started, within, turn)
        assert tried.made is not None
        decision = tried.made.decision
        if isinstance(decision, Placed):
            member = Member(queued, Fate.FITS, tried, decision.node_name)
        elif isinstance(decision, Unschedulable):
            # PostFilter nominates a node only if evictions would make room there. Then the member has a place, later.
            nominated = decision.nomination.node_name if decision.nomination is not None else ""
            fate = Fate.NEEDS_ROOM if nominated else Fate.REFUSED
            member = Member(queued, fate, tried, nominated, failure=refusal(decision))
        else:
            assert isinstance(decision, Failed)
            own = broken(decision.message, decision.nomination)
            return Member(queued, Fate.BROKE, tried, failure=own, seconds=self._clock.monotonic() - started)
        if member.has_place:
            status = self.book(member, profile, undoing, permits=turn.asks_permit)
            if status.code is Code.WAIT:
                member.waits, member.permit = True, status.message
            elif not status.is_success:
                fate = Fate.REFUSED if status.is_rejected else Fate.BROKE
                member = Member(queued, fate, tried, failure=refused_on_node(member.node_name, status))
        member.seconds = self._clock.monotonic() - started
        return member

    def book(self, member: Member, profile: Profile, undoing: ExitStack, *, permits: bool) -> Status:
        """Assume a member, run Reserve and with `permits` Permit. `undoing` takes this back with the bookings of the other
        members; if the member fails it is taken back at once."""
        view, state = member.queued.view, member.made.state
        booked = self._store.assume(member.made.pod_as_booked(member.node_name, self._store), member.node_name)
        self._nominations.drop(view.uid)
        with ExitStack() as own:
            # Callbacks run in reverse order: Unreserve, then forget. Both are pushed before Reserve runs, so that a Reserve
            # that raises is undone as well.
            own.callback(self._store.forget, view.uid)
            own.callback(self._actions.unreserve, profile, booked, member.node_name, state)
            status = profile.reserve(booked, member.node_name, state)
            if status.is_success and permits:
                status, _ = profile.permit(booked, member.node_name, state)
            if status.is_success or status.code is Code.WAIT:
                undoing.enter_context(own.pop_all())
        return status


def mask_of(placement: Placement | None, nodes: Snapshot) -> Bools | None:
    if placement is None or placement.rows is None:
        return None
    within: Bools = np.zeros(nodes.n, dtype=np.bool_)
    within[placement.rows] = True
    return within


def concluded(status: Status) -> Rehearsal:
    """Return the result of a group whose members were not tried at all."""
    rehearsal = Rehearsal()
    if status.is_rejected:
        rehearsal.conclude(Verdict.UNSCHEDULABLE, "", *status.reasons)
    else:
        rehearsal.conclude(Verdict.ERROR, status.message)
    return rehearsal
