"""What every node would do with a pod, as JSON documents for the page's map.

`node_verdicts` has one entry a node: the plugin that refuses it, or its total. `node_verdict` has all plugins' reasons and
scores for one node, with the best node to compare. Call them in the engine's loop; nothing is booked or counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine.core import EngineState
from kubesched.scheduler.engine.deciding.attempt import Attempt
from kubesched.scheduler.engine.explaining.explain import attempt_now

NOBODY = -1
LEFT_OUT = "left out by PreFilter"
"""The refuser of nodes that PreFilter left out. Which plugin left them out is not known."""


def node_verdicts(engine: EngineState, pod: PodView) -> dict[str, Any]:
    """Return for each node the first plugin that refuses it (an index into `plugins`, -1 for none) and its total, or null."""
    made = attempt_now(engine, pod)
    plugins, refused_by = _owners(made)
    document: dict[str, Any] = {"plugins": plugins, "refusedBy": refused_by.tolist(), "totals": None}
    if made.scores is not None and made.feasible is not None:
        totals = made.scores.total.tolist()
        document["totals"] = [totals[row] if fits else None for row, fits in enumerate(made.feasible.tolist())]
    return document


def node_verdict(engine: EngineState, pod: PodView, node_name: str) -> dict[str, Any] | None:
    """Return every plugin's reasons against one node, and its scores beside the best node's; None if there is no such node."""
    made = attempt_now(engine, pod)
    row = made.nodes.row(node_name)
    if row < 0:
        return None
    document: dict[str, Any] = {"pod": pod.key, "node": node_name, "refusals": _refusals(made, row), "isFeasible": False}
    if made.feasible is None or not made.feasible[row]:
        return document
    document["isFeasible"] = True
    if made.scores is not None:
        best = int(np.argmax(np.where(made.feasible, made.scores.total, np.iinfo(np.int64).min)))
        document |= {"score": _scored(made, row), "best": _scored(made, best)}
    return document


def _owners(made: Attempt) -> tuple[list[str], np.ndarray[Any, np.dtype[np.int64]]]:
    if made.verdicts is None:
        status = made.pre_filtered.status if made.pre_filtered is not None else None
        return [status.plugin if status is not None else ""], np.zeros(made.nodes.n, dtype=np.int64)
    plugins = list(dict.fromkeys(plugin for plugin, _ in made.verdicts.columns))
    codes = np.array([plugins.index(plugin) for plugin, _ in made.verdicts.columns] + [NOBODY], dtype=np.int64)
    owners = codes[made.verdicts.owner]
    considered = made.verdicts.considered
    if considered is not None and not considered.all():
        plugins.append(LEFT_OUT)
        owners = np.where(considered, owners, len(plugins) - 1)
    return plugins, owners


def _refusals(made: Attempt, row: int) -> list[dict[str, Any]]:
    """Return every plugin that refuses a node, not only the first one, with its reasons."""
    verdicts = made.verdicts
    if verdicts is None:
        status = made.pre_filtered.status if made.pre_filtered is not None else None
        return [{"plugin": status.plugin, "reasons": list(status.reasons), "helpsToEvict": False}] if status is not None else []
    if verdicts.considered is not None and not verdicts.considered[row]:
        absent = made.pre_filtered.absent.message if made.pre_filtered is not None else ""
        return [{"plugin": "", "reasons": [absent], "helpsToEvict": False}]
    found = []
    for plugin, rejections in verdicts.columns:
        reasons = rejections.at(row)
        if reasons:
            helps = all(reason.resolvable for reason in reasons)
            found.append({"plugin": plugin, "reasons": [reason.text for reason in reasons], "helpsToEvict": helps})
    return found


def _scored(made: Attempt, row: int) -> dict[str, Any]:
    assert made.scores is not None
    by_plugin = {plugin: int(column[row]) for plugin, column in made.scores.by_plugin.items()}
    return {"node": made.nodes.name(row), "total": int(made.scores.total[row]), "byPlugin": by_plugin}
