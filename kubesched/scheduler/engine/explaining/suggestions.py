"""What would help a pod that fits nowhere: the smallest changes, each with how many nodes would take it then.

In: an attempt that found no node, and a way to decide again. Out: advice, what helps most first. Every filter has judged every
node, so the nodes that only one plugin refuses stand in the columns; what that plugin would have to be given it says itself
(`Plugin.advise`), or it is quoted. Nothing here loops over nodes.
"""

from __future__ import annotations

import logging

import numpy as np

from kubesched.scheduler.cluster import Bools
from kubesched.scheduler.engine.deciding.attempt import Attempt
from kubesched.scheduler.engine.explaining.obstacles import Obstacles, Retrying
from kubesched.scheduler.framework import AMOUNT, REMARK, Advice, Plugin, Refused, Status, first_names, would_take_it

log = logging.getLogger(__name__)

_MOST_COLUMNS = 62


def suggest(made: Attempt, obstacles: Obstacles | None, again: Retrying | None = None) -> list[Advice]:
    """Return what would help; nothing if the pod was not refused. Plugins are asked about what they refuse."""
    if obstacles is None:
        status = made.pre_filtered.status if made.pre_filtered is not None else None
        return _refused_as_a_whole(made, status, again) if status is not None else []
    found: list[Advice] = []
    for name in obstacles.by_plugin:
        refused = obstacles.refused(name, again.changed if again is not None else None)
        plugin = obstacles.plugins.get(name)
        advice = _asked(plugin, refused) if plugin is not None else []
        found += advice or (_in_its_own_words(obstacles, name, refused.alone) if refused.alone.any() else [])
    if obstacles.by_plugin and all(each.rank == REMARK for each in found):
        found += _nearest_to_one(obstacles)
    return sorted(found, key=lambda each: (each.rank, -each.n_nodes))


def _asked(plugin: Plugin, refused: Refused) -> list[Advice]:
    try:
        return plugin.advise(refused)
    except Exception:  # somebody else's code: it costs that plugin its say, and nobody the explanation
        log.exception("plugin %s cannot say what would help pod %s", plugin.name, refused.pod.key)
        return []


def _refused_as_a_whole(made: Attempt, status: Status, again: Retrying | None) -> list[Advice]:
    """Return who refuses the pod before any node is looked at, and what the others think."""
    if not status.plugin or again is None:
        return []
    who = {status.plugin: status.message}
    next_, fits = again.without(who, made.pod)
    while next_ is not None and next_.plugin:
        who[next_.plugin] = next_.message
        next_, fits = again.without(who, made.pod)
    n = int(np.count_nonzero(fits))
    names, said = " and ".join(who), ", ".join(dict.fromkeys(who.values()))
    others = f"; otherwise {would_take_it(n, first_names(made.nodes, fits))}" if n else ""
    return [
        Advice(
            "whole",
            f"{names} refuse{'s' if len(who) == 1 else ''} it wherever it would go: {said}{others}",
            names,
            n,
            change={"plugins": list(who)},
        )
    ]


def _in_its_own_words(obstacles: Obstacles, plugin: str, alone: Bools) -> list[Advice]:
    n, examples = int(np.count_nonzero(alone)), obstacles.examples(alone)
    text = f"if only {plugin} did not refuse, {would_take_it(n, examples)}; it says: {obstacles.says(plugin, alone)}"
    return [Advice("alone", text, plugin, n, examples)]


def _nearest_to_one(obstacles: Obstacles) -> list[Advice]:
    """Say which plugins together keep the pod off, where no single one does: the fewest, and of these the most nodes."""
    plugins = list(obstacles.by_plugin)[:_MOST_COLUMNS]
    codes = np.zeros(obstacles.nodes.n, dtype=np.int64)
    for bit, plugin in enumerate(plugins):
        codes |= obstacles.by_plugin[plugin].astype(np.int64) << bit
    large = ~obstacles.too_small()  # no change of the cluster opens a node that is too small
    large = large if large.any() else ~large
    fewest = int(obstacles.n_refusing[large].min())
    sets, counts = np.unique(codes[large & (obstacles.n_refusing == fewest)], return_counts=True)
    chosen = int(sets[int(counts.argmax())])
    who = [plugin for bit, plugin in enumerate(plugins) if chosen >> bit & 1]
    rows = (codes == chosen) & large
    n, examples = int(counts.max()), obstacles.examples(rows)
    said = "; ".join(f"{plugin} says: {obstacles.says(plugin, rows)}" for plugin in who)
    text = f"no single change helps; if neither {' nor '.join(who)} refused, {would_take_it(n, examples)}; {said}"
    return [Advice("together", text, " and ".join(who), n, examples, {"plugins": who}, rank=AMOUNT)]
