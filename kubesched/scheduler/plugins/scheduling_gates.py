"""SchedulingGates: keep a pod out of the queue until all its scheduling gates are gone."""

from __future__ import annotations

from kubesched.kube.api import Pod
from kubesched.scheduler.framework import POD, Action, Plugin, PodView, Status, on, unresolvable


class SchedulingGates(Plugin):
    wakes_on = (on(POD, Action.POD_GATES_GONE, "is_itself", without_hints=0),)

    def pre_enqueue(self, pod: PodView) -> Status | None:
        gates = pod.pod.spec.scheduling_gates
        if not gates:
            return None
        return unresolvable(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")

    def is_itself(self, pod: PodView, old: Pod | None, new: Pod | None) -> bool:
        """Return whether the pod whose gates are gone is the one that waits."""
        return new is not None and new.metadata.uid == pod.uid
