"""What would become of a pod group if pods were gone: the trial that PodGroupPostFilter is given.

In: a group, and pods that are to be imagined away. Out: whether the group as a whole has a place then, where its members go,
and whether they can stay there when some of the pods are back. All of it happens in the store itself, within one turn of the
loop; when the context ends, everybody is back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np

from kubesched.scheduler.cluster import Aside, Bools, PodView, Snapshot, Store
from kubesched.scheduler.engine.groups.group import Fate, GroupCycle, Member, Rehearsal, Verdict
from kubesched.scheduler.framework import SUCCESS, Nomination, Profile, Status, WhatIfFilters, failed, unschedulable


class StoreTrial:
    """A `GroupTrial` in the store. `rehearse` tries the group, without changing anything for good. `stays`: members stay where
    they went first while pods are spared; before 1.37 the whole group is tried again beside them. In a group of groups those
    stay, too, that went somewhere with a group that failed in the end, as in the reference, even where others went since."""

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
        """Return the cluster, as it is imagined just now."""
        return self._store.snapshot()

    @contextmanager
    def without(self, pods: Sequence[PodView]) -> Iterator[None]:
        """Let placed pods be gone for as long as the context lasts."""
        with self._store.without(pods) as aside:
            self._aside = aside
            yield

    def rehearse(self) -> Status:
        """Try the whole group, and keep who went where."""
        found = self._rehearse()
        if found.verdict is Verdict.ERROR:
            return failed(found.message)
        if found.verdict is not Verdict.SCHEDULED:
            return unschedulable(*(text for text in (found.error, *found.reasons) if text))
        parts = (found, *found.parts.values())
        self._placed = [member for part in parts for member in part.members.values() if member.fate is Fate.FITS]
        are_together = all(part.verdict is Verdict.SCHEDULED for part in parts)
        self._are_local = are_together and all(self._looks_at_own_node(member) for member in self._placed)
        return SUCCESS

    def _looks_at_own_node(self, member: Member) -> bool:
        """Return whether pods on other nodes cannot drive a member from its node."""
        what_if = WhatIfFilters(self._profile, member.queued.view, member.made.state, None)
        return what_if.is_remembered(member.made.nodes)

    def spare(self, pods: Sequence[PodView]) -> bool:
        """Let pods be back if the members can stay beside them, or before 1.37 can be anywhere then."""
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
        """Try members again, each on its node, beside those before it."""
        nodes = self.nodes
        with ExitStack() as undoing:
            for member in members:
                turn = member.made.asked.turn
                assert turn is not None
                only: Bools = np.zeros(nodes.n, dtype=np.bool_)
                only[nodes.row(member.node_name)] = True
                tried = self._cycle.try_member(member.queued, self._profile, only, turn, undoing)
                if tried.fate is not Fate.FITS:
                    return False
        return True

    def nominations(self) -> dict[str, Nomination]:
        """Return where the members went, by uid."""
        return {member.queued.view.uid: Nomination(member.node_name) for member in self._placed}
