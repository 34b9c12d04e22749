"""What would help a pod that a plugin refuses: the smallest changes of the pod or of a node.

In: `Refused`, the nodes that a plugin refuses, and those that it alone refuses. Out: `Advice`, from the plugin's method
`advise`. For a plugin without one, its reasons are printed. Nothing here loops over nodes, and nothing is booked or counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kubesched.kube.api import Pod
from kubesched.scheduler.cluster import Bools, PodView, Snapshot
from kubesched.scheduler.framework.verdicts import Reason

EXAMPLES = 3
DEMAND, AMOUNT, REMARK = range(3)
"""What advice is about: a demand that could be dropped, an amount that could be smaller, or no change but worth knowing."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing that would help."""

    kind: str
    text: str
    plugin: str = ""
    n_nodes: int = 0
    """How many nodes would take the pod then, right now."""
    examples: tuple[str, ...] = ()
    change: dict[str, Any] = field(default_factory=dict)
    """What to change, in the API's words."""
    changed: Pod | None = None
    """The pod with that change, where it is one of the pod."""
    rank: int = DEMAND
    """Demands are told first, remarks last."""


@dataclass(frozen=True, slots=True)
class Refused:
    """What a plugin refuses, as it is asked for advice about it."""

    plugin: str
    pod: PodView
    nodes: Snapshot
    rows: Bools
    """The nodes that the plugin refuses, whoever else does."""
    alone: Bools
    """Those that nobody else refuses: they would take the pod if this plugin did not mind. There may be none."""
    owned: Bools
    """Those whose refusal is counted as this plugin's in the scheduler's message: the first to refuse a node owns it."""
    reasons: Sequence[tuple[Reason, Bools]]
    """What the plugin says, and of which nodes."""
    decide: Callable[[Pod], Bools] | None = None
    """Decides again about a changed pod: the nodes that would take it. None where there is no way to."""

    def examples(self, rows: Bools) -> tuple[str, ...]:
        """Return the names of the first of some nodes."""
        return first_names(self.nodes, rows)

    def beyond_eviction(self) -> Bools:
        """Return the nodes that the plugin refuses for a reason that no eviction changes."""
        found = np.zeros(self.nodes.n, dtype=np.bool_)
        for reason, where in self.reasons:
            if not reason.resolvable:
                found |= where
        return found

    def advise(self, kind: str, before: str, rows: Bools, **more: Any) -> Advice:
        """Return advice that opens some nodes: "tolerating gpu, 3 nodes would take it (a, b, c)"."""
        n, examples = int(np.count_nonzero(rows)), self.examples(rows)
        return Advice(kind, f"{before} {would_take_it(n, examples)}", self.plugin, n, examples, **more)


def first_names(nodes: Snapshot, rows: Bools) -> tuple[str, ...]:
    """Return the names of the first of some nodes."""
    return tuple(nodes.name(row) for row in np.flatnonzero(rows)[:EXAMPLES].tolist())


def would_take_it(n: int, examples: tuple[str, ...]) -> str:
    """Return "3 nodes would take it (a, b, c)"."""
    shown = ", ".join(examples) + (", ..." if n > len(examples) else "")
    return f"{n} node{'s' if n != 1 else ''} would take it ({shown})"
