"""What a factory of predicates and priorities is given: the listers of then, and the metadata of an attempt.

In: the objects that the scheduler knows, and the nodes of the attempt at hand. Out: `PluginFactoryArgs`, to ask whenever a
function runs, and `Metadata`, which the functions of one attempt share: made by the producer that was registered, or ours, and
completed by the precomputations that were. Nothing here may be kept from one attempt to the next.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kubesched.kube.api.apps import ReplicaSet, StatefulSet
from kubesched.kube.api.core import ReplicationController, Service
from kubesched.kube.api.policy import PodDisruptionBudget
from kubesched.kube.api.requests import pod_requests
from kubesched.kube.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.scheduler.cluster import PodView, Snapshot
from kubesched.scheduler.framework import CycleState, NodeView
from kubesched.scheduler.framework.ports import Handle
from kubesched.scheduler.legacy.context import LegacyContext
from kubesched.scheduler.legacy.log_lines import say_precomputation

_KEY = "PredicateMetadata"


class PluginFactoryArgs:
    """The listers. Nodes and pods are those of the attempt at hand; before the first there are none."""

    def __init__(self, context: LegacyContext, handle: Handle) -> None:
        self.hard_pod_affinity_symmetric_weight = context.hard_pod_affinity_weight
        self._objects = handle.objects
        self._nodes: Snapshot | None = None

    def see(self, nodes: Snapshot) -> None:
        """Look at an attempt's nodes."""
        self._nodes = nodes.everything()

    def nodes(self) -> list[NodeView]:
        """Return all nodes."""
        return [NodeView(self._nodes, row) for row in range(self._nodes.n)] if self._nodes is not None else []

    def node_info(self, name: str) -> NodeView | None:
        """Return the node of a name."""
        return next((node for node in self.nodes() if node.name == name), None)

    def pods(self) -> Iterator[PodView]:
        """Yield all pods that have a node."""
        for node in self.nodes():
            yield from node.pods

    def services(self) -> list[Service]:
        """Return all services."""
        return list(self._objects.all(Service))

    def controllers(self) -> list[ReplicationController]:
        """Return all replication controllers."""
        return list(self._objects.all(ReplicationController))

    def replica_sets(self) -> list[ReplicaSet]:
        """Return all replica sets."""
        return list(self._objects.all(ReplicaSet))

    def stateful_sets(self) -> list[StatefulSet]:
        """Return all stateful sets."""
        return list(self._objects.all(StatefulSet))

    def pod_disruption_budgets(self) -> list[PodDisruptionBudget]:
        """Return all budgets."""
        return list(self._objects.all(PodDisruptionBudget))

    def persistent_volume(self, name: str) -> PersistentVolume | None:
        """Return a volume."""
        return self._objects.get(PersistentVolume, name)

    def persistent_volume_claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """Return a claim."""
        return self._objects.get(PersistentVolumeClaim, name, namespace)

    def storage_class(self, name: str) -> StorageClass | None:
        """Return a storage class."""
        return self._objects.get(StorageClass, name)


class Metadata:
    """What is known about a pod before any node is looked at; precomputations add attributes of their own."""

    def __init__(self, pod: PodView) -> None:
        containers = pod.pod.spec.containers
        self.pod = pod
        self.pod_best_effort = not any(c.resources.requests or c.resources.limits for c in containers)
        self.pod_request: Mapping[str, int] = pod_requests(pod.pod)
        self.pod_ports = frozenset(port.host_port for c in containers for port in c.ports if port.host_port)


MetadataProducer = Callable[[PodView, Sequence[NodeView]], Any]
MetadataProducerFactory = Callable[[PluginFactoryArgs], MetadataProducer]
Precomputation = Callable[[Any], None]


class MetadataSource:
    """Makes the metadata of attempts, once for each."""

    def __init__(
        self, args: PluginFactoryArgs, factory: MetadataProducerFactory | None, more: Mapping[str, Precomputation]
    ) -> None:
        self._args = args
        self._produce = factory(args) if factory is not None else None
        self._more = more

    def of(self, pod: PodView, state: CycleState) -> Any:
        """Return an attempt's metadata."""
        return state.get(_KEY, lambda: self._made(pod))

    def _made(self, pod: PodView) -> Any:
        made = self._produce(pod, self._args.nodes()) if self._produce is not None else Metadata(pod)
        for name, compute in self._more.items():
            say_precomputation(name)
            compute(made)
        return made


def takes_metadata(function: Callable[..., Any]) -> bool:
    """Return whether a function of then wants three things, pod, metadata and node, and not pod and node alone."""
    parameters = inspect.signature(function).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in positional for parameter in parameters) >= 3
