"""What came of one or two simulations, as one HTML file: figures, plots over time, the nodes at the end, what moved.

In: simulations that have run, with the rows of their series. Out: the text of a file that needs nothing else. It is made of the
page's own parts (`kubesched.server.web.page.report`); here is what they are given. The same simulations make the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kubesched.server.web.page.node_columns import facts, usage
from kubesched.server.web.page.report import report_page
from kubesched.tools.simulation.figures import figure_rows
from kubesched.tools.simulation.pod_record import PENDING
from kubesched.tools.simulation.simulation import Simulation

MOST_MOVED = 5000
"""Pods that moved that are listed; a file of a hundred thousand would open slowly."""
_MOST_REASONS = 20
_MOST_POINTS = 2000


class Ran(NamedTuple):
    """A simulation that has run."""

    name: str
    sim: Simulation
    series: Sequence[Mapping[str, Any]]


def html_report(title: str, runs: Sequence[Ran], moves: Mapping[str, Any] | None = None) -> str:
    """Return the file: of one run, or of two side by side with the pods that moved from the first to the second."""
    documents = [run.sim.metrics() for run in runs]
    shown = {
        "title": title,
        "seed": documents[0]["seed"],
        "seconds": documents[0]["seconds"],
        "runs": [_run(run, document) for run, document in zip(runs, documents, strict=True)],
        "figures": figure_rows(documents),
    }
    if moves is not None:
        shown["moves"] = {**moves, "pods": moves["pods"][:MOST_MOVED]}
    return report_page(title, shown)


def _run(run: Ran, document: Mapping[str, Any]) -> dict[str, Any]:
    nodes = run.sim.engine.store.snapshot()
    every = -(-len(run.series) // _MOST_POINTS)
    rows = run.series[:: every or 1]
    names = rows[0] if rows else ()
    return {
        "name": run.name,
        "document": document,
        "series": {name: [row[name] for row in rows] for name in names},
        "nodes": facts(nodes),
        "usage": usage(nodes),
        "pending": _pending(run.sim),
    }


def _pending(sim: Simulation) -> list[dict[str, Any]]:
    """Return why the pods wait that have no node at the end, most frequent first."""
    waiting = [record for record in sim.pods.values() if record.state == PENDING]
    reasons = Counter(record.note or "not tried yet" for record in waiting)
    return [
        {"why": why, "count": n, "pod": next(r.key for r in waiting if (r.note or "not tried yet") == why)}
        for why, n in reasons.most_common(_MOST_REASONS)
    ]
