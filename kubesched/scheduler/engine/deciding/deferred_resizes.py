"""Running pods that are to grow and have no room for it: find out whom to evict beside them.

In: a pod with a node, whose condition PodResizePending says Deferred. Out: an attempt like any other, made on that node alone.
The node counts the pod already, with what it wants or, where that is more, with what it holds. So for as long as it is tried it
is out of the store, but for a remnant: one pod that uses what is held beyond what is wanted. Only what a resize can change is
asked: NodeResourcesFit, and DeferredPodScheduling whether evictions are wanted there. NodeName leaves no other node, and counts
as a refusal, so that any node that comes wakes the pod, as in the reference. Nothing is ever bound, nominated or told: the
kubelet carries the resize out when there is room.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import msgspec

from kubesched.kube.api import Container, ObjectMeta, Pod, PodSpec, Quantity, ResourceRequirements
from kubesched.kube.values import amount_text
from kubesched.scheduler.cluster import PodView, Store
from kubesched.scheduler.engine.deciding.attempt import Attempt, Rules
from kubesched.scheduler.engine.deciding.cycle import attempt
from kubesched.scheduler.engine.deciding.failure import Failure, refusal
from kubesched.scheduler.framework import Failed, Placed, Profile, Unschedulable

_ASKED = frozenset({"NodeName", "NodeResourcesFit", "DeferredPodScheduling", "DefaultPreemption"})
_POINTS = ("pre_filter", "filter", "post_filter")


class DeferredResizes:
    """Where such pods are tried."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._profiles: dict[str, tuple[Profile, Profile]] = {}

    def attempt(self, pod: PodView, profile: Profile, rules: Rules) -> Attempt:
        """Try a pod on its own node, as if it came there with what it wants to have."""
        with self._reduced_to_remnant(pod):
            return attempt(pod, self._store.snapshot(), self._reduced(profile), replace(rules, extenders=None))

    @contextmanager
    def _reduced_to_remnant(self, pod: PodView) -> Iterator[None]:
        """Let nothing be on the pod's node of it but the remnant. That one counts as a pod, as in the reference: on a node with
        as many pods as allowed there is no room to grow either."""
        placed = self._store.pod(pod.uid)
        if placed is None:
            yield
            return
        with self._store.without([placed]):
            self._store.assume(self._store.view(_remnant(pod, placed)), placed.node_name)
            try:
                yield
            finally:
                self._store.forget(pod.uid)

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

    def conclude(self, pod: PodView, made: Attempt) -> Failure:
        """Return how the attempt ended. If there is room, the pod waits for the kubelet: it pauses and is tried again, as in
        the reference, which fails to book a pod that is there and never comes to ask Permit."""
        decision = made.decision
        if isinstance(decision, Placed):
            failure = Failure(f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed", False)
        elif isinstance(decision, Unschedulable):
            failure = refusal(decision)
        else:
            assert isinstance(decision, Failed)
            failure = Failure(decision.message, False)
        return msgspec.structs.replace(failure, nomination=None, is_silent=True)


def _remnant(pod: PodView, placed: PodView) -> Pod:
    """Return a pod in the place of another that uses what it holds beyond what it wants, and that nobody below it evicts."""
    wanted = dict(pod.template.requested)
    names = pod.template.interners.resources.values
    beyond = {names[resource]: used - wanted.get(resource, 0) for resource, used in placed.template.usage}
    held: dict[str, Quantity] = {name: amount_text(name, amount) for name, amount in beyond.items() if amount > 0}
    meta = ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid)
    container = Container(resources=ResourceRequirements(requests=held))
    return Pod(metadata=meta, spec=PodSpec(containers=(container,), priority=pod.priority))
