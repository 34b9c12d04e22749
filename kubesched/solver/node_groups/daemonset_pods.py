"""The DaemonSet pods that a new node would have, read off those of the nodes that are there.

In: the pods of a cluster, which is all that a scheduler reads of its DaemonSets, and pods of sets that are about to come. Out:
for any node, the pods that would run on it. They take their share of the node before anybody else.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubesched.embedded.controllers.workloads.daemonsets import runs_on
from kubesched.kube.api import Node, NodeSelectorTerm, Pod, RequiredNodeAffinity, compile_required_node_affinity

_with = msgspec.structs.replace


class DaemonSetPods:
    """One pod of each DaemonSet, and where the set runs."""

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        self._sets: dict[tuple[str, str], tuple[Pod, RequiredNodeAffinity]] = {}
        for pod in pods:
            owner = pod.metadata.controller()
            if owner is not None and owner.kind == "DaemonSet" and (pod.metadata.namespace, owner.name) not in self._sets:
                pod = _unpinned(pod)
                self._sets[pod.metadata.namespace, owner.name] = (pod, compile_required_node_affinity(pod))

    @property
    def pods(self) -> list[Pod]:
        """Return one pod of each set, on no node."""
        return [pod for pod, _ in self._sets.values()]

    def on(self, node: Node) -> list[Pod]:
        """Return the pods that would run on a node."""
        return [
            _placed(pod, name, node.metadata.name)
            for (_, name), (pod, affinity) in self._sets.items()
            if runs_on(pod, affinity, node)
        ]


def _unpinned(pod: Pod) -> Pod:
    """Return a pod without the node that its controller made it for."""
    spec, affinity = _with(pod.spec, node_name=""), pod.spec.affinity
    if affinity is not None and affinity.node_affinity is not None and affinity.node_affinity.required is not None:
        stated = (_with(term, match_fields=()) for term in affinity.node_affinity.required.node_selector_terms)
        terms = tuple(term for term in stated if term != NodeSelectorTerm())
        required = _with(affinity.node_affinity.required, node_selector_terms=terms) if terms else None
        spec = _with(spec, affinity=_with(affinity, node_affinity=_with(affinity.node_affinity, required=required)))
    return _with(pod, spec=spec)


def _placed(pod: Pod, set_name: str, node_name: str) -> Pod:
    name = f"{set_name}-{node_name}"
    meta = _with(pod.metadata, name=name, uid=f"uid-{pod.metadata.namespace}-{name}", resource_version="")
    return _with(pod, metadata=meta, spec=_with(pod.spec, node_name=node_name), status=_with(pod.status, phase="Running"))
