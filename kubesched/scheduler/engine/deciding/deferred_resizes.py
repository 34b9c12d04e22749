"""Running pods that ask for more resources and find no room: find the pods to evict beside them.

In: a pod on a node, with the condition PodResizePending: Deferred. Out: an attempt like any other, on that node alone.
Nothing is ever bound or nominated: the kubelet resizes the pod when there is room.

The node counts the pod already, with the larger of what it asks for and what it has. So while it is tried, the pod is out of
the store, and a remnant stands in its place: a pod that uses what it has beyond what it asks for. Example: a pod has 2 CPUs and
1Gi and asks for 3 CPUs and 500Mi. The attempt asks whether 3 CPUs and 500Mi fit beside a remnant of 524Mi.

Only plugins that a resize can affect are called: NodeResourcesFit, and DeferredPodScheduling, which knows whether evictions are
wanted. NodeName leaves no other node and counts as a refusal, so that any new node wakes the pod, as in kube-scheduler.
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
        # The attempt runs inside this block, so the whole store is as imagined: filters, PostFilter's what-if and counters all
        # see the remnant. Both steps are undone before the loop goes on.
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
        # Kept quirk: kube-scheduler tries to assume the pod, which fails because the cache has it already. This error is what
        # brings the pod into backoff. It is silent: no event, no condition.
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
    # The pod's own priority: so preemption for the pod never chooses its own remnant as a victim.
    return Pod(metadata=meta, spec=PodSpec(containers=(container,), priority=pod.priority))
