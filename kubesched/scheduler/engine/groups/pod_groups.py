"""Pod groups: pods that are scheduled together or not at all.

    gather     a member was popped: take all other members out of the queue, wherever they wait
    rehearse   try them all, and take everything back (group.py; whole_group.py for 1.37)
    submit     all fit: book every member. Otherwise all fail, each with its message

The trial uses the store itself, and the loop is held while it runs: no other pod is decided, and no arrival applied, between
`rehearse` and `submit`. So a group that fitted in the trial fits when it is booked, and its members are booked on the nodes of
the trial without deciding again. Only evictions in the foreground come between the two, and then nothing is booked.

Groups come from two sides. A pod may name a PodGroup of scheduling.k8s.io; such a group also gets a condition in its status.
Or a plugin of the profile decides which pods belong together (`Plugin.group_of`, as Coscheduling does by label).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from kubesched.errors import PluginError
from kubesched.scheduler.cluster import GroupKey, GroupReader, PodView
from kubesched.scheduler.engine.arrivals.inbox import LoopCall
from kubesched.scheduler.engine.core import Core
from kubesched.scheduler.engine.deciding.failure import Failure, broken, explain
from kubesched.scheduler.engine.deciding.preemptor import Preemptor
from kubesched.scheduler.engine.groups.group import (
    SIBLING_BROKE,
    UNSCHEDULABLE,
    Fate,
    GroupActions,
    GroupCycle,
    Member,
    Rehearsal,
    Verdict,
)
from kubesched.scheduler.engine.groups.group_conditions import GroupConditions
from kubesched.scheduler.engine.groups.group_trial import StoreTrial
from kubesched.scheduler.engine.groups.whole_group import Branch, WholeGroupCycle
from kubesched.scheduler.engine.records.decision_recorder import Tried
from kubesched.scheduler.framework import (
    CLEAR,
    COMPOSITE,
    GROUP_TURN,
    WORKLOAD,
    Diagnosis,
    FailedGroup,
    GroupHierarchy,
    GroupTurn,
    Nomination,
    Plugin,
    Profile,
    Shortfall,
    workload_of,
)
from kubesched.scheduler.queue import QueuedPod

log = logging.getLogger(__name__)

NO_STATE = "error while retrieving pod group state: pod group state not found for pod group "
NOT_IN_PLACEMENTS = "workload aware preemption is not supported for pod groups with scheduling constraints"
WENT_WRONG = 'error in "{plugin}" PodGroupPostFilter plugins: {problem}'
GROUP_IS_GONE = 'failed to get pod group object: podgroup.scheduling.k8s.io "{}" not found'
NOBODY_PREEMPTS = "default preemption plugin is not registered, workload aware preemption is disabled"
LOWER = "PreemptLowerPriority"


@dataclass(slots=True)
class Gang:
    """A group that is being tried: its queued members in the order in which they are tried. `plugin` is the plugin that groups
    them; None for a group that pods name themselves."""

    key: GroupKey
    profile: Profile
    plugin: Plugin | None
    members: list[QueuedPod] = field(default_factory=list)
    root: Branch | None = None
    """The tree of groups, if the group is judged as a whole: itself, or its composite group. `key` is the root's then."""


def read_groups(core: Core) -> None:
    """Tell the store how to find a pod's group: from its spec, and from the plugins that group pods."""
    gatherers = {type(plugin): (profile, plugin) for profile in core.profiles.values() for plugin in profile.gatherers}
    readers: list[GroupReader] = [partial(_group_of, core, profile, plugin) for profile, plugin in gatherers.values()]
    if core.handle.gates.is_enabled("GenericWorkload"):
        readers.insert(0, workload_of)
    placed = (pod for pod in core.store.pods() if not core.store.is_assumed(pod.uid))  # a booking may be taken back
    core.store.groups.read_with(readers, placed)


