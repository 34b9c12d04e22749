"""The trial of a pod group as 1.37 makes it: PlacementFeasible plugins judge the group as a whole, and composite groups too.

After each member PlacementFeasible says whether enough members can still find nodes. Example: a group needs 2 of its 3 members.

    start        0 scheduled, 3 remaining    Wait: go on
    m1 refused   0 scheduled, 2 remaining    Wait: 2 are still possible
    m2 refused   0 scheduled, 1 remaining    Unschedulable: m3 is not tried

The same is asked about the groups of a composite group. A group with topology constraints is tried in one placement after
another, inside the placement of the group around it, and the best one wins. A group that fails takes its bookings back at
once, so that the next group has the room. A group that holds keeps them until the whole attempt is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from kubesched.scheduler.cluster import Bools, GroupKey
from kubesched.scheduler.engine.core import Core
from kubesched.scheduler.engine.groups.group import (
    SIBLING_BROKE,
    UNSCHEDULABLE,
    Fate,
    GroupCycle,
    Member,
    Rehearsal,
    Verdict,
    concluded,
    mask_of,
)
from kubesched.scheduler.framework import (
    COMPOSITE,
    NO_PLACEMENTS,
    Code,
    GroupTurn,
    Placement,
    Profile,
    Progress,
    Status,
    failed,
    unschedulable,
)
from kubesched.scheduler.queue import QueuedPod

NOT_JUDGED = "failed to evaluate placement feasibility: "
CHILD_BROKE = "composite pod group evaluation failed due to child error: "


@dataclass(slots=True)
class Branch:
    """A node in the tree of groups: a pod group with its queued members, or a composite group with its groups."""

    key: GroupKey
    members: list[QueuedPod] = field(default_factory=list)
    children: list[Branch] = field(default_factory=list)

    def leaves(self) -> Iterator[Branch]:
        """Yield the pod groups at and below this one."""
        if self.key.kind != COMPOSITE:
            yield self
        for child in self.children:
            yield from child.leaves()


class WholeGroupCycle:
    """Tries groups as a whole."""

    def __init__(self, core: Core, cycle: GroupCycle, *, has_placements: bool) -> None:
        self._store = core.store
        self._clock = core.handle.clock
        self._observer = core.observer
        self._cycle = cycle
        self._has_placements = has_placements

    def rehearse(self, root: Branch, profile: Profile) -> Rehearsal:
        """Try a group; nothing stays booked. If a composite group fails, all groups below it fail."""
        found = self.try_out(root, profile)
        _fail_below(root, found.parts, found)
        return found

    def try_out(self, root: Branch, profile: Profile) -> Rehearsal:
        """Try a group. For a composite group, `parts` has the result of each group below that was tried, on its own."""
        results: dict[GroupKey, Rehearsal] = {}
        # Groups that hold push their undo here, so that later groups see their bookings. Leaving the block takes all of them
        # back, the last one first.
        with ExitStack() as undoing:
            found = self._rehearse(root, profile, None, undoing, results)
        if found.verdict is Verdict.SCHEDULED and not _booked(root, found, results):
            found.conclude(Verdict.UNSCHEDULABLE, UNSCHEDULABLE)  # enough members ran before, and no new one found a node
        found.parts = {key: part for key, part in results.items() if key != root.key}
        return found

    def _rehearse(
        self, branch: Branch, profile: Profile, within: Bools | None, undoing: ExitStack, results: dict[GroupKey, Rehearsal]
    ) -> Rehearsal:
        if self._has_placements:
            found = self._in_placements(branch, profile, within, undoing, results)
        else:
            found = self._within(branch, profile, within, undoing, results)
        results[branch.key] = found
        return found

    # On one set of nodes

    def _within(
        self, branch: Branch, profile: Profile, within: Bools | None, undoing: ExitStack, results: dict[GroupKey, Rehearsal]
    ) -> Rehearsal:
        """Try a group on some nodes. If it holds, `undoing` takes its bookings back later; if not, they are taken back now."""
        with ExitStack() as own:
            if branch.key.kind == COMPOSITE:
                found = self._try_groups(branch, profile, within, own, results)
            else:
                found = self._try_members(branch, profile, within, own)
            # `pop_all` moves the undo of all members to the caller. Without it `own` takes the bookings back here, and the next
            # group, or placement, has the room.
            if found.verdict is Verdict.SCHEDULED:
                undoing.enter_context(own.pop_all())
        return found

    def _try_members(self, branch: Branch, profile: Profile, within: Bools | None, undoing: ExitStack) -> Rehearsal:
        rehearsal = Rehearsal()
        group = self._store.groups.get(branch.key)
        # Asked before the first member: a group that runs already may be complete, and one with too few members can be refused
        # without trying any.
        progress = Progress(group.n_scheduled if group is not None else 0, len(branch.members))
        status = profile.placement_feasible(branch.key, progress)
        if not _goes_on(status):
            if status.code is Code.UNSCHEDULABLE:
                rehearsal.conclude(Verdict.UNSCHEDULABLE, UNSCHEDULABLE, *status.reasons)
            else:
                rehearsal.conclude(Verdict.ERROR, NOT_JUDGED + status.message)
            return rehearsal
        uids = frozenset(queued.view.uid for queued in branch.members)
        turn = GroupTurn(branch.key, True, uids, len(branch.members), asks_permit=False, asks_post_filter=False)
        for queued in branch.members:
            turn.to_come -= 1
            member = self._cycle.try_member(queued, profile, within, turn, undoing)
            rehearsal.members[queued.view.uid] = member
            if member.fate is Fate.BROKE:
                assert member.failure is not None
                rehearsal.conclude(Verdict.ERROR, SIBLING_BROKE + member.failure.message)
                return rehearsal
            progress = Progress(progress.scheduled + (member.fate is Fate.FITS), progress.remaining - 1)
            status = profile.placement_feasible(branch.key, progress)
            if not _goes_on(status):
                break
        _conclude(rehearsal, status)
        return rehearsal

    def _try_groups(
        self, branch: Branch, profile: Profile, within: Bools | None, undoing: ExitStack, results: dict[GroupKey, Rehearsal]
    ) -> Rehearsal:
        rehearsal = Rehearsal()
        progress = Progress(0, len(branch.children))
        status = profile.placement_feasible(branch.key, progress)
        if _goes_on(status):
            for child in branch.children:
                found = self._rehearse(child, profile, within, undoing, results)
                # Something broke below, so nothing is known about whether the others fit: the whole composite group fails with
                # an error and is tried again after its backoff.
                if found.verdict is Verdict.ERROR:
                    rehearsal.conclude(Verdict.ERROR, CHILD_BROKE + found.message)
                    return rehearsal
                is_placed = found.verdict is Verdict.SCHEDULED
                progress = Progress(progress.scheduled + is_placed, progress.remaining - 1)
                status = profile.placement_feasible(branch.key, progress)
                if not _goes_on(status):
                    break
        _conclude(rehearsal, status)
        return rehearsal

    # In one placement after another

    def _in_placements(
        self, branch: Branch, profile: Profile, within: Bools | None, undoing: ExitStack, results: dict[GroupKey, Rehearsal]
    ) -> Rehearsal:
        placements = self._placements(branch.key, profile, within)
        if isinstance(placements, Status):
            return concluded(placements)
        tried: list[tuple[Placement, Rehearsal, dict[GroupKey, Rehearsal]]] = []
        for placement, mask in placements:
            # Results of one placement. Those of the winner replace the caller's at the end; the others are dropped.
            below: dict[GroupKey, Rehearsal] = {}
            started = self._clock.monotonic()
            with ExitStack() as own:
                found = self._within(branch, profile, mask, own, below)
            if found.verdict is Verdict.ERROR:
                return found
            is_feasible = found.verdict is Verdict.SCHEDULED
            self._observer.placement_tried(is_feasible, profile.name, self._clock.monotonic() - started)
            tried.append((placement, found, below))
        fitting = [(placement, found, below) for placement, found, below in tried if found.verdict is Verdict.SCHEDULED]
        if not fitting:
            _, first, below = tried[0]
            text = f"0/{len(tried)} placements are available, first placement status: {first.error or first.message}"
            first.conclude(Verdict.UNSCHEDULABLE, UNSCHEDULABLE, text)
            results.update(below)
            return first
        members = [_booked(branch, found, below) for _, found, below in fitting]
        best = self._cycle.best(branch.key, [(one[0], members[at]) for at, one in enumerate(fitting)], profile)
        if isinstance(best, Status):
            return concluded(best)
        _, found, below = fitting[best]
        results.update(below)
        # Each placement was taken back before the next one was tried. The winner is booked once more, because groups that are
        # tried after this one must find its room taken.
        for member in members[best]:
            status = self._cycle.book(member, profile, undoing, permits=False)
            if not status.is_success:
                return concluded(failed(f"failed to assume the subtree: {status.message}"))
        return found

    def _placements(
        self, key: GroupKey, profile: Profile, within: Bools | None
    ) -> list[tuple[Placement, Bools | None]] | Status:
        """Return a group's placements, each without the nodes that the group around it may not use."""
        nodes = self._store.snapshot()
        found = profile.generate_placements(key, nodes)
        if isinstance(found, Status):
            return found
        masks = [(placement, mask_of(placement, nodes)) for placement in found]
        if within is None:
            return masks
        narrowed = [(placement.name, within if mask is None else within & mask) for placement, mask in masks]
        possible: list[tuple[Placement, Bools | None]]
        possible = [(Placement(name, np.flatnonzero(mask)), mask) for name, mask in narrowed if mask.any()]
        return possible or unschedulable(NO_PLACEMENTS)


