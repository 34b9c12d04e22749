"""Pods that are tried together: from a popped member to its group, and from a rehearsal to what is done about it.

In: a pod that the loop popped. Out: if it belongs to a group, all members that can be had, taken from wherever they
are queued; and after the rehearsal (engine/group) all of them booked, or all of them failed with what they are told.
Groups come from two sides: pods may name a PodGroup of scheduling.k8s.io, or a plugin of the profile says what belongs
together (Plugin.group_of). The first kind also gets its condition written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kubesched.api.meta import format_time
from kubesched.api.workload import PodGroup
from kubesched.cluster import GroupKey, Groups
from kubesched.engine.failures import SCHEDULER_ERROR, Failure, Spawn
from kubesched.engine.failures import UNSCHEDULABLE as UNSCHEDULABLE_REASON
from kubesched.engine.group import SIBLING_BROKE, UNSCHEDULABLE, Fate, GroupActions, GroupCycle, Member, Rehearsal, Verdict
from kubesched.engine.handle import EngineHandle
from kubesched.engine.inbox import Inbox, LoopCall
from kubesched.engine.observer import EngineObserver
from kubesched.errors import SchedulerError
from kubesched.framework.grouping import GROUP_TURN, WORKLOAD, GroupTurn, Shortfall, workload_of
from kubesched.framework.plugin import Plugin
from kubesched.framework.profile import Profile
from kubesched.framework.verdicts import CLEAR, Diagnosis, Nomination
from kubesched.queue import Queue
from kubesched.queue.queued import QueuedPod

log = logging.getLogger(__name__)

NO_STATE = "error while retrieving pod group state: pod group state not found for pod group "
SCHEDULED_CONDITION = "PodGroupScheduled"
SCHEDULED_REASON = "Scheduled"


@dataclass(slots=True)
class Gang:
    """A group whose turn it is: the members that could be had, in the order in which they are tried. `plugin` is the
    one that gathered them, None for a group that pods name themselves."""

    key: GroupKey
    profile: Profile
    plugin: Plugin | None
    members: list[QueuedPod] = field(default_factory=list)


class Gangs:
    """Gathers groups, has them rehearsed, and acts on it."""

    def __init__(
        self,
        groups: Groups,
        queue: Queue,
        handle: EngineHandle,
        inbox: Inbox,
        observer: EngineObserver,
        cycle: GroupCycle,
        actions: GroupActions,
        spawn: Spawn,
    ) -> None:
        self._groups = groups
        self._queue = queue
        self._handle = handle
        self._inbox = inbox
        self._observer = observer
        self._cycle = cycle
        self._actions = actions
        self._spawn = spawn
        self._has_workloads = handle.gates.is_enabled("GenericWorkload")
        self._has_placements = handle.gates.is_enabled("TopologyAwareWorkloadScheduling")

    @property
    def trying(self) -> QueuedPod | None:
        """Return the member that is being looked at."""
        return self._cycle.trying

    # From a pod to its group

    def gather(self, queued: QueuedPod, profile: Profile) -> Gang | None:
        """Take all members of a popped pod's group out of the queue; None if it belongs to none.

        A gang without members means that they have failed already.
        """
        plugin: Plugin | None = None
        key = workload_of(queued.view) if self._has_workloads else None
        if key is None:
            found = profile.group_of(queued.view)
            if found is None:
                return None
            plugin, key = found
        gang = Gang(key, profile, plugin)
        group = self._groups.get(key)
        if group is None:
            self._fail_all([queued], f"{NO_STATE}{key}")
            return gang
        members = [queued]
        for pod in list(group.unscheduled.values()):
            if pod.uid != queued.view.uid:
                taken = self._queue.take(pod)
                if taken is not None:
                    members.append(taken)
        # The name decides between equals, so that it is the same member every time that finds no room.
        members.sort(key=lambda member: (-member.view.priority, member.initial_attempt or 0.0, member.key))
        names = [member.view.pod.spec.scheduler_name for member in members]
        other = next((name for name in names if name != names[0]), None)
        if other is not None:
            self._fail_all(
                members,
                f'all pods in a single pod group should have the same .spec.schedulerName set, got: "{other}" and "{names[0]}"',
            )
            return gang
        for member in members:
            if member is queued or self._actions.is_worth_trying(member.view):
                gang.members.append(member)
            else:
                self._queue.done(member.view.uid)
        return gang

    def _fail_all(self, members: Iterable[QueuedPod], message: str) -> None:
        started = self._handle.clock.monotonic()
        for member in members:
            self._actions.fail(member, member.profile.profile, Failure(message, False, None, CLEAR), started)

    # From a group to a rehearsal

    def rehearse(self, gang: Gang) -> Rehearsal:
        """Find out what would become of the group."""
        if not gang.members:
            return Rehearsal()
        started = self._handle.clock.monotonic()
        if self._has_placements and gang.plugin is None:
            rehearsal = self._cycle.rehearse_placements(gang.key, gang.members, gang.profile)
        else:
            rehearsal = self._cycle.rehearse(gang.key, gang.members, gang.profile)
        self._observer.group_decided(self._handle.clock.monotonic() - started)
        if gang.plugin is not None and rehearsal.verdict is Verdict.UNSCHEDULABLE:
            members = rehearsal.members.values()
            refused = [(m.queued.view, m.failure.message) for m in members if m.failure is not None and not m.has_place]
            shortfall = Shortfall(gang.key, [m.queued.view for m in members if m.has_place], refused)
            rehearsal.refusal = gang.profile.group_failed(gang.plugin, shortfall)
        return rehearsal

    def broken(self, message: str) -> Rehearsal:
        """Return what it means for a group that a plugin broke at the member that was being looked at."""
        rehearsal = Rehearsal()
        rehearsal.conclude(Verdict.ERROR, SIBLING_BROKE + message)
        trying = self._cycle.trying
        if trying is not None:
            own = Failure(message, False, None, CLEAR)
            rehearsal.members[trying.view.uid] = Member(trying, Fate.BROKE, failure=own)
        return rehearsal

    # From a rehearsal to deeds

    def submit(self, gang: Gang, rehearsal: Rehearsal, started: float) -> None:
        """Book every member that has a place if the group has one; fail the others."""
        if not gang.members:
            return
        clock = self._handle.clock
        turn = GroupTurn(gang.key, False, frozenset(queued.view.uid for queued in gang.members))
        members = [(queued, rehearsal.members.get(queued.view.uid)) for queued in gang.members]
        if rehearsal.verdict is Verdict.SCHEDULED:
            turn.to_come = sum(member is not None and member.fate is Fate.FITS for _, member in members)
        for queued, member in members:
            since = clock.monotonic() - (member.seconds if member is not None else 0.0)
            if member is not None and member.made is not None and member.made.record is not None:
                member.made.record.group = str(gang.key)
            if member is not None and member.fate is Fate.FITS and rehearsal.verdict is Verdict.SCHEDULED:
                assert member.made is not None
                turn.to_come -= 1
                member.made.state.write(GROUP_TURN, turn)
                self._actions.book(queued, gang.profile, member.made, member.node_name, since)
            else:
                self._fail(gang, queued, member, rehearsal, since)
        self._observer.group_ended(
            str(gang.key), rehearsal.verdict.value, gang.profile.name, len(members), clock.monotonic() - started
        )
        if gang.key.kind == WORKLOAD:
            self._tell(gang.key, rehearsal)
        if rehearsal.refusal is not None and rehearsal.refusal.retry_after_seconds is not None:
            self._try_again(gang, rehearsal.refusal.retry_after_seconds)

    def _fail(self, gang: Gang, queued: QueuedPod, member: Member | None, rehearsal: Rehearsal, since: float) -> None:
        failure = _failure(gang, member, rehearsal)

        def fail(given: Failure) -> None:
            self._actions.fail(queued, gang.profile, given, since, member.made if member is not None else None)

        # A group that a plugin gathered evicts nobody unless all of it fits then; the reference does so at once.
        is_vain = (
            member is not None
            and member.fate is Fate.NEEDS_ROOM
            and gang.plugin is not None
            and rehearsal.verdict is not Verdict.WAITING
        )
        if member is None or member.made is None or is_vain:
            fail(failure)
        else:
            self._actions.follow_up(member.made, gang.profile, fail, failure)

    def _try_again(self, gang: Gang, seconds: float) -> None:
        pods = [member.view for member in gang.members]
        asyncio.get_running_loop().call_later(seconds, lambda: self._inbox.post(LoopCall(lambda: self._queue.activate(pods))))

    # The group's condition

    def _tell(self, key: GroupKey, rehearsal: Rehearsal) -> None:
        """Write what became of a group into its status, if that is news; one that was scheduled stays so."""
        group = self._handle.objects.get(PodGroup, key.name, key.namespace)
        if group is None:
            return
        if rehearsal.verdict is Verdict.SCHEDULED:
            says = ("True", SCHEDULED_REASON, "")
        elif rehearsal.verdict is Verdict.ERROR:
            says = ("False", SCHEDULER_ERROR, rehearsal.message)
        else:
            says = ("False", UNSCHEDULABLE_REASON, rehearsal.message)
        old = next((c for c in group.status.conditions if c.type == SCHEDULED_CONDITION), None)
        generation = group.metadata.generation or 0
        kept = None
        if old is not None:
            if old.status == "True" and says[0] != "True":
                return
            if (old.status, old.reason, old.message, old.observed_generation or 0) == (*says, generation):
                return
            kept = old.last_transition_time if old.status == says[0] else None
        status, reason, message = says
        condition: dict[str, Any] = {
            "type": SCHEDULED_CONDITION,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": kept or format_time(self._handle.clock.now()),
        }
        if generation:
            condition["observedGeneration"] = generation
        self._spawn(self._write(group, {"conditions": [condition]}))

    async def _write(self, group: PodGroup, status: dict[str, Any]) -> None:
        try:
            await self._handle.writer.patch_status(group, status)
        except SchedulerError as error:
            log.error("pod group %s: cannot write its status: %s", group.key, error)


def _failure(gang: Gang, member: Member | None, rehearsal: Rehearsal) -> Failure:
    """Return what a member that is not booked is told, and where it is nominated."""
    if rehearsal.verdict is Verdict.ERROR:
        own = member.failure if member is not None and member.fate is Fate.BROKE else None
        return Failure(own.message if own is not None else rehearsal.message, False, None, CLEAR)
    if member is None:
        return Failure(rehearsal.message, True)
    # Members of a plugin's group wait for what the others wait for. Those of the other kind carry no plugin's name, as
    # in the reference: they pause and are tried again.
    diagnosis = Diagnosis(0, unschedulable_plugins={gang.plugin.name}) if gang.plugin is not None else None
    if rehearsal.verdict is Verdict.WAITING:
        if member.fate is Fate.FITS:
            return Failure(rehearsal.message, True, diagnosis, Nomination(member.node_name))
    elif member.has_place:
        if rehearsal.refusal is not None:
            return Failure(rehearsal.refusal.message, True, diagnosis, CLEAR)
        return Failure(", ".join(text for text in (UNSCHEDULABLE, member.permit) if text), True, diagnosis, CLEAR)
    assert member.failure is not None
    addition = rehearsal.refusal.additions.get(member.queued.view.uid) if rehearsal.refusal is not None else None
    if addition:
        own = member.failure
        return Failure(f"{own.message} {addition}", own.is_rejection, own.diagnosis, own.nomination)
    return member.failure
