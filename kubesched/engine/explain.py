"""Why this node, why not that one: an attempt in words and numbers.

In: an attempt, scored even if only one node was feasible. Out: an `Explanation`: who refused which nodes and why, what the
feasible nodes scored with which plugin, and for a pod that fits nowhere the smallest change of resources that would help.
Nothing is recomputed that the attempt did not compute; it is read off its columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kubesched.api.quantity import format_quantity
from kubesched.cluster import PodView
from kubesched.engine.cycle import Attempt, Rules, SeededTies, attempt
from kubesched.engine.loop import Engine
from kubesched.framework.verdicts import Failed, Placed, Unschedulable, Verdicts

FIT = "NodeResourcesFit"
_EXAMPLES = 3
_NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason that nodes were refused for."""

    plugin: str
    reason: str
    count: int
    helps_to_evict: bool
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeScores:
    """What a feasible node scored."""

    node: str
    total: int
    by_plugin: dict[str, int]


@dataclass(slots=True)
class Explanation:
    """A decision, told."""

    pod: str
    node: str = ""
    message: str = ""
    n_nodes: int = 0
    n_feasible: int = 0
    refusals: list[Refusal] = field(default_factory=list)
    ranking: list[NodeScores] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)


def explain(made: Attempt, *, top: int = 5) -> Explanation:
    """Tell an attempt; `top` limits how many of the feasible nodes are ranked."""
    told = Explanation(made.pod.key, n_nodes=made.nodes.n)
    decision = made.decision
    if isinstance(decision, Placed):
        told.node = decision.node_name
    elif isinstance(decision, Unschedulable | Failed):
        told.message = decision.message
    if made.feasible is not None:
        told.n_feasible = int(np.count_nonzero(made.feasible))
    told.refusals = _refusals(made)
    told.ranking = _ranking(made, top)
    if isinstance(decision, Unschedulable):
        told.advice = _advice(made)
    return told


def explain_now(engine: Engine, pod: PodView, *, top: int = 5) -> Explanation:
    """Tell how every node looks to a pod right now; one that has a node is looked at as if one more like it came.

    To be called in the engine's own turn. Nothing is preempted, booked or counted, and extenders are not asked.
    """
    profile = engine.profiles[pod.pod.spec.scheduler_name]
    rules = Rules(SeededTies(), engine.queue.nominations, preempts=False, scores_single=True)
    observe, profile.observe = profile.observe, None  # the metrics are about real attempts
    try:
        return explain(attempt(pod.on("") if pod.node_name else pod, engine.store.snapshot(), profile, rules), top=top)
    finally:
        profile.observe = observe


def _refusals(made: Attempt) -> list[Refusal]:
    verdicts = made.verdicts
    if verdicts is None:
        status = made.pre_filtered.status if made.pre_filtered is not None else None
        if status is None:
            return []
        return [Refusal(status.plugin, reason, made.nodes.n, False, ()) for reason in status.reasons]
    found: list[Refusal] = []
    considered = verdicts.considered if verdicts.considered is not None else np.ones(made.nodes.n, dtype=np.bool_)
    for number, (plugin, rejections) in enumerate(verdicts.columns):
        if rejections.bits is None:
            continue
        mine = (verdicts.owner == number) & considered
        for bit, reason in enumerate(rejections.reasons):
            rows = np.flatnonzero(mine & (rejections.bits >> np.uint64(bit) & np.uint64(1) != 0))
            if len(rows):
                names = tuple(made.nodes.name(row) for row in rows[:_EXAMPLES].tolist())
                found.append(Refusal(plugin, reason.text, len(rows), reason.resolvable, names))
    left_out = int(np.count_nonzero(~considered))
    if left_out and made.pre_filtered is not None:
        status = made.pre_filtered.absent
        found.append(Refusal("", status.message, left_out, False, ()))
    return sorted(found, key=lambda refusal: -refusal.count)


def _ranking(made: Attempt, top: int) -> list[NodeScores]:
    if made.scores is None or made.feasible is None:
        return []
    total = made.scores.total
    rows = [row for row in np.argsort(-total, kind="stable")[:top].tolist() if made.feasible[row]]
    return [NodeScores(made.nodes.name(row), int(total[row]),
                       {plugin: int(column[row]) for plugin, column in made.scores.by_plugin.items()}) for row in rows]


def _advice(made: Attempt) -> list[str]:
    """Return what would have to change, the smallest change first."""
    verdicts = made.verdicts
    if verdicts is None:
        return []
    advice = _kept_off(made, verdicts)
    for number, (plugin, rejections) in enumerate(verdicts.columns):
        if plugin == FIT and rejections.bits is not None:
            rows = np.flatnonzero(verdicts.owner == number)
            if len(rows):
                advice += _resource_advice(made, rows)
    return advice


def _kept_off(made: Attempt, verdicts: Verdicts) -> list[str]:
    """Return for each plugin but the one for resources how many of the nodes it refuses would have had room."""
    nodes = made.nodes
    has_room = nodes.pod_count < nodes.allowed_pods
    for resource, amount in made.pod.requests:
        if amount:
            has_room &= nodes.free(resource) >= amount
    found = []
    for number, (plugin, rejections) in enumerate(verdicts.columns):
        if plugin == FIT or rejections.bits is None:
            continue
        kept = has_room & (verdicts.owner == number)
        if not kept.any():
            continue
        bits = np.bitwise_or.reduce(rejections.bits[kept])
        reasons = [reason.text for bit, reason in enumerate(rejections.reasons) if int(bits) >> bit & 1]
        count, example = int(np.count_nonzero(kept)), nodes.name(int(np.argmax(kept)))
        which = f"{example} has" if count == 1 else f"{count} nodes, {example} among them, have"
        found.append((count, f"{which} room for it; {plugin} says: {', '.join(reasons)}"))
    return [text for _, text in sorted(found, key=lambda each: -each[0])]


def _resource_advice(made: Attempt, rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[str]:
    """Return which node is closest to having room, and whether any could ever have it."""
    nodes, asked = made.nodes, [(resource, amount) for resource, amount in made.pod.requests if amount]
    names = nodes.templates.resources.values
    lacking = np.zeros(len(rows))
    fits_empty = np.ones(len(rows), dtype=np.bool_)
    for resource, amount in asked:
        lacking += np.maximum(amount - nodes.free(resource)[rows], 0) / amount
        fits_empty &= nodes.allocatable(resource)[rows] >= amount
    closest = int(rows[int(lacking.argmin())])
    needs = []
    for resource, amount in asked:
        missing = amount - (nodes.allocatable_at(resource, closest) - nodes.requested_at(resource, closest))
        if missing > 0:
            unit = _NANO // 1000 if names[resource] == "cpu" else _NANO
            style = "BinarySI" if names[resource] == "memory" else "DecimalSI"
            needs.append(f"{format_quantity(missing * unit, style)} more {names[resource]}")
    advice = []
    if needs:
        advice.append(f"closest is {nodes.name(closest)}: it would fit with {' and '.join(needs)}")
    count = int(np.count_nonzero(fits_empty))
    if count:
        advice.append(f"{count} of {len(rows)} nodes short of resources could hold it if they were empty")
    elif len(rows) == 1:
        advice.append(f"{nodes.name(closest)} could not hold it even empty: ask for less, or add larger nodes")
    else:
        advice.append(f"none of the {len(rows)} nodes short of resources could hold it even empty: "
                      "ask for less, or add larger nodes")
    return advice