def _group_of(core: Core, profile: Profile, plugin: Plugin, pod: PodView) -> GroupKey | None:
    """Return the group that a plugin puts a pod in; None if the plugin raises."""
    try:
        return profile.group_by(plugin, pod)
    except PluginError as error:
        explain(error, pod, core.observer)
        return None


class Gangs:
    """Gathers groups, tries them and acts on the result."""

    def __init__(self, core: Core, actions: GroupActions) -> None:
        handle, cycle = core.handle, GroupCycle(core, actions)
        self._core = core
        self._store = core.store
        self._groups = core.store.groups
        self._handle = handle
        self._observer = core.observer
        self._cycle = cycle
        self._actions = actions
        gates = handle.gates
        self._has_workloads = gates.is_enabled("GenericWorkload")
        self._has_placements = gates.is_enabled("TopologyAwareWorkloadScheduling")
        self._judges_whole = gates.behaviour.judges_groups_whole
        self._evicts_for_groups = gates.is_enabled("WorkloadAwarePreemption")
        self._has_policies = gates.is_enabled("PodGroupPreemptionPolicy")
        self._hierarchy = GroupHierarchy(handle.objects, has_composites=gates.is_enabled("CompositePodGroup"))
        self._conditions = GroupConditions(core)
        self._whole = WholeGroupCycle(core, cycle, has_placements=self._has_placements)

    @property
    def trying(self) -> QueuedPod | None:
        """Return the member that is being tried."""
        return self._cycle.trying

    def take_over(self, old: Gangs) -> None:
        """Keep the conditions that another engine wrote and that have not come back by the watch yet."""
        self._conditions.latest = old._conditions.latest

    # Gather

    def gather(self, queued: QueuedPod, profile: Profile) -> Gang | None:
        """Take all members of a popped pod's group out of the queue; None if it is in no group. If the members cannot be tried
        together they are failed here, and the gang has no members."""
        # A PodGroup that the pod names wins over the group of a plugin.
        plugin: Plugin | None = None
        key = workload_of(queued.view) if self._has_workloads else None
        if key is None:
            found = profile.group_of(queued.view)
            if found is None:
                return None
            plugin, key = found
        if plugin is None and (self._judges_whole or self._evicts_for_groups):
            return self._gather_whole(queued, key, profile)
        gang = Gang(key, profile, plugin)
        members = self._take_members(key, queued)
        self._fail_unknown(queued, key, members)
        if not members:
            return gang
        other = _other_scheduler([member.view for member in members])
        if other:
            self._fail_all(members, other)
        else:
            gang.members = self._worth_trying(members, queued)
        return gang

    def _fail_unknown(self, queued: QueuedPod, key: GroupKey, members: Sequence[QueuedPod]) -> None:
        """Fail a popped pod that is not among the members of its group: when it was added, the plugin answered otherwise, or
        raised. The group goes on without it, and it must not stay in flight."""
        if queued not in members:
            self._fail_all([queued], f"{NO_STATE}{key}")

    def _take_members(self, key: GroupKey, queued: QueuedPod) -> list[QueuedPod]:
        """Take the members of a group out of the queue, in the order in which they are tried."""
        group = self._groups.get(key)
        members = []
        for pod in list(group.unscheduled.values()) if group is not None else ():
            taken = queued if pod.uid == queued.view.uid else self._core.queue.take(pod)
            if taken is not None:
                members.append(taken)
        # Among equals the name decides. So it is the same member every time that finds no room.
        # 1.37 tries members with more attempts first, before it those that came first.
        if self._judges_whole:
            members.sort(key=lambda member: (-member.view.priority, -member.attempts, member.timestamp, member.key))
        else:
            members.sort(key=lambda member: (-member.view.priority, member.initial_attempt or 0.0, member.key))
        return members

    def _worth_trying(self, members: Iterable[QueuedPod], queued: QueuedPod) -> list[QueuedPod]:
        kept = []
        for member in members:
            # The popped member was checked when it was popped.
            if member is queued or self._actions.is_worth_trying(member.view):
                kept.append(member)
            else:
                self._core.queue.done(member.view.uid)
        return kept

    def _gather_whole(self, queued: QueuedPod, key: GroupKey, profile: Profile) -> Gang:
        """Take the members of a group, or of all groups below its root, and check that they can be tried together."""
        # A composite group stands above groups and other composite groups. Only the root is tried: a subtree that fits alone
        # may leave no room for its siblings.
        top = self._hierarchy.root(key) or key
        root = self._branch(top, queued)
        gang = Gang(top, profile, None, root=root)
        members = [member for leaf in root.leaves() for member in leaf.members]
        self._fail_unknown(queued, key, members)
        if not members:
            return gang
        problem = self._mismatch(root, members) if self._judges_whole else _other_scheduler([m.view for m in members])
        if problem:
            self._fail_all(members, problem)
            if self._judges_whole:
                broken = Rehearsal()
                broken.conclude(Verdict.ERROR, problem)
                self._write_conditions(gang, broken)
            return gang
        for leaf in root.leaves():
            leaf.members = self._worth_trying(leaf.members, queued)
        gang.members = [member for leaf in root.leaves() for member in leaf.members]
        return gang

    def _branch(self, key: GroupKey, queued: QueuedPod) -> Branch:
        if key.kind != COMPOSITE:
            return Branch(key, self._take_members(key, queued))
        return Branch(key, children=[self._branch(child, queued) for child in self._hierarchy.children(key)])

    def _mismatch(self, root: Branch, members: Iterable[QueuedPod]) -> str:
        """Return why the pods of a group, or of the groups below a root, cannot be tried together; empty if they can."""
        group = self._hierarchy.get(root.key)
        if group is None:
            return f'podgroup.scheduling.k8s.io "{root.key.name}" not found'
        pods = [member.view for member in members]
        for leaf in root.leaves():
            known = self._groups.get(leaf.key)
            pods += known.scheduled() if known is not None else ()
        other = _other_scheduler(pods)
        if other:
            return other
        # 1.37 refuses such a group as a whole. One order in the queue, and one preemption for all members, make sense only with
        # one priority and one policy.
        priority = group.spec.priority or 0
        policy = (group.spec.preemption_policy or LOWER) if self._has_policies else _policy(pods[0])
        whose = (
            "the same preemption policy as the pod group's preemption policy"
            if self._has_policies
            else "the same preemption policy"
        )
        for pod in pods:
            if pod.priority != priority:
                return (
                    "all pods in a single pod group should have the same priority as the pod group's priority, "
                    f"got {pod.priority} and {priority}"
                )
            if _policy(pod) != policy:
                return f"all pods in a single pod group should have {whose}, got {_policy(pod)} and {policy}"
        return ""

    def _fail_all(self, members: Iterable[QueuedPod], message: str) -> None:
        started = self._handle.clock.monotonic()
        for member in members:
            self._actions.fail(Tried(member, member.profile.profile, started), broken(message))

    # Try

    def rehearse(self, gang: Gang) -> Rehearsal:
        """Try the group, and look for pods to evict if it does not fit. Nothing is booked."""
        if not gang.members:
            return Rehearsal()
        started = self._handle.clock.monotonic()
        if gang.root is not None and self._judges_whole:
            rehearsal = self._whole.rehearse(gang.root, gang.profile)
        else:
            rehearsal = self._rehearse_members(gang)
        self._observer.group_decided(self._handle.clock.monotonic() - started)
        if gang.root is not None:
            # 1.36 calls PodGroupPostFilter also if members wait already because another plugin makes room for some of them.
            waits = not self._judges_whole and rehearsal.verdict is Verdict.WAITING
            if waits:
                rehearsal.nominations = _fitting(rehearsal)
            if waits or rehearsal.verdict is Verdict.UNSCHEDULABLE:
                self._seek_way_out(gang, gang.root, rehearsal)
        if gang.plugin is not None and rehearsal.verdict is Verdict.UNSCHEDULABLE:
            members = rehearsal.members.values()
            refused = [(m.queued.view, m.failure.message) for m in members if m.failure is not None and not m.has_place]
            shortfall = Shortfall(gang.key, [m.queued.view for m in members if m.has_place], refused)
            rehearsal.refusal = gang.profile.group_failed(gang.plugin, shortfall)
        return rehearsal

    def _rehearse_members(self, gang: Gang, *, asks_post_filter: bool = True) -> Rehearsal:
        key, members, profile = gang.key, gang.members, gang.profile
        if self._has_placements and gang.plugin is None:
            return self._cycle.rehearse_placements(key, members, profile, asks_post_filter=asks_post_filter)
        return self._cycle.rehearse(key, members, profile, asks_post_filter=asks_post_filter)

    def _seek_way_out(self, gang: Gang, root: Branch, rehearsal: Rehearsal) -> None:
        """Call PodGroupPostFilter, and keep the evictions that it proposes."""
        group = self._hierarchy.get(root.key)
        if not self._judges_whole and not gang.profile.pod_group_post_filters:
            rehearsal.reasons += (NOBODY_PREEMPTS,)
            return
        if group is None:  # it went after its pods were queued
            rehearsal.conclude(Verdict.ERROR, GROUP_IS_GONE.format(root.key.name))
            return
        constraints = group.spec.scheduling_constraints
        if not self._judges_whole and constraints is not None and constraints.topology:
            rehearsal.reasons += (NOT_IN_PLACEMENTS,)
            return
        # The plugin gets what PostFilter gets for a single pod, once for each member: its state after PreFilter and who refused
        # which nodes.
        tried = [part.members.values() for part in (rehearsal, *rehearsal.parts.values())]
        looked_at = [member for part in tried for member in part if member.tried is not None]
        states = {member.queued.view.uid: member.made.state for member in looked_at}
        diagnoses = {each.queued.view.uid: each.made.diagnosis for each in looked_at if each.made.diagnosis is not None}
        failed_group = FailedGroup(root.key, group, [member.view for member in gang.members], states, diagnoses)
        trial = StoreTrial(
            self._store,
            self._cycle,
            gang.profile,
            lambda: (
                self._whole.try_out(root, gang.profile)
                if self._judges_whole
                else self._rehearse_members(gang, asks_post_filter=False)
            ),
            stays=self._judges_whole,
        )
        found = gang.profile.pod_group_post_filter(failed_group, trial)
        rehearsal.preemption, rehearsal.follow_up = found.preemption, found.follow_up
        for each in (rehearsal, *rehearsal.parts.values()):
            if not found.status.is_success and not found.status.is_rejected:
                self._went_wrong(each, found.status.plugin, found.status.message)
                continue
            if found.status.is_success:
                each.verdict = Verdict.WAITING
                each.nominations = found.nominations if self._judges_whole else _fitting(each)
            if self._judges_whole:
                each.way_out.append(found.status.message)
            elif not found.status.is_success:
                each.reasons += (found.status.message,)  # in 1.36 members that were not tried get this message too

    def _lost(self, rehearsal: Rehearsal, problem: str) -> Rehearsal:
        """Return the result of a group after its evictions; `problem` says what went wrong."""
        if problem and rehearsal.preemption is not None:
            message = f"pod group preemption: {problem}" if self._judges_whole else problem
            for each in (rehearsal, *rehearsal.parts.values()):
                each.way_out.clear()
                self._went_wrong(each, rehearsal.preemption.plugin, message)
        return rehearsal

    def _went_wrong(self, rehearsal: Rehearsal, plugin: str, problem: str) -> None:
        """Conclude that a PodGroupPostFilter plugin failed. 1.36 calls one plugin only and gives the bare problem."""
        message = WENT_WRONG.format(plugin=plugin, problem=problem) if self._judges_whole else problem
        rehearsal.conclude(Verdict.ERROR, message)

    def broken(self, message: str) -> Rehearsal:
        """Return the result of a group in whose trial a plugin broke."""
        rehearsal = Rehearsal()
        rehearsal.conclude(Verdict.ERROR, SIBLING_BROKE + message)
        trying = self._cycle.trying
        if trying is not None:
            rehearsal.members[trying.view.uid] = Member(trying, Fate.BROKE, failure=broken(message))
        return rehearsal

    # Act

    def submit(self, gang: Gang, rehearsal: Rehearsal, started: float) -> None:
        """Book every member that fits if the group does, and fail the others. Evictions come first."""
        if not gang.members:
            return
        if rehearsal.follow_up is not None:
            self._core.spawn(rehearsal.follow_up())  # type: ignore[arg-type]
        if rehearsal.preemption is None:
            self._submit(gang, rehearsal, started)
            return
        group = self._hierarchy.get(gang.key)
        assert group is not None
        kind = "compositepodgroup" if gang.key.kind == COMPOSITE else "podgroup"
        pods = tuple(member.view for member in gang.members)
        name, priority = pods[0].pod.spec.scheduler_name, group.spec.priority or 0
        self._actions.evict(
            Preemptor(kind, group.metadata.uid, group.key, name, priority, pods),
            rehearsal.preemption,
            lambda problem: self._submit(gang, self._lost(rehearsal, problem), started),
        )

    def _submit(self, gang: Gang, rehearsal: Rehearsal, started: float) -> None:
        clock = self._handle.clock
        for leaf in gang.root.leaves() if gang.root is not None else (Branch(gang.key, gang.members),):
            self._submit_group(gang, leaf, rehearsal.part(leaf.key))
        if gang.root is not None and self._judges_whole and rehearsal.verdict is Verdict.SCHEDULED:
            # Enough members run now. The others are tried again at once, without waiting for an event.
            self._core.queue.activate([member.view for member in gang.members if not _is_booked(member, gang.root, rehearsal)])
        self._observer.group_ended(
            str(gang.key), rehearsal.verdict.value, gang.profile.name, len(gang.members), clock.monotonic() - started
        )
        if gang.key.kind in (WORKLOAD, COMPOSITE):
            self._write_conditions(gang, rehearsal)
        if rehearsal.refusal is not None and rehearsal.refusal.retry_after_seconds is not None:
            # `latest`, and through the inbox: the timer may fire after a reload, and must not touch the queue in the middle of
            # a round.
            again = LoopCall(lambda: self._core.latest.queue.activate([member.view for member in gang.members]))
            later = asyncio.get_running_loop().call_later
            later(rehearsal.refusal.retry_after_seconds, self._core.inbox.post, again)

    def _submit_group(self, gang: Gang, group: Branch, rehearsal: Rehearsal) -> None:
        """Book or fail the members of one pod group.

        Plugins see in the `GroupTurn` how many members are still to be booked: `to_come` counts down 2, 1, 0 while three of
        them are. So Coscheduling knows at Permit whether the group will be complete.
        """
        clock = self._handle.clock
        turn = GroupTurn(group.key, False, frozenset(queued.view.uid for queued in group.members))
        members = [(queued, rehearsal.members.get(queued.view.uid)) for queued in group.members]
        if rehearsal.verdict is Verdict.SCHEDULED:
            turn.to_come = sum(member is not None and member.fate is Fate.FITS for _, member in members)
        for queued, member in members:
            since = clock.monotonic() - (member.seconds if member is not None else 0.0)
            if member is None or member.tried is None:
                self._actions.fail(Tried(queued, gang.profile, since), _failure(gang, queued, member, rehearsal))
                continue
            tried = msgspec.structs.replace(member.tried, started=since)
            # The state of the trial is used again. Its GroupTurn was the trial's; Reserve and Permit must see the real one.
            if member.fate is Fate.FITS and rehearsal.verdict is Verdict.SCHEDULED:
                turn.to_come -= 1
                member.made.state.write(GROUP_TURN, turn)
                self._actions.book(tried, member.node_name)
                continue
            failure = _failure(gang, queued, member, rehearsal)
            # A plugin's group evicts only if all of it fits then. kube-scheduler evicts for each member at once.
            is_vain = member.fate is Fate.NEEDS_ROOM and gang.plugin is not None and rehearsal.verdict is not Verdict.WAITING
            if is_vain:
                self._actions.fail(tried, failure)
            else:
                self._actions.follow_up(tried, failure)

    def _write_conditions(self, gang: Gang, rehearsal: Rehearsal) -> None:
        for leaf in gang.root.leaves() if gang.root is not None else (Branch(gang.key),):
            self._conditions.tell(leaf.key, rehearsal.part(leaf.key))


