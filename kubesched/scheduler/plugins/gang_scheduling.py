"""GangScheduling: no pod of a gang is bound before enough of its pods have a node.

A pod names its PodGroup in `spec.schedulingGroup`; the group's gang policy has `minCount`. PreEnqueue gates the pods until
there are minCount of them. The engine then tries all members in one attempt (engine/groups/group). In 1.36 Permit says whether
enough are placed, and holds each pod until then; since 1.37 PlacementFeasible does.

    minCount 3, pods a, b, c, d, room for 2       PlacementFeasible after c: 2 scheduled, 1 remaining, 3 needed: WAIT
                                                  after d: 2 scheduled, 0 remaining: refused, nothing is bound

PodGroups may belong to a CompositePodGroup (framework/group_hierarchy): then minGroupCount of its groups must be ready.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.kube.api import GangSchedulingPolicy, Pod, PodGroup
from kubesched.scheduler.cluster import Group, GroupKey
from kubesched.scheduler.framework import (
    ADD,
    COMPOSITE,
    COMPOSITE_POD_GROUP,
    GROUP_TURN,
    POD,
    POD_GROUP,
    SUCCESS,
    UPDATE,
    WORKLOAD,
    AnyGroup,
    Code,
    CycleState,
    GroupHierarchy,
    GroupTurn,
    Handle,
    Plugin,
    PodView,
    Progress,
    Status,
    Wakeup,
    failed,
    on,
    unresolvable,
    unschedulable,
    workload_of,
)

WAITING_SECONDS = 5 * 60.0
TOO_FEW = unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
WAIT = Status(Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",))

Count = Callable[[Group], int]


class GangScheduling(Plugin):
    wakes_on = (on(POD, ADD, "sibling_came"), on(POD_GROUP, ADD, "group_came"))

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._hierarchy = GroupHierarchy(handle.objects, has_composites=handle.gates.is_enabled("CompositePodGroup"))

    def wakeups(self) -> tuple[Wakeup, ...]:
        """Return the events that may help; changed PodGroups since 1.37, composite groups behind their gate."""
        found: tuple[Wakeup, ...] = self.wakes_on
        if self.handle.gates.behaviour.judges_groups_whole:
            found += (on(POD_GROUP, UPDATE, "group_shrank"),)
        if self._hierarchy.has_composites:
            found += (on(COMPOSITE_POD_GROUP, ADD, "group_came"),)
        return found

    def pre_enqueue(self, pod: PodView) -> Status | None:
        """Gate a pod until its group exists and has enough pods, scheduled ones included."""
        key = workload_of(pod)
        if key is None:
            return None
        if self._hierarchy.get(key) is None:
            return unresolvable(f'waiting for pods\'s pod group "{key.name}" to appear in scheduling queue')
        # A member waits for the whole tree: with two PodGroups in a composite that needs both, the pods of the first
        # are gated until the second has enough too.
        root = self._hierarchy.root(key)
        if root is None:
            return unresolvable(f"failed to build hierarchy snapshot: {self._gap(key)}")
        if self._is_ready(root, lambda group: group.n_all):
            return None
        return TOO_FEW if root == key else unresolvable(_no_quorum(root))

    def permit(self, pod: PodView, node_name: str, state: CycleState) -> tuple[Status, float]:
        """Hold each pod of a gang until enough are assumed; then allow all of them."""
        key = workload_of(pod)
        if key is None:
            return SUCCESS, 0.0
        group = self._hierarchy.get(key)
        if group is None:
            return failed(f'failed to get podGroup {key}: podgroup.scheduling.k8s.io "{key.name}" not found'), 0.0
        # `turn` is the attempt of the group in which this pod is decided; a pod that comes alone has one of its own.
        root = self._hierarchy.root(key)
        if root is None:
            return failed(f"failed to build hierarchy snapshot: {self._gap(key)}"), 0.0
        # No gang policy (Basic): each pod is bound by itself.
        if root == key and group.spec.scheduling_policy.gang is None:
            return SUCCESS, 0.0
        if self.handle.groups.get(key) is None:
            return failed(f"pod group state not found for pod group {key}"), 0.0
        turn: GroupTurn = state.find(GROUP_TURN) or GroupTurn(key, False)
        members = self._hierarchy.members(root, self.handle.groups)
        if not self._is_ready(root, lambda group: group.n_scheduled):
            if not turn.is_rehearsal and not turn.has_called:
                # Once for each attempt of the group: activate the members that are not part of it.
                turn.has_called = True
                others = [p for each in members for uid, p in each.unscheduled.items() if uid not in turn.uids]
                self.handle.activate(others)
            return WAIT if root == key else Status(Code.WAIT, (_no_quorum(root),)), WAITING_SECONDS
        # Enough members have a node now: allow those that were held before. A rehearsal only asks, so it allows nobody.
        if not turn.is_rehearsal:
            for uid in (uid for each in members for uid in each.assumed):
                waiting = self.handle.waiting.get(uid)
                if waiting is not None:
                    waiting.allow(self.name)
        return SUCCESS, 0.0

    def placement_feasible(self, group: GroupKey, progress: Progress) -> Status | None:
        """Return None if enough pods are placed, WAIT if enough still can be, else a refusal."""
        found = self._hierarchy.get(group)
        if found is None:
            return failed(f'podgroup.scheduling.k8s.io "{group.name}" not found')
        #     minCount 4    2 scheduled, 1 remaining: refused, there can be 3 at most
        #                   2 scheduled, 3 remaining: WAIT      4 scheduled: None
        needed, scheduled, remaining = _needed(found), progress.scheduled, progress.remaining
        if scheduled + remaining < needed:
            return unschedulable(f"minCount ({needed}) cannot be satisfied: {scheduled} scheduled, {remaining} remaining")
        if scheduled < needed:
            text = f"minCount ({needed}) is not yet satisfied: {scheduled} scheduled, {remaining} remaining"
            return Status(Code.WAIT, (text,))
        return None

    def _is_ready(self, key: GroupKey, count: Count) -> bool:
        """Return whether a group has enough pods by `count`, or enough groups that are ready."""
        group = self._hierarchy.get(key)
        if group is None:
            return False
        # minGroupCount counts groups that are ready themselves; each may be composite again.
        if key.kind == COMPOSITE:
            n = sum(self._is_ready(child, count) for child in self._hierarchy.children(key))
        else:
            members = self.handle.groups.get(key)
            n = count(members) if members is not None else 0
            # Without composites a group that is no gang is ready even with no pod. In a tree it needs one pod
            # (`_needed`), or an empty group would count for its parent.
            if group.spec.scheduling_policy.gang is None and not self._hierarchy.has_composites:
                return True
        return n >= _needed(group)

    def _gap(self, key: GroupKey) -> str:
        """Return the error about the parent group that does not exist."""
        *_, (_, last) = self._hierarchy.upwards(key)
        missing = f"{key.namespace}/{last.spec.parent_composite_pod_group_name}"
        return f"composite pod group object not found in state for compositepodgroup/{missing}"

    # Queueing hints

    def sibling_came(self, pod: PodView, old: Pod | None, new: Pod) -> bool:
        """Return whether a pod of the same group was added and the group has enough pods now.

        kube-scheduler does not check the number here: it moves all pods of the gang with each new one, and PreEnqueue gates
        them again. The result is the same.
        """
        mine, theirs = workload_of(pod), new.spec.scheduling_group
        if mine is None or theirs is None:
            return False
        other = GroupKey(WORKLOAD, new.metadata.namespace, theirs.pod_group_name)
        if not self._belong_together(mine, other):
            return False
        root = self._hierarchy.root(mine)
        return root is None or self._is_ready(root, lambda group: group.n_all)

    def group_came(self, pod: PodView, old: AnyGroup | None, new: AnyGroup) -> bool:
        """Return whether the new group is the pod's own, or has the same root group."""
        mine, kind = workload_of(pod), WORKLOAD if isinstance(new, PodGroup) else COMPOSITE
        return mine is not None and self._belong_together(mine, GroupKey(kind, new.metadata.namespace, new.metadata.name))

    def group_shrank(self, pod: PodView, old: PodGroup, new: PodGroup) -> bool:
        """Return whether such a group needs fewer pods now."""
        before, after = old.spec.scheduling_policy.gang, new.spec.scheduling_policy.gang
        if before is None or after is None or after.min_count >= before.min_count:
            return False
        return self.group_came(pod, old, new)

    def _belong_together(self, mine: GroupKey, other: GroupKey) -> bool:
        if not self._hierarchy.has_composites:
            return mine == other
        root = self._hierarchy.root(mine)
        return root is not None and root == self._hierarchy.root(other)


def _needed(group: AnyGroup) -> int:
    """Return how many pods, or groups, a group needs."""
    gang = group.spec.scheduling_policy.gang
    if gang is None:
        return 1
    return gang.min_count if isinstance(gang, GangSchedulingPolicy) else gang.min_group_count


def _no_quorum(root: GroupKey) -> str:
    return f'waiting for composite pod group "{root.name}" tree to meet quorum'
