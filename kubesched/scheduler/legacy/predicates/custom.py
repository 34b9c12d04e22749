"""A predicate written as a Python function of a pod and a node, or of a pod, its metadata and a node, by a factory or bare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from kubesched.errors import PluginError
from kubesched.scheduler.cluster import PodView, Snapshot
from kubesched.scheduler.framework import CycleState, NodeView, Status, unschedulable
from kubesched.scheduler.framework.ports import Handle
from kubesched.scheduler.legacy.context import LegacyContext
from kubesched.scheduler.legacy.factory_args import MetadataSource, PluginFactoryArgs, takes_metadata
from kubesched.scheduler.legacy.predicates.base import Predicate

FitFunction = Callable[..., bool | str | Sequence[str]]
"""(pod, node) or (pod, metadata, node): True if the pod fits the node; False, or the reasons why it does not."""
FitFunctionFactory = Callable[[PluginFactoryArgs], FitFunction]
Sources = Callable[[PluginFactoryArgs], MetadataSource]


class FunctionPredicate(Predicate):
    """Ask the function about every node."""

    factory: ClassVar[FitFunctionFactory]
    source: ClassVar[Sources]

    @classmethod
    def of(cls, name: str, factory: FitFunctionFactory, source: Sources) -> type[FunctionPredicate]:
        """Return the plugin class of a function that is made when a scheduler is."""
        given = {"name": name, "factory": staticmethod(factory), "source": staticmethod(source), "__doc__": factory.__doc__}
        return type("FunctionPredicate", (cls,), given)

    def __init__(self, context: LegacyContext, handle: Handle) -> None:
        super().__init__(context, handle)
        self._listers = PluginFactoryArgs(context, handle)
        self._function = type(self).factory(self._listers)
        self._metadata = type(self).source(self._listers) if takes_metadata(self._function) else None

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