def _is_booked(queued: QueuedPod, root: Branch, rehearsal: Rehearsal) -> bool:
    parts = (rehearsal.part(leaf.key) for leaf in root.leaves())
    found = ((part, part.members.get(queued.view.uid)) for part in parts)
    return any(member is not None and member.fate is Fate.FITS and part.verdict is Verdict.SCHEDULED for part, member in found)


def _failure(gang: Gang, queued: QueuedPod, member: Member | None, rehearsal: Rehearsal) -> Failure:
    """Return the failure of a member that is not booked: its message, the plugins it waits for, its nomination."""
    if rehearsal.verdict is Verdict.ERROR:
        own = member.failure if member is not None and member.fate is Fate.BROKE else None
        return broken(own.message if own is not None else rehearsal.message)
    if member is None:
        return Failure(rehearsal.message_for_untried, True, None, rehearsal.nominations.get(queued.view.uid))
    # Members of a plugin's group wait for events that the plugin declares. Members of a PodGroup name no plugin, as in
    # kube-scheduler: they are tried again after their backoff.
    diagnosis = Diagnosis(0, unschedulable_plugins={gang.plugin.name}) if gang.plugin is not None else None
    if gang.root is not None:
        return _failure_in_whole(member, rehearsal)
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


def _fitting(rehearsal: Rehearsal) -> dict[str, Nomination]:
    """Return the nodes of the members that fit without evictions, by uid."""
    members = rehearsal.members.items()
    return {uid: Nomination(member.node_name) for uid, member in members if member.fate is Fate.FITS}


def _failure_in_whole(member: Member, rehearsal: Rehearsal) -> Failure:
    """Return the failure of a member of a group that is judged, or for which pods are evicted, as a whole."""
    nomination = rehearsal.nominations.get(member.queued.view.uid)
    if member.has_place and rehearsal.verdict is not Verdict.WAITING:
        # Only 1.36 calls Permit in a rehearsal; its message goes to the member.
        return Failure(f"{UNSCHEDULABLE}, {member.permit or rehearsal.message}", True, None, CLEAR)
    if member.fate is Fate.FITS:
        return Failure(rehearsal.message, True, None, nomination)
    assert member.failure is not None
    own = member.failure
    return own if nomination is None else Failure(own.message, own.is_rejection, own.diagnosis, nomination)


def _other_scheduler(pods: Sequence[PodView]) -> str:
    """Return the error if pods of one group name several schedulers; otherwise an empty text."""
    names = [pod.pod.spec.scheduler_name for pod in pods]
    other = next((name for name in names if name != names[0]), None)
    if other is None:
        return ""
    return f'all pods in a single pod group should have the same .spec.schedulerName set, got: "{other}" and "{names[0]}"'


def _policy(pod: PodView) -> str:
    return pod.pod.spec.preemption_policy or LOWER
