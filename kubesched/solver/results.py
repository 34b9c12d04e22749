"""What the solver answers: plain values that can be pickled and sent, and hold nothing of the engine.

`as_dict` returns the JSON document, with the names that the commands print: `reasons` as `why`, pods as `plan`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kubesched.errors import SchedulerError
from kubesched.scheduler.engine import Refusal
from kubesched.solver.arrow import table_of

if TYPE_CHECKING:
    import pyarrow

NO_ROW = -1


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """What one node says to one pod."""

    node: str
    fits: bool
    plugin: str = ""
    """The first filter that refuses the pod."""
    reasons: tuple[str, ...] = ()
    total: int | None = None
    """The sum of the weighted scores; None for a node that was not scored."""
    scores: dict[str, int] = field(default_factory=dict)
    """By plugin, weighted."""

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as a document."""
        told: dict[str, Any] = {"node": self.node, "fits": self.fits}
        if not self.fits:
            told |= {"plugin": self.plugin, "reasons": list(self.reasons)}
        elif self.total is not None:
            told |= {"total": self.total, "byPlugin": dict(self.scores)}
        return told


@dataclass(frozen=True, slots=True, repr=False)
class NodeTable(Sequence[NodeAnswer]):
    """What every node says to one pod, kept as columns: row i is node `names[i]`."""

    names: tuple[str, ...]
    refusal: npt.NDArray[np.int32]
    """An index into `refusals`, or -1 where the pod fits."""
    refusals: tuple[tuple[str, tuple[str, ...]], ...]
    """(plugin, reasons); nodes that refuse alike share one."""
    totals: npt.NDArray[np.int64] | None = None
    scores: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[i] for i in range(*row.indices(len(self)))]
        name, code = self.names[row], int(self.refusal[row])
        if code != NO_ROW:
            return NodeAnswer(name, False, *self.refusals[code])
        if self.totals is None:
            return NodeAnswer(name, True)
        scores = {plugin: int(column[row]) for plugin, column in self.scores.items()}
        return NodeAnswer(name, True, total=int(self.totals[row]), scores=scores)

    def __iter__(self) -> Iterator[NodeAnswer]:
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} nodes, {int(np.count_nonzero(self.refusal == NO_ROW))} fit>"

    def to_arrow(self) -> pyarrow.Table:
        """Return an Arrow table: a row for each node, a column for each plugin that scored."""
        rows = []
        for answer in self:
            row = {"node": answer.node, "fits": answer.fits, "plugin": answer.plugin, "reasons": ", ".join(answer.reasons)}
            rows.append({**row, "total": answer.total, **answer.scores})
        return table_of(rows, ["node", "fits", "plugin", "reasons", "total", *self.scores])

    def of(self, node_name: str) -> NodeAnswer:
        """Return what one node says; raise SchedulerError if there is no such node."""
        try:
            found: NodeAnswer = self[self.names.index(node_name)]
        except ValueError:
            raise SchedulerError(f"node {node_name}: there is no such node") from None
        return found


@dataclass(frozen=True, slots=True, repr=False)
class Fits:
    """Where a pod fits, and the node that it would get."""

    pod: str
    """namespace/name"""
    node: str = ""
    """The node that it would get; empty if it fits on none."""
    message: str = ""
    """Why it fits on none, as kube-scheduler says it."""
    n_feasible: int = 0
    n_nodes: int = 0
    nodes: NodeTable | None = None
    """What every node says; None if it was not asked for."""

    def __repr__(self) -> str:
        where = f"on {self.node}" if self.node else f"nowhere: {self.message}"
        return f"<{self.pod} fits {where} ({self.n_feasible} of {self.n_nodes} nodes)>"

    def __bool__(self) -> bool:
        return bool(self.node)

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as a document."""
        told: dict[str, Any] = {
            "pod": self.pod,
            "node": self.node,
            "message": self.message,
            "feasibleCount": self.n_feasible,
            "nodeCount": self.n_nodes,
        }
        if self.nodes is not None:
            told["nodes"] = [node.as_dict() for node in self.nodes]
        return told


@dataclass(frozen=True, slots=True)
class StoppedBy:
    """Why the first copy of a pod that did not fit does not."""

    message: str
    refusals: tuple[Refusal, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the reasons as a document."""
        reasons = [
            {"plugin": each.plugin, "reason": each.reason, "nodes": each.count, "examples": list(each.examples)}
            for each in self.refusals
        ]
        return {"message": self.message, "reasons": reasons}


