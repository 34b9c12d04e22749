"""The trial that PodGroupPostFilter gets: would the group fit if some pods were gone?

    with trial.without([v1, v2, v3]):        all candidates for eviction are taken out of the store
        trial.rehearse()                     the group fits: members on nodes a and b
        trial.spare([v1])                    v1 is back on a: do the members stay where they are? yes, so v1 is no victim
        trial.spare([v2])                    no: v2 is taken out again, and will be evicted
    (the context ends)                       all pods are back

So as few pods as possible are evicted. All of it happens in the store, in one step of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np

from kubesched.scheduler.cluster import Aside, Bools, PodView, Snapshot, Store
from kubesched.scheduler.engine.groups.group import Fate, GroupCycle, Member, Rehearsal, Verdict
from kubesched.scheduler.framework import SUCCESS, Nomination, Profile, Status, WhatIfFilters, failed, unschedulable


class StoreTrial:
    """A `GroupTrial` in the store.

    With `stays` (1.37) the members keep their nodes while pods are spared; before 1.37 the whole group is tried again each
    time. In a composite group, members of a group that failed in the end keep their nodes too, even if others have taken them:
    a quirk of kube-scheduler that is kept.
    """

    def __init__(
        self, store: Store, cycle: GroupCycle, profile: Profile, rehearse: Callable[[], Rehearsal], *, stays: bool = True
    ) -> None:
        self._store = store
        self._cycle = cycle
        self._profile = profile
        self._rehearse = rehearse
        self._stays = stays
        self._aside: Aside | None = None
        self._placed: list[Member] = []
        self._are_local = True

    @property
    def nodes(self) -> Snapshot:
        """Return the cluster without the pods that are taken out."""
        return self._store.snapshot()

    @contextmanager
    def without(self, pods: Sequence[PodView]) -> Iterator[None]:
        """Take placed pods out of the store until the context ends."""
        with self._store.without(pods) as aside:
            self._aside = aside
            yield

    def rehearse(self) -> Status:
        """Try the whole group, and keep the members' nodes."""
        found = self._rehearse()
        if found.verdict is Verdict.ERROR:
            return failed(found.message)
        if found.verdict is not Verdict.SCHEDULED:
            return unschedulable(*(text for text in (found.error, *found.reasons) if text))
        parts = (found, *found.parts.values())
        self._placed = [member for part in parts for member in part.members.values() if member.fate is Fate.FITS]
        are_together = all(part.verdict is Verdict.SCHEDULED for part in parts)
        # If no member's filters count pods on other nodes, a pod that is put back on node a can disturb only members on a.
        # Otherwise (spread, affinity) all members are tried again for each pod.
        self._are_local = are_together and all(self._looks_at_own_node(member) for member in self._placed)
        return SUCCESS

    def _looks_at_own_node(self, member: Member) -> bool:
        """Return whether only pods on its own node matter for a member: no filter of it counts pods elsewhere."""
        what_if = WhatIfFilters(self._profile, member.queued.view, member.made.state, None)
        return what_if.is_remembered(member.made.nodes)

    def spare(self, pods: Sequence[PodView]) -> bool:
        """Put pods back if the group still fits; return whether it does. If not they are taken out again."""
        assert self._aside is not None
        for pod in pods:
            self._aside.give_back(pod)
        if not self._stays:
            if self.rehearse().is_success:
                return True
        else:
            names = {pod.node_name for pod in pods}
            if self._can_stay([member for member in self._placed if not self._are_local or member.node_name in names]):
                return True
        for pod in pods:
            self._aside.take(pod)
        return False

    def _can_stay(self, members: Sequence[Member]) -> bool:
        """Return whether members fit again, each on its own node, one after another."""
        nodes = self.nodes
        with ExitStack() as undoing:
            for member in members:
                turn = member.made.asked.turn
                assert turn is not None
                # `within` with this one node: the trial asks whether the member can stay, not whether it fits somewhere.
                only: Bools = np.zeros(nodes.n, dtype=np.bool_)
                only[nodes.row(member.node_name)] = True
                tried = self._cycle.try_member(member.queued, self._profile, only, turn, undoing)
                if tried.fate is not Fate.FITS:
                    return False
        return True

    def nominations(self) -> dict[str, Nomination]:
        """Return the members' nodes, by uid."""
        return {member.queued.view.uid: Nomination(member.node_name) for member in self._placed}
