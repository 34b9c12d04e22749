"""What would help a pod that fits nowhere: the smallest changes, each with how many nodes would take it then.

In: an attempt that found no node, and a way to decide again. Out: advice, what helps most first. Every filter has judged every
node, so the nodes that only one plugin refuses stand in the columns; what that plugin would have to be given is then said
in the words of the pod or of the node: a toleration, a label, an amount. Nothing here loops over nodes.
"""

from __future__ import annotations

import msgspec
import numpy as np

from kubesched.api.node import Taint
from kubesched.api.pod import Pod, Toleration
from kubesched.cluster import Bools, PodView
from kubesched.engine.cycle import Attempt
from kubesched.engine.demands import (
    INTER_POD,
    NODE_AFFINITY,
    SPREAD,
    advise_on_neighbours,
    advise_on_node_demands,
    advise_on_spreading,
)
from kubesched.engine.obstacles import (
    CORDON,
    FIT,
    TAINTS,
    Advice,
    Advisor,
    Obstacles,
    Retrying,
    feasible_of,
    first_names,
    untolerated,
    would_take_it,
)
from kubesched.engine.shortage import advise_less, advise_on_size
from kubesched.framework.verdicts import Status

_BY_NODE_LIFECYCLE = "node.kubernetes.io/"
_MOST_COLUMNS = 62


def advise(made: Attempt, obstacles: Obstacles | None, again: Retrying | None = None) -> list[Advice]:
    """Return what would help; nothing if the pod was not refused."""
    if obstacles is None:
        status = made.pre_filtered.status if made.pre_filtered is not None else None
        return _refused_as_a_whole(made.pod, status, again) if status is not None else []
    found: list[Advice] = []
    for plugin in obstacles.by_plugin:
        alone = obstacles.alone(plugin)
        if alone.any():
            advisor = _ADVISORS.get(plugin)
            found += (advisor(obstacles, alone, again) if advisor is not None else []) or _in_its_own_words(
                obstacles, plugin, alone
            )
    found.sort(key=lambda each: (each.plugin == FIT, -each.n_nodes))
    if not found and obstacles.by_plugin:
        found += _nearest_to_one(obstacles)
    return found + advise_on_size(obstacles)


def _refused_as_a_whole(pod: PodView, status: Status, again: Retrying | None) -> list[Advice]:
    """Return who refuses the pod before any node is looked at, and what the others think."""
    if not status.plugin or again is None:
        return []
    who = {status.plugin: status.message}
    tried = again.without(who, pod)
    while tried.pre_filtered is not None and (next_ := tried.pre_filtered.status) is not None and next_.plugin:
        who[next_.plugin] = next_.message
        tried = again.without(who, pod)
    fits = feasible_of(tried)
    n = int(np.count_nonzero(fits))
    names, said = " and ".join(who), ", ".join(dict.fromkeys(who.values()))
    others = f"; otherwise {would_take_it(n, first_names(tried.nodes, fits))}" if n else ""
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
    if plugin == FIT:
        return []
    text = f"if only {plugin} did not refuse, {would_take_it(n, examples)}; it says: {obstacles.says(plugin, alone)}"
    return [Advice("alone", text, plugin, n, examples)]


def _advise_uncordoning(obstacles: Obstacles, alone: Bools, again: Retrying | None) -> list[Advice]:
    n, examples = int(np.count_nonzero(alone)), obstacles.examples(alone)
    return [Advice("uncordon", f"uncordoned, {would_take_it(n, examples)}", CORDON, n, examples)]


def _advise_toleration(obstacles: Obstacles, alone: Bools, again: Retrying | None) -> list[Advice]:
    """Return which taints to tolerate; nodes that have fewer of them are opened by the same tolerations."""
    nodes = obstacles.nodes
    lacking = {
        code: frozenset(map(_bare, untolerated(obstacles.pod, nodes.taint_sets[code])))
        for code in np.unique(nodes.taint_set[alone]).tolist()
    }
    found = []
    for wanted in dict.fromkeys(lacking.values()):
        opened = alone & np.isin(nodes.taint_set, [code for code, taints in lacking.items() if taints <= wanted])
        taints = sorted(wanted, key=lambda taint: (taint.key, taint.value, taint.effect))
        changed = _tolerating(obstacles.pod.pod, taints)
        if again is not None and obstacles.pod.pod.spec.topology_spread_constraints:
            # A constraint may count over the tolerated nodes only, and then say otherwise about all of them.
            opened = again.changed(changed)
        n, examples = int(np.count_nonzero(opened)), obstacles.examples(opened)
        if not n:
            continue
        listed = " and ".join(map(taint_text, taints))
        if any(taint.key.startswith(_BY_NODE_LIFECYCLE) for taint in taints):
            # Put there because something is wrong with the node; to tolerate that is no advice.
            found.append(
                Advice(
                    "taint",
                    f"once the taint {listed} is gone, {would_take_it(n, examples)}",
                    TAINTS,
                    n,
                    examples,
                    {"taints": [taint_text(taint) for taint in taints]},
                )
            )
        else:
            found.append(
                Advice(
                    "tolerate",
                    f"tolerating {listed}, {would_take_it(n, examples)}",
                    TAINTS,
                    n,
                    examples,
                    {"tolerations": [_toleration(taint) for taint in taints]},
                    changed,
                )
            )
    return found


def _tolerating(pod: Pod, taints: list[Taint]) -> Pod:
    more = tuple(
        Toleration(key=t.key, operator="Equal" if t.value else "Exists", value=t.value, effect=t.effect) for t in taints
    )
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, tolerations=(*pod.spec.tolerations, *more)))


def _bare(taint: Taint) -> Taint:
    return Taint(key=taint.key, value=taint.value, effect=taint.effect)


def taint_text(taint: Taint) -> str:
    """Return a taint as kubectl writes it."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _toleration(taint: Taint) -> dict[str, str]:
    if not taint.value:
        return {"key": taint.key, "operator": "Exists", "effect": taint.effect}
    return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}


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
    return [Advice("together", text, " and ".join(who), n, examples, {"plugins": who})]


_ADVISORS: dict[str, Advisor] = {
    CORDON: _advise_uncordoning,
    TAINTS: _advise_toleration,
    FIT: advise_less,
    NODE_AFFINITY: advise_on_node_demands,
    SPREAD: advise_on_spreading,
    INTER_POD: advise_on_neighbours,
}
"""Who knows more about a plugin's refusals than that they are there."""
