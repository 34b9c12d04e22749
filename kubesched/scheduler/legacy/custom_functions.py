"""Predicates and priorities that are registered as Python functions, as plugins.

    def fits(pod, node): return True or False or reasons           def fits(pod, metadata, node): ...
    def factory(args): services = args.services; return fits       args are listers: they answer for the current attempt

A factory is called once, when the scheduler is built. All functions of an attempt share its metadata: made by the registered
producer, or `Metadata`, then completed by the registered precomputations. Nothing is kept between attempts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kubesched.errors import PluginError
from kubesched.kube.api import (
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
    StorageClass,
    pod_requests,
)
from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot
from kubesched.scheduler.framework import CycleState, Handle, NodeView, Status, unschedulable
from kubesched.scheduler.legacy.predicates.base import Predicate
from kubesched.scheduler.legacy.predicates.conditions import is_unlisted
from kubesched.scheduler.legacy.priorities.base import Priority
from kubesched.scheduler.legacy.releases import LegacyContext
from kubesched.scheduler.legacy.wording import say_precomputation

_KEY = "PredicateMetadata"


class PluginFactoryArgs:
    """The listers for factories. Nodes and pods are those of the current attempt; before the first attempt there are none."""

    def __init__(self, context: LegacyContext, handle: Handle) -> None:
        self.hard_pod_affinity_symmetric_weight = context.hard_pod_affinity_weight
        self._objects = handle.objects
        self._nodes: Snapshot | None = None
        self._lists_ready_nodes = context.release.lists_ready_nodes

    def see(self, nodes: Snapshot) -> None:
        """Set the nodes of the current attempt."""
        self._nodes = nodes.everything()

    def nodes(self) -> list[NodeView]:
        """Return all nodes; up to 1.6 those that are ready and not cordoned."""
        return [view for view in self.all_nodes() if not (self._lists_ready_nodes and is_unlisted(view.node))]

    def all_nodes(self) -> list[NodeView]:
        """Return all nodes, ready or not."""
        return [NodeView(self._nodes, row) for row in range(self._nodes.n)] if self._nodes is not None else []

    def node_info(self, name: str) -> NodeView | None:
        """Return the node of a name, ready or not."""
        row = self._nodes.row(name) if self._nodes is not None else -1
        return NodeView(self._nodes, row) if self._nodes is not None and row >= 0 else None

    def pods(self) -> Iterator[PodView]:
        """Yield all pods that have a node."""
        for node in self.all_nodes():
            yield from node.pods

    def services(self) -> list[Service]:
        return list(self._objects.all(Service))

    def controllers(self) -> list[ReplicationController]:
        return list(self._objects.all(ReplicationController))

    def replica_sets(self) -> list[ReplicaSet]:
        return list(self._objects.all(ReplicaSet))

    def stateful_sets(self) -> list[StatefulSet]:
        return list(self._objects.all(StatefulSet))

    def pod_disruption_budgets(self) -> list[PodDisruptionBudget]:
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
    """The metadata of a pod in an attempt; precomputations add attributes."""

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
    """Makes the metadata, once for each attempt."""

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
        made = self._produce(pod, self._args.all_nodes()) if self._produce is not None else Metadata(pod)
        for name, compute in self._more.items():
            say_precomputation(name)
            compute(made)
        return made


def takes_metadata(function: Callable[..., Any]) -> bool:
    """Return whether a predicate function has three parameters (pod, metadata, node), not two (pod, node)."""
    parameters = inspect.signature(function).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in positional for parameter in parameters) >= 3


FitFunction = Callable[..., bool | str | Sequence[str]]
"""(pod, node) or (pod, metadata, node): True if the pod fits the node; False, or the reasons why it does not."""
FitFunctionFactory = Callable[[PluginFactoryArgs], FitFunction]
MapFunction = Callable[[PodView, NodeView], int]
ReduceFunction = Callable[[PodView, dict[str, int]], Mapping[str, int] | None]
"""(pod, score by node name) -> the final scores of these nodes; None if the function changed them in place"""
MapReduceFactory = Callable[[PluginFactoryArgs], tuple[MapFunction, ReduceFunction | None]]
ListFunction = Callable[[PodView, Sequence[NodeView]], Mapping[str, int]]
"""(pod, the nodes that fit) -> the score of each of them by name"""
ListFunctionFactory = Callable[[PluginFactoryArgs], ListFunction]


class FunctionPredicate(Predicate):
    """A predicate that calls a function for every node."""

    def __init__(
        self,
        context: LegacyContext,
        handle: Handle,
        factory: FitFunctionFactory,
        source: Callable[[PluginFactoryArgs], MetadataSource],
    ) -> None:
        super().__init__(context, handle)
        self._listers = PluginFactoryArgs(context, handle)
        self._function = factory(self._listers)
        self._metadata = source(self._listers) if takes_metadata(self._function) else None

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> None:
        self._listers.see(nodes)

    def filter_node(self, pod: PodView, node: NodeView, state: CycleState) -> Status | None:
        if self._metadata is None:
            answer = self._function(pod, node)
        else:
            answer = self._function(pod, self._metadata.of(pod, state), node)
        if answer is True:
            return None
        if answer is False:
            return unschedulable(self.name)
        reasons = [answer] if isinstance(answer, str) else answer
        if not isinstance(reasons, Sequence) or not all(isinstance(reason, str) for reason in reasons):
            raise PluginError(
                self.name,
                "Filter",
                f'running "{self.name}" filter plugin: expected True, False or reasons for node {node.name}, got {answer!r}',
                pod.key,
            )
        return unschedulable(*reasons) if reasons else None


class FunctionPriority(Priority):
    """A priority that calls a map function for every node, then a reduce function, if there is one, for all scores."""

    def __init__(self, context: LegacyContext, handle: Handle, factory: MapReduceFactory) -> None:
        super().__init__(context, handle)
        self._listers = PluginFactoryArgs(context, handle)
        self._map, self._reduce = factory(self._listers)

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> None:
        self._listers.see(nodes)

    def score_node(self, pod: PodView, node: NodeView, state: CycleState) -> int:
        answer = self._map(pod, node)
        if isinstance(answer, bool) or not isinstance(answer, int):
            raise _broken(self.name, pod, f"expected a whole number for node {node.name}, got {answer!r}")
        return answer

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        reduce = self._reduce
        if reduce is None:
            return scores
        rows = np.flatnonzero(feasible).tolist()
        given = {nodes.name(row): int(scores[row]) for row in rows}
        changed = reduce(pod, given)
        reduced = given if changed is None else changed
        return _column(self.name, pod, reduced, {nodes.name(row): row for row in rows}, len(scores))


class ListPriority(Priority):
    """A priority that calls one function for all feasible nodes: the form before map and reduce."""

    def __init__(self, context: LegacyContext, handle: Handle, factory: ListFunctionFactory) -> None:
        super().__init__(context, handle)
        self._listers = PluginFactoryArgs(context, handle)
        self._function = factory(self._listers)

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> None:
        self._listers.see(nodes)
        state.write(f"{self.name}.feasible", feasible)

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        fitting = [NodeView(nodes, int(row)) for row in np.flatnonzero(state.read(f"{self.name}.feasible"))]
        answer = self._function(pod, fitting)
        return _column(self.name, pod, answer, {node.name: node.row for node in fitting}, nodes.n)


def _column(name: str, pod: PodView, scores: Mapping[str, int], rows: Mapping[str, int], n: int) -> Ints:
    """Return scores by node name as a column; raise PluginError if they are not one for each of these nodes."""
    if not isinstance(scores, Mapping) or scores.keys() != rows.keys():
        raise _broken(name, pod, f"expected a score for each of {len(rows)} nodes, got {scores!r}")
    column = np.zeros(n, dtype=np.int64)
    for node, row in rows.items():
        column[row] = scores[node]
    return column


def _broken(name: str, pod: PodView, what: str) -> PluginError:
    return PluginError(name, "Score", f'running Score plugins: plugin "{name}" failed with: {what}', pod.key)
