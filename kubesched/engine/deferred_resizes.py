"""Running pods that are to grow and have no room for it: find out whom to evict beside them.

In: a pod with a node, whose condition PodResizePending says Deferred. Out: an attempt like any other, made on that node alone.
The node counts the pod with what it wants, so the pod is taken out of the store for as long as it is tried. Only what a resize
can change is asked: NodeResourcesFit, and DeferredPodScheduling whether evictions are wanted there. Nothing is ever bound,
nominated or told: the kubelet carries the resize out when there is room.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from kubesched.cluster import PodView, Store
from kubesched.engine.cycle import NO_NODES, Attempt, Rules, attempt
from kubesched.engine.failures import Failure, refusal, refused_on_node
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.profile import Profile
from kubesched.framework.verdicts import Diagnosis, Failed, Placed, Unschedulable

_ASKED = frozenset({"NodeResourcesFit", "DeferredPodScheduling", "DefaultPreemption"})
_POINTS = ("pre_filter", "filter", "post_filter")


class DeferredResizes:
    """Where such pods are tried."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._profiles: dict[str, tuple[Profile, Profile]] = {}

    def attempt(self, pod: PodView, profile: Profile, rules: Rules) -> Attempt:
        """Try a pod on its own node, as if it came there with what it wants to have."""
        placed = self._store.pod(pod.uid)
        with self._store.without([placed] if placed is not None else []):
            nodes = self._store.snapshot()
            row = nodes.row(pod.node_name)
            if row < 0:
                made = Attempt(pod, nodes, CycleState())
                made.decision = Unschedulable(pod, Diagnosis(0), None, NO_NODES)
                return made
            within = np.zeros(nodes.n, dtype=np.bool_)
            within[row] = True
            return attempt(pod, nodes, self._reduced(profile), replace(rules, extenders=None), None, within)

    def _reduced(self, profile: Profile) -> Profile:
        """Return a profile with those of its plugins that have to do with a resize."""
        known = self._profiles.get(profile.name)
        if known is None or known[0] is not profile:
            points = {
                point: [(plugin, weight) for plugin, weight in profile.points.get(point, ()) if plugin.name in _ASKED]
                for point in _POINTS
            }
            known = self._profiles[profile.name] = profile, Profile(profile.name, points)
        return known[1]

    def conclude(self, pod: PodView, made: Attempt, profile: Profile) -> Failure:
        """Return how the attempt ended: also if there is room, the pod waits, for the kubelet."""
        decision = made.decision
        if isinstance(decision, Placed):
            status, _ = profile.permit(pod, pod.node_name, made.state)
            failure = refused_on_node(pod.node_name, status)
        elif isinstance(decision, Unschedulable):
            failure = refusal(decision)
        else:
            assert isinstance(decision, Failed)
            failure = Failure(decision.message, False)
        return msgspec.structs.replace(failure, nomination=None, is_silent=True)
