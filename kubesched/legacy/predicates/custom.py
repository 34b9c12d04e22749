"""A predicate written as a Python function of a pod and a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from kubesched.cluster import PodView
from kubesched.errors import PluginError
from kubesched.framework import CycleState, NodeView, Status, unschedulable
from kubesched.legacy.predicates.base import Predicate

FitFunction = Callable[[PodView, NodeView], bool | str | Sequence[str]]
"""True if the pod fits the node; False, or the reasons why it does not."""


class FunctionPredicate(Predicate):
    """Ask the function about every node."""

    function: ClassVar[FitFunction]

    @classmethod
    def of(cls, name: str, function: FitFunction) -> type[FunctionPredicate]:
        """Return the plugin class of a function."""
        return type(
            "FunctionPredicate", (cls,), {"name": name, "function": staticmethod(function), "__doc__": function.__doc__}
        )

    def filter_node(self, pod: PodView, node: NodeView, state: CycleState) -> Status | None:
        answer = type(self).function(pod, node)
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
