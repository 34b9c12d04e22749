"""Rollouts: replace the pods of a workload by those of a new template, as a Deployment's RollingUpdate does.

In: a workload, its new template, `maxSurge` and `maxUnavailable`. Out: new pods, and evictions of old ones.

Example: 4 replicas, maxSurge 1, maxUnavailable 1. There may be 5 pods, and 3 must be ready. The rollout creates 1 new pod and
evicts 1 old one. When a new pod is ready, the next old one goes and the next new one comes, until all 4 are new. Each
placement, readiness and end of a pod of the workload continues the rollout. A new pod that stays pending blocks it, as on a
cluster.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.kube.values import POD_TEMPLATE_HASH
from kubesched.tools.simulation.cluster.simulated_cluster import SimulatedCluster
from kubesched.tools.simulation.pod_record import RUNNING, PodRecord

ROLLED_OUT = "rolledOut"


class RollingUpdate:
    """One rollout, from its beginning to its end."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        workload: str,
        revision: str,
        *,
        replicas: int,
        surge: int,
        unavailable: int,
        ready_after: float,
        come: Callable[[], None],
        at: Callable[[float, Callable[[], object]], None],
    ) -> None:
        """Prepare a rollout to `revision`. `come` creates one new pod; `at` schedules a call for a later time."""
        self._cluster = cluster
        self._workload = workload
        self._revision = revision
        self._replicas = replicas
        self._most = replicas + surge
        self._fewest = replicas - (unavailable or (0 if surge else 1))
        self._ready_after = ready_after
        self._come = come
        self._at = at
        self._began = cluster.now
        self.is_over = False

    def begin(self) -> None:
        """Start the rollout; it continues by itself."""
        self._cluster.tell("rolloutBegan", workload=self._workload, revision=self._revision)
        self._cluster.watchers.append(self._changed)
        self.go_on()

    def stop(self) -> None:
        """End the rollout and leave the pods as they are."""
        if not self.is_over:
            self.is_over = True
            self._cluster.watchers.remove(self._changed)

    def go_on(self) -> None:
        """Create new pods and evict old ones, as many as the limits allow now."""
        if self.is_over:
            return
        alive = self._cluster.alive(self._workload)
        new = [record for record in alive if record.pod.metadata.labels.get(POD_TEMPLATE_HASH) == self._revision]
        old = [record for record in alive if record.pod.metadata.labels.get(POD_TEMPLATE_HASH) != self._revision]
        n_more = max(min(self._most - len(alive), self._replicas - len(new)), 0)
        for _ in range(n_more):
            self._come()
        n_ready_new = sum(map(self._is_ready, new))
        unready_old = [record for record in old if not self._is_ready(record)]
        ready_old = [record for record in old if self._is_ready(record)]
        n_going = max(len(alive) + n_more - self._fewest - (len(new) + n_more - n_ready_new), 0)
        going = unready_old[:n_going]  # first: they serve nothing
        n_spare = max(len(ready_old) + n_ready_new - self._fewest, 0)
        going += ready_old[: min(n_going - len(going), n_spare)]
        for record in going:
            self._cluster.evict(record, ROLLED_OUT)
        if not old and n_ready_new >= self._replicas:
            self.stop()
            self._cluster.finish_rollout(self._workload, self._revision, self._cluster.now - self._began)

    def _is_ready(self, record: PodRecord) -> bool:
        if record.state != RUNNING:
            return False
        return record.placed is None or self._cluster.now >= record.placed + self._ready_after - 1e-9

    def _changed(self, record: PodRecord) -> None:
        if record.workload == self._workload:
            self._at(self._cluster.now + (self._ready_after if record.state == RUNNING else 0.0), self.go_on)
