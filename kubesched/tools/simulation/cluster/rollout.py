"""Rollouts: the pods of a workload replaced by those of a new template, as a Deployment's RollingUpdate does it.

In: a workload, its new template, and how many pods may be too many (`maxSurge`) and missing (`maxUnavailable`) meanwhile.
Out: new pods as far as that allows, old ones evicted as new ones become ready. It goes on whenever a pod of the workload is
placed, becomes ready or ends; one that finds no place holds it up, as on a cluster.
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
        world: SimulatedCluster,
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
        """Prepare to replace `replicas` pods by such of `revision`, which `come` one by one; `at` enters what happens later."""
        self._world = world
        self._workload = workload
        self._revision = revision
        self._replicas = replicas
        self._most = replicas + surge
        self._fewest = replicas - (unavailable or (0 if surge else 1))
        self._ready_after = ready_after
        self._come = come
        self._at = at
        self._began = world.now
        self.is_over = False

    def begin(self) -> None:
        """Begin, and go on by itself."""
        self._world.tell("rolloutBegan", workload=self._workload, revision=self._revision)
        self._world.watchers.append(self._changed)
        self.go_on()

    def stop(self) -> None:
        """Leave the pods as they are: another rollout takes over."""
        if not self.is_over:
            self.is_over = True
            self._world.watchers.remove(self._changed)

    def go_on(self) -> None:
        """Let new pods come and old ones go, as far as may be."""
        if self.is_over:
            return
        alive = self._world.alive(self._workload)
        new = [record for record in alive if record.pod.metadata.labels.get(POD_TEMPLATE_HASH) == self._revision]
        old = [record for record in alive if record.pod.metadata.labels.get(POD_TEMPLATE_HASH) != self._revision]
        n_more = max(min(self._most - len(alive), self._replicas - len(new)), 0)
        for _ in range(n_more):
            self._come()
        n_ready_new = sum(map(self._is_ready, new))
        unready_old = [record for record in old if not self._is_ready(record)]
        ready_old = [record for record in old if self._is_ready(record)]
        n_going = max(len(alive) + n_more - self._fewest - (len(new) + n_more - n_ready_new), 0)
        going = unready_old[:n_going]  # those do no work: they go first
        n_spare = max(len(ready_old) + n_ready_new - self._fewest, 0)
        going += ready_old[: min(n_going - len(going), n_spare)]
        for record in going:
            self._world.evict(record, ROLLED_OUT)
        if not old and n_ready_new >= self._replicas:
            self.stop()
            self._world.count_rollout(self._workload, self._revision, self._world.now - self._began)

    def _is_ready(self, record: PodRecord) -> bool:
        if record.state != RUNNING:
            return False
        return record.placed is None or self._world.now >= record.placed + self._ready_after - 1e-9

    def _changed(self, record: PodRecord) -> None:
        if record.workload == self._workload:
            self._at(self._world.now + (self._ready_after if record.state == RUNNING else 0.0), self.go_on)
