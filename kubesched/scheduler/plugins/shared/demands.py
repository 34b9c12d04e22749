"""The advice of NodeAffinity, PodTopologySpread and InterPodAffinity in `why`: which single demand of the pod keeps it off.

Each demand (a node label, a spread constraint, an affinity term) is left out in turn, and the pod is decided again by all
plugins, because they read each other's fields: spreading, for example, counts only nodes that the node affinity allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import msgspec
import numpy as np

from kubesched.kube.api import (
    NODE_NAME_FIELD,
    Affinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    Requirement,
    SelectorError,
    compile_selector,
)
from kubesched.scheduler.cluster import ABSENT
from kubesched.scheduler.framework import Advice, Refused

_MOST_VALUES = 3

T = TypeVar("T")


def advise_on_node_demands(refused: Refused) -> list[Advice]:
    """Return the single labels or fields without which the pod would fit more nodes; if there are none, all of them
    together."""
    pod = refused.pod.pod
    found: list[Advice] = []
    if not refused.alone.any():
        return found
    # One requirement at a time, because that is what a user can change. Several may be wrong together; then no single
    # one helps, and all of them are left out at once below.
    for what, wanted, changed in _one_less(pod):
        change: dict[str, object] = {"key": wanted.key, "operator": wanted.operator, "values": list(wanted.values)}
        advice = _without(refused, "selector", f"{what} {wanted}", changed, change)
        if advice is not None:
            there = _values_there(refused, wanted)
            found.append(replace(advice, text=f"{advice.text}; {there}") if there else advice)
    if not found:
        affinity = msgspec.structs.replace(pod.spec.affinity or Affinity(), node_affinity=None)
        free = _with_spec(pod, node_selector=None, affinity=affinity)
        whole = _without(refused, "selector", "its node selector and affinity", free, {})
        if whole is not None:
            found.append(replace(whole, text=f"{whole.text}; no single part of them is to blame"))
    return found


def _one_less(pod: Pod) -> Iterator[tuple[str, Requirement, Pod]]:
    """Yield each requirement on node labels and fields, with the pod without it."""
    selector = pod.spec.node_selector or {}
    for key, value in sorted(selector.items()):
        left = {other: selector[other] for other in selector if other != key}
        yield "nodeSelector", Requirement(key, "In", (value,)), _with_spec(pod, node_selector=left or None)
    affinity = pod.spec.affinity
    node = affinity.node_affinity if affinity is not None else None
    # Terms are alternatives: a node must meet one of them. To leave out a requirement widens its term only.
    for t, term in enumerate(node.required.node_selector_terms if node is not None and node.required is not None else ()):
        for field in ("match_expressions", "match_fields"):
            demands = getattr(term, field)
            for i, wanted in enumerate(demands):
                changed = _with_term(pod, t, msgspec.structs.replace(term, **{field: _but(demands, i)}))
                yield "node affinity", Requirement(wanted.key, wanted.operator, wanted.values), changed


def _with_term(pod: Pod, index: int, term: NodeSelectorTerm) -> Pod:
    """Return the pod with another term in its node affinity. An empty term means no required affinity, as terms are
    alternatives."""
    affinity = pod.spec.affinity
    assert affinity is not None and affinity.node_affinity is not None and affinity.node_affinity.required is not None
    terms = affinity.node_affinity.required.node_selector_terms
    is_void = not term.match_expressions and not term.match_fields
    required = None if is_void else NodeSelector(node_selector_terms=(*terms[:index], term, *terms[index + 1 :]))
    node = msgspec.structs.replace(affinity.node_affinity, required=required)
    return _with_spec(pod, affinity=msgspec.structs.replace(affinity, node_affinity=node))


def _values_there(refused: Refused, wanted: Requirement) -> str:
    """Return the most frequent values of the label on the refused nodes: often they show a typing error."""
    if wanted.key == NODE_NAME_FIELD or wanted.operator not in ("In", "Exists"):
        return ""
    column = refused.nodes.label(wanted.key)
    if column is None:
        return f"no node has a label {wanted.key}"
    # Only nodes that NodeAffinity alone refuses: `zone In [us-east1a]` against 40 nodes with us-east-1a shows the
    # typing error.
    codes, counts = np.unique(refused.nodes.codes(wanted.key)[refused.alone], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST_VALUES].tolist()
    shown = [
        f"{int(counts[i])} {'have' if counts[i] > 1 else 'has'} "
        + ("none" if codes[i] == ABSENT else column.values.values[int(codes[i])])
        for i in order
    ]
    return f"of {wanted.key}, {', '.join(shown)}"


def advise_on_spreading(refused: Refused) -> list[Advice]:
    """Return the hard spread constraints without which the pod would fit more nodes."""
    pod = refused.pod.pod
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
    return _tried(refused, variants)


def advise_on_neighbours(refused: Refused) -> list[Advice]:
    """Return the required pod affinity and anti-affinity terms without which the pod would fit more nodes."""
    pod = refused.pod.pod
    stated = pod.spec.affinity or Affinity()
    variants = []
    # The same for affinity and anti-affinity: `field` is the name in the API, `_but` the list without one term.
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
    return _tried(refused, variants)


def _tried(refused: Refused, variants: Iterable[tuple[str, dict[str, object], Pod]]) -> list[Advice]:
    if not refused.alone.any():
        return []
    tried = (_without(refused, "constraint", what, pod, change) for what, change, pod in variants)
    return [advice for advice in tried if advice is not None]


def _without(refused: Refused, kind: str, what: str, changed: Pod, change: dict[str, object]) -> Advice | None:
    """Return how many nodes would take the pod without a demand; None if none would, or the pod cannot be decided again."""
    # Decided by all plugins: a pod without its selector may fit a node that a taint refuses all the same, and that is
    # no help.
    fits = refused.decide(changed) if refused.decide is not None else None
    if fits is None or not fits.any():
        return None
    return refused.advise(kind, f"without {what}", fits, change=change, changed=changed)


def _pods_of(term: PodAffinityTerm) -> str:
    try:
        return str(compile_selector(term.label_selector)) or "any labels"
    except SelectorError:
        return "a broken selector"


def _with_spec(pod: Pod, **changes: object) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **changes))


def _but(items: tuple[T, ...], index: int) -> tuple[T, ...]:
    return (*items[:index], *items[index + 1 :])
