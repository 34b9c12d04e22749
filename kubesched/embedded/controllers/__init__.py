"""The fake cluster around the API server: fake kubelets and the controllers that make manifests live.

    kubelets                      pods run, nodes report
    deployments, replicas, statefulsets, daemonsets, jobs, cronjobs
    disruption, quota_status      disruption budgets, what is used of quotas
    volumes, resource_claims      claims on volumes and devices
    services                      the pods behind a service, and its address from outside
    first_objects                 accounts, the `kubernetes` service, a storage class
    node_lifecycle, garbage_collector   what fails and what ends

Each is a reaction to changes in the store plus timers on its clock, so all of it also runs in virtual time. Nothing
here schedules: that is the scheduler's part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kubesched.embedded.controllers.first_objects import FirstObjects
from kubesched.embedded.controllers.garbage_collector import GarbageCollector
from kubesched.embedded.controllers.kubelets import Kubelets
from kubesched.embedded.controllers.node_lifecycle import NodeLifecycle
from kubesched.embedded.controllers.quota_status import QuotaStatus
from kubesched.embedded.controllers.resource_claims import ResourceClaimController
from kubesched.embedded.controllers.services import LoadBalancers, ServiceEndpoints
from kubesched.embedded.controllers.shared.context import INSTANT, ControllerContext, Pace
from kubesched.embedded.controllers.volumes import EphemeralVolumes, Volumes
from kubesched.embedded.controllers.workloads.cronjobs import CronJobs
from kubesched.embedded.controllers.workloads.daemonsets import DaemonSets
from kubesched.embedded.controllers.workloads.deployments import Deployments
from kubesched.embedded.controllers.workloads.disruption import DisruptionController
from kubesched.embedded.controllers.workloads.jobs import Jobs
from kubesched.embedded.controllers.workloads.replicas import ReplicaSets, ReplicationControllers
from kubesched.embedded.controllers.workloads.statefulsets import StatefulSets
from kubesched.embedded.store import ObjectStore

# In this order they start, so this is the order in which they hear of a change: the garbage collector is the last.
_CONTROLLERS = (
    *(Deployments, ReplicaSets, ReplicationControllers, StatefulSets, DaemonSets, Jobs, CronJobs, QuotaStatus),
    *(DisruptionController, ServiceEndpoints, LoadBalancers, Volumes, EphemeralVolumes, ResourceClaimController),
    *(NodeLifecycle, GarbageCollector),
)


class _Part(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


class Parts:
    """Some of the parts; they begin to work at `start`."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._parts = parts

    def start(self) -> None:
        """Begin to react; with a real clock this needs the running event loop."""
        for part in self._parts:
            part.start()

    def stop(self) -> None:
        """Stop reacting."""
        for part in self._parts:
            part.stop()


class FakeCluster(Parts):
    """All parts over one store."""

    def __init__(self, store: ObjectStore, pace: Pace | None = None, *, events: bool = True) -> None:
        """`events` off leaves out the Event objects, which large simulations do not want to keep."""
        context = ControllerContext(store, pace, events=events)
        self._store = store
        self.kubelets = Kubelets(context)
        super().__init__([FirstObjects(context), self.kubelets, *(controller(context) for controller in _CONTROLLERS)])

    def fail_node(self, name: str) -> None:
        """Stop the kubelet of a node: its lease expires, it is tainted, its pods are evicted."""
        self.kubelets.fail(name)

    def recover_node(self, name: str) -> None:
        """Start the kubelet of a node again."""
        self.kubelets.recover(name)

    def fail_pod(self, namespace: str, name: str, exit_code: int = 1, reason: str = "") -> None:
        """End the containers of a running pod with an exit code."""
        self.kubelets.end_pod(self._store.get("pods", name, namespace), exit_code, reason)


__all__ = ["INSTANT", "ControllerContext", "FakeCluster", "Pace", "Parts"]