@dataclass(frozen=True, slots=True, repr=False)
class Room:
    """How many more of a pod fit, where, and why not more."""

    workload: str
    """Kind/namespace/name of what was copied."""
    nodes: dict[str, int] = field(default_factory=dict)
    """How many copies went to which node; nodes that took none are left out."""
    zones: dict[str, int] = field(default_factory=dict)
    n_nodes: int = 0
    is_limited: bool = False
    """Whether the count was ended by the limit: then more may fit."""
    stopped_by: StoppedBy | None = None

    def __repr__(self) -> str:
        return f"<{'at least ' if self.is_limited else ''}{self.count} more of {self.workload} on {self.n_nodes} nodes>"

    @property
    def count(self) -> int:
        """Return how many fit."""
        return sum(self.nodes.values())

    @property
    def message(self) -> str:
        """Return why there are not more; empty if the limit ended the count."""
        return self.stopped_by.message if self.stopped_by is not None else ""

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as `capacity -o json` prints it."""
        return {**self.document(), "lost": [], "drained": []}

    def document(self) -> dict[str, Any]:
        """Return the answer without what `capacity` may do to nodes first."""
        told: dict[str, Any] = {
            "workload": self.workload,
            "fits": self.count,
            "limitReached": self.is_limited,
            "nodeCount": self.n_nodes,
            "zones": self.zones,
            "nodes": self.nodes,
        }
        if self.stopped_by is not None:
            told["stoppedBy"] = self.stopped_by.as_dict()
        return told


@dataclass(frozen=True, slots=True, repr=False)
class PlacedPod:
    """A pod, and the node that it got; without one, why."""

    namespace: str
    name: str
    node: str = ""
    why: str = ""

    def __repr__(self) -> str:
        return f"<{self.key} on {self.node}>" if self.node else f"<{self.key} waits: {self.why}>"

    @property
    def key(self) -> str:
        """Return namespace/name."""
        return f"{self.namespace}/{self.name}"

    def as_dict(self) -> dict[str, Any]:
        """Return the pod as a document."""
        told = {"namespace": self.namespace, "name": self.name}
        return told | ({"node": self.node} if self.node else {"message": self.why})


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that left its node for another pod."""

    namespace: str
    name: str
    node: str
    priority: int
    by: str
    """The pod, or group, that it left for: namespace/name."""

    @property
    def key(self) -> str:
        """Return namespace/name."""
        return f"{self.namespace}/{self.name}"

    def as_dict(self) -> dict[str, Any]:
        """Return the victim as a document."""
        where = {"namespace": self.namespace, "name": self.name, "node": self.node}
        return {**where, "priority": self.priority, "by": self.by}


@dataclass(frozen=True, slots=True, repr=False)
class Placement:
    """Which pod got which node, which pods wait and why, and which left."""

    pods: tuple[PlacedPod, ...]
    victims: tuple[Victim, ...] = ()
    new_nodes: tuple[str, ...] = ()
    """The nodes that were added in this world and have a pod of this placement."""

    def __repr__(self) -> str:
        gone = f", {len(self.victims)} victims" if self.victims else ""
        return f"<{len(self.placed)} placed, {len(self.unplaced)} unplaced{gone}, {self.nodes_needed} new nodes needed>"

    @property
    def placed(self) -> tuple[PlacedPod, ...]:
        """Return the pods that got a node."""
        return tuple(pod for pod in self.pods if pod.node)

    @property
    def unplaced(self) -> tuple[PlacedPod, ...]:
        """Return the pods that wait."""
        return tuple(pod for pod in self.pods if not pod.node)

    @property
    def nodes_needed(self) -> int:
        """Return how many of the nodes that were added have a pod."""
        return len(self.new_nodes)

    @property
    def nodes(self) -> dict[str, int]:
        """Return how many of the pods are on which node."""
        return dict(sorted(Counter(pod.node for pod in self.placed).items()))

    def of(self, name: str) -> PlacedPod:
        """Return a pod by its name or namespace/name; raise SchedulerError if it is not one of them."""
        found = [pod for pod in self.pods if name in (pod.key, pod.name)]
        if len(found) != 1:
            problem = "more than one placed pod has this name; say namespace/name" if found else "it is not in this placement"
            raise SchedulerError(f"pod {name}: {problem}")
        return found[0]

    def to_arrow(self) -> pyarrow.Table:
        """Return an Arrow table with a row for each pod."""
        columns = ("namespace", "name", "node", "message")
        rows = [dict(zip(columns, (pod.namespace, pod.name, pod.node or None, pod.why), strict=True)) for pod in self.pods]
        return table_of(rows, columns)

    def explain(self, name: str) -> str:
        """Return in a sentence what became of a pod."""
        pod = self.of(name)
        return f"{pod.key} is on {pod.node}" if pod.node else f"{pod.key} waits: {pod.why}"

    def as_dict(self) -> dict[str, Any]:
        """Return the placement as a document."""
        return {
            "pods": [pod.as_dict() for pod in self.pods],
            "victims": [victim.as_dict() for victim in self.victims],
            "newNodes": list(self.new_nodes),
            "summary": {
                "pods": len(self.pods),
                "placed": len(self.placed),
                "pending": len(self.unplaced),
                "victims": len(self.victims),
                "nodesNeeded": self.nodes_needed,
            },
        }
