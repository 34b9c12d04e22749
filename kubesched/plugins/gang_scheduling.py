"""GangScheduling: hold the pods of a gang until there are enough of them, and let none go before enough have a place.

A pod names its PodGroup in spec.schedulingGroup; the group's policy says how many pods are enough. The engine tries all
members in one turn (engine/group): there the Permit of this plugin is what says whether the group as a whole fits.
"""

from __future__ import annotations

from kubesched.api.pod import Pod
from kubesched.api.workload import PodGroup
from kubesched.cluster import GroupKey
from kubesched.framework import SUCCESS, Code, CycleState, Plugin, PodView, Status, failed, unresolvable
from kubesched.framework.grouping import GROUP_TURN, WORKLOAD, GroupTurn, workload_of
from kubesched.framework.wakeups import ADD, POD, POD_GROUP, on

WAITING_SECONDS = 5 * 60.0
TOO_FEW = unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
WAIT = Status(Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",))


class GangScheduling(Plugin):
    wakes_on = (on(POD, ADD, "sibling_came"), on(POD_GROUP, ADD, "group_came"))

    def pre_enqueue(self, pod: PodView) -> Status | None:
        """Hold a pod until its group is there and has pods enough, placed ones included."""
        key = workload_of(pod)
        if key is None:
            return None
        group = self._group(key)
        if group is None:
            return unresolvable(f'waiting for pods\'s pod group "{key.name}" to appear in scheduling queue')
        return None if self._has_enough(key, group) else TOO_FEW

    def permit(self, pod: PodView, node_name: str, state: CycleState) -> tuple[Status, float]:
        """Let a gang go when enough of its pods are booked, and hold each of them until then."""
        key = workload_of(pod)
        if key is None:
            return SUCCESS, 0.0
        group = self._group(key)
        if group is None:
            return failed(f'failed to get podGroup {key}: podgroup.scheduling.k8s.io "{key.name}" not found'), 0.0
        gang = group.spec.scheduling_policy.gang
        if gang is None:
            return SUCCESS, 0.0
        members = self.handle.groups.get(key)
        if members is None:
            return failed(f"pod group state not found for pod group {key}"), 0.0
        turn: GroupTurn = state.find(GROUP_TURN) or GroupTurn(key, False)
        if members.n_scheduled < gang.min_count:
            if not turn.is_rehearsal and not turn.has_called:
                # Those of this turn are on their way; the others cannot have become ready since it began.
                turn.has_called = True
                self.handle.activate([p for uid, p in members.unscheduled.items() if uid not in turn.uids])
            return WAIT, WAITING_SECONDS
        if not turn.is_rehearsal:
            for uid in members.assumed:
                waiting = self.handle.waiting.get(uid)
                if waiting is not None:
                    waiting.allow(self.name)
        return SUCCESS, 0.0

    def _has_enough(self, key: GroupKey, group: PodGroup) -> bool:
        """Return whether a group has pods enough, wherever they are."""
        gang, members = group.spec.scheduling_policy.gang, self.handle.groups.get(key)
        return gang is None or (members is not None and members.n_all >= gang.min_count)

    def _group(self, key: GroupKey) -> PodGroup | None:
        return self.handle.objects.get(PodGroup, key.name, key.namespace)

    # What may help

    def sibling_came(self, pod: PodView, old: Pod | None, new: Pod) -> bool:
        """Return whether a pod of the same group came. The reference looks no further and has every pod of the gang knock
        at its gate in vain with each one that comes; here they wait until there are enough."""
        mine, theirs = pod.pod.spec.scheduling_group, new.spec.scheduling_group
        if (
            mine is None
            or theirs is None
            or mine.pod_group_name != theirs.pod_group_name
            or new.metadata.namespace != pod.namespace
        ):
            return False
        key = GroupKey(WORKLOAD, pod.namespace, mine.pod_group_name)
        group = self._group(key)
        return group is None or self._has_enough(key, group)

    def group_came(self, pod: PodView, old: PodGroup | None, new: PodGroup) -> bool:
        """Return whether it is the pod's own group that came."""
        mine = pod.pod.spec.scheduling_group
        return mine is not None and new.metadata.name == mine.pod_group_name and new.metadata.namespace == pod.namespace