def _goes_on(status: Status) -> bool:
    """Return whether to try the next member or group."""
    return status.is_success or status.code is Code.WAIT


def _conclude(rehearsal: Rehearsal, status: Status) -> None:
    """Set the result of a group from the last PlacementFeasible status."""
    if status.is_success:
        rehearsal.conclude(Verdict.SCHEDULED)
    elif status.code is Code.WAIT:
        rehearsal.conclude(Verdict.UNSCHEDULABLE, UNSCHEDULABLE, *status.reasons)
    elif status.code is Code.UNSCHEDULABLE:
        rehearsal.conclude(Verdict.UNSCHEDULABLE, "", *status.reasons)
    else:
        rehearsal.conclude(Verdict.ERROR, NOT_JUDGED + status.message)


def _booked(branch: Branch, found: Rehearsal, below: dict[GroupKey, Rehearsal]) -> list[Member]:
    """Return the members that fit, in groups that hold together with all groups around them."""
    if found.verdict is not Verdict.SCHEDULED:
        return []
    members = [member for member in found.members.values() if member.fate is Fate.FITS]
    for child in branch.children:
        if child.key in below:
            members += _booked(child, below[child.key], below)
    return members


def _fail_below(branch: Branch, results: dict[GroupKey, Rehearsal], above: Rehearsal) -> None:
    """Fail all groups below a failed one. A group that was not tried fails with the message of the one above."""
    for child in branch.children:
        found = results.get(child.key)
        if found is None or (above.verdict is not Verdict.SCHEDULED and found.verdict is Verdict.SCHEDULED):
            found = results[child.key] = Rehearsal(way_out=above.way_out)
            found.conclude(above.verdict, above.error, *above.reasons)
        _fail_below(child, results, found)
