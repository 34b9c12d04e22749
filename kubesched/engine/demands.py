"""What a pod demands of its node and of its neighbours, and which demand is one too many.

In: who refuses which nodes, and a way to decide again. Out: for every single demand how many nodes would take the pod without
it: a label or a field of the node, a spread constraint, an affinity to other pods. Each is left out in turn and decided again,
because one plugin may read what another one demands: spreading counts only over nodes that the node affinity allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import msgspec
import numpy as np

from kubesched.api.matching import NODE_NAME_FIELD, Requirement, compile_selector
from kubesched.api.meta import LabelSelector
from kubesched.api.node import NodeSelector, NodeSelectorTerm
from kubesched.api.pod import Affinity, Pod, PodAffinityTerm
from kubesched.api.selectors import SelectorError
from kubesched.cluster import ABSENT, Bools
from kubesched.engine.obstacles import Advice, Obstacles, Retrying, would_take_it

NODE_AFFINITY, SPREAD, INTER_POD = "NodeAffinity", "PodTopologySpread", "InterPodAffinity"
_MOST_VALUES = 3

T = TypeVar("T")


def advise_on_node_demands(obstacles: Obstacles, alone: Bools, again: Retrying | None) -> list[Advice]:
    """Return which label or field that the pod asks for keeps it off nodes that are otherwise fine."""
    pod = obstacles.pod.pod
    found = []
    for what, wanted, changed in _one_less(pod) if again is not None else ():
        assert again is not None
        advice = _without(obstacles, NODE_AFFINITY, f"{what} {wanted}", changed, again)
        if advice is not None:
            there = _values_there(obstacles, alone, wanted)
            text = f"{advice.text}; {there}" if there else advice.text
            found.append(
                replace(
                    advice,
                    kind="selector",
                    text=text,
                    change={"key": wanted.key, "operator": wanted.operator, "values": list(wanted.values)},
                )
            )
    if not found and again is not None:
        affinity = msgspec.structs.replace(pod.spec.affinity or Affinity(), node_affinity=None)
        whole = _without(
            obstacles,
            NODE_AFFINITY,
            "its node selector and affinity",
            _with_spec(pod, node_selector=None, affinity=affinity),
            again,
        )
        if whole is not None:
            found.append(replace(whole, kind="selector", text=f"{whole.text}; no single part of them is to blame"))
    return found


def _one_less(pod: Pod) -> Iterator[tuple[str, Requirement, Pod]]:
    """Yield every single demand of the node, with the pod that does without it."""
    selector = pod.spec.node_selector or {}
    for key, value in sorted(selector.items()):
        left = {other: selector[other] for other in selector if other != key}
        yield "nodeSelector", Requirement(key, "In", (value,)), _with_spec(pod, node_selector=left or None)
    affinity = pod.spec.affinity
    node = affinity.node_affinity if affinity is not None else None
    for t, term in enumerate(node.required.node_selector_terms if node is not None and node.required is not None else ()):
        for field in ("match_expressions", "match_fields"):
            demands = getattr(term, field)
            for i, wanted in enumerate(demands):
                changed = _with_term(pod, t, msgspec.structs.replace(term, **{field: _but(demands, i)}))
                yield "node affinity", Requirement(wanted.key, wanted.operator, wanted.values), changed


def _with_term(pod: Pod, index: int, term: NodeSelectorTerm) -> Pod:
    """Return a pod with another term in its node affinity; one that demands nothing more makes all of it void."""
    affinity = pod.spec.affinity
    assert affinity is not None and affinity.node_affinity is not None and affinity.node_affinity.required is not None
    terms = affinity.node_affinity.required.node_selector_terms
    is_void = not term.match_expressions and not term.match_fields
    required = None if is_void else NodeSelector(node_selector_terms=(*terms[:index], term, *terms[index + 1 :]))
    node = msgspec.structs.replace(affinity.node_affinity, required=required)
    return _with_spec(pod, affinity=msgspec.structs.replace(affinity, node_affinity=node))


def _values_there(obstacles: Obstacles, rows: Bools, wanted: Requirement) -> str:
    """Return what the nodes have instead of the label that is asked for; mostly it shows the slip."""
    if wanted.key == NODE_NAME_FIELD or wanted.operator not in ("In", "Exists"):
        return ""
    column = obstacles.nodes.label(wanted.key)
    if column is None:
        return f"no node has a label {wanted.key}"
    codes, counts = np.unique(obstacles.nodes.codes(wanted.key)[rows], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST_VALUES].tolist()
    shown = [
        f"{int(counts[i])} {'have' if counts[i] > 1 else 'has'} "
        + ("none" if codes[i] == ABSENT else column.values.values[int(codes[i])])
        for i in order
    ]
    return f"of {wanted.key}, {', '.join(shown)}"


def advise_on_spreading(obstacles: Obstacles, alone: Bools, again: Retrying | None) -> list[Advice]:
    """Return which spread constraint alone keeps the pod off."""
    pod = obstacles.pod.pod
    constraints = pod.spec.topology_spread_constraints
    variants = [
        (
            f"the spread constraint over {each.topology_key} (maxSkew {each.max_skew})",
            {"topologyKey": each.topology_key, "maxSkew": each.max_skew},
            _with_spec(pod, topology_spread_constraints=_but(constraints, i)),
        )
        for i, each in enumerate(constraints)
        if each.when_unsatisfiable == "DoNotSchedule"
    ]
    return _tried(obstacles, SPREAD, variants, again)


def advise_on_neighbours(obstacles: Obstacles, alone: Bools, again: Retrying | None) -> list[Advice]:
    """Return which required affinity or anti-affinity to other pods alone keeps the pod off."""
    pod = obstacles.pod.pod
    stated = pod.spec.affinity or Affinity()
    variants = []
    for field, word in (("pod_affinity", "affinity to"), ("pod_anti_affinity", "anti-affinity to")):
        group = getattr(stated, field)
        for i, term in enumerate(group.required if group is not None else ()):
            left = msgspec.structs.replace(stated, **{field: msgspec.structs.replace(group, required=_but(group.required, i))})
            variants.append(
                (
                    f"the required {word} pods with {_pods_of(term)} over {term.topology_key}",
                    {"topologyKey": term.topology_key, "pods": _pods_of(term)},
                    _with_spec(pod, affinity=left),
                )
            )
    return _tried(obstacles, INTER_POD, variants, again)


def _tried(
    obstacles: Obstacles, plugin: str, variants: Iterable[tuple[str, dict[str, object], Pod]], again: Retrying | None
) -> list[Advice]:
    found = []
    for what, change, pod in variants if again is not None else ():
        assert again is not None
        advice = _without(obstacles, plugin, what, pod, again)
        if advice is not None:
            found.append(replace(advice, change=change))
    return found


def _without(obstacles: Obstacles, plugin: str, what: str, changed: Pod, again: Retrying) -> Advice | None:
    """Return how many nodes would take the pod without a demand; None if none would."""
    fits = again.changed(changed)
    n, examples = int(np.count_nonzero(fits)), obstacles.examples(fits)
    text = f"without {what} {would_take_it(n, examples)}"
    return Advice("constraint", text, plugin, n, examples, changed=changed) if n else None


def _pods_of(term: PodAffinityTerm) -> str:
    return _selector_text(term.label_selector)


def _selector_text(selector: LabelSelector | None) -> str:
    try:
        return str(compile_selector(selector)) or "any labels"
    except SelectorError:
        return "a broken selector"


def _with_spec(pod: Pod, **changes: object) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **changes))


def _but(items: tuple[T, ...], index: int) -> tuple[T, ...]:
    return (*items[:index], *items[index + 1 :])
