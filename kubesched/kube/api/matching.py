"""Node selectors, affinity terms, taints and tolerations: the scalar answers that every faster path is measured against.

In: the structs that objects carry. Out: compiled values with a `matches` method. Label selectors, on which these are built,
are in `selectors`. The compiled forms show their parts (`requirements`, `terms`, `expressions`), so that a caller can ask
the same question of all nodes at once. Nothing here knows a cluster: labels of namespaces and nodes are handed in.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kubesched.kube.api.node import NodeSelector, NodeSelectorTerm, Taint
from kubesched.kube.api.pod import Pod, PodAffinityTerm, PreferredSchedulingTerm, Toleration, WeightedPodAffinityTerm
from kubesched.kube.api.selectors import (
    DOES_NOT_EXIST,
    EXISTS,
    GT,
    IN,
    LT,
    NOT_IN,
    Requirement,
    Selector,
    SelectorError,
    compile_selector,
    invalid,
    parse_int64,
    requirement_errors,
    selector_from_map,
    unsupported,
)
from kubesched.kube.values import aggregate

NODE_NAME_FIELD = "metadata.name"

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
HARD_EFFECTS = frozenset((NO_SCHEDULE, NO_EXECUTE))

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)

_NODE_OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT)
_TAINT_NUMBER = re.compile(r"-?[1-9][0-9]*|0", re.ASCII)


# --- nodes ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a node selector: all its labels and fields must match. A term with errors matches no node."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def error(self) -> str | None:
        """Return what is wrong with the term, or None."""
        return aggregate(self.errors) if self.errors else None

    def matches(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a node matches. Without a name the fields are ignored: the topology of a volume has none."""
        if self.errors:
            return False
        for expression in self.expressions:
            if not expression.matches(labels):
                return False
        if not node_name:
            return True
        for wanted in self.fields:
            found = node_name if wanted.key == NODE_NAME_FIELD else ""
            if (found == wanted.values[0]) != (wanted.operator == IN):
                return False
        return True


@dataclass(frozen=True, slots=True)
class NodeSelectorMatcher:
    """The terms of a node selector, of which one must match. Without terms no node matches."""

    terms: tuple[NodeTerm, ...] = ()

    def matches(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Return whether one of the terms matches a node."""
        return any(term.matches(node_name, labels) for term in self.terms)

    @property
    def error(self) -> str | None:
        """Return what is wrong with the terms, or None."""
        errors = [error for term in self.terms for error in term.errors]
        return aggregate(errors) if errors else None


@dataclass(frozen=True, slots=True)
class RequiredNodeAffinity:
    """Everything that a pod requires of its node; None for a part that it does not state."""

    node_selector: Selector | None = None
    affinity: NodeSelectorMatcher | None = None

    def matches(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a node has the labels of the node selector and matches the affinity."""
        if self.node_selector is not None and not self.node_selector.matches(labels):
            return False
        return self.affinity is None or self.affinity.matches(node_name, labels)


@dataclass(frozen=True, slots=True)
class PreferredNodeTerm:
    """A preferred node term and its weight."""

    weight: int
    term: NodeTerm


def compile_node_selector(selector: NodeSelector) -> NodeSelectorMatcher:
    """Return a compiled node selector. Empty terms are dropped, wrong ones are kept with their errors; nothing is raised."""
    return NodeSelectorMatcher(
        tuple(
            _compile_node_term(term, f"nodeSelectorTerms[{index}]")
            for index, term in enumerate(selector.node_selector_terms)
            if not _is_empty(term)
        )
    )


def named_nodes(required: NodeSelector) -> frozenset[str] | None:
    """Return the names of the only nodes that can match, if every term names nodes; otherwise None."""
    union: set[str] = set()
    for term in required.node_selector_terms:
        named: set[str] | None = None
        for wanted in term.match_fields:
            if wanted.key == NODE_NAME_FIELD and wanted.operator == IN:
                values = set(wanted.values or ())
                named = values if named is None else named & values
        if named is None:
            return None
        union |= named
    return frozenset(union) if required.node_selector_terms else None


def is_names_alone(required: NodeSelector) -> bool:
    """Return whether every term is the name of one node and nothing else, as in the pods of a DaemonSet."""
    for term in required.node_selector_terms:
        if term.match_expressions or len(term.match_fields) != 1:
            return False
        (wanted,) = term.match_fields
        if wanted.key != NODE_NAME_FIELD or wanted.operator != IN or len(wanted.values or ()) != 1:
            return False
    return True


def compile_required_node_affinity(pod: Pod) -> RequiredNodeAffinity:
    """Return what a pod's node selector and required node affinity require together."""
    spec = pod.spec
    wanted = spec.affinity.node_affinity if spec.affinity is not None else None
    return RequiredNodeAffinity(
        selector_from_map(spec.node_selector) if spec.node_selector else None,
        compile_node_selector(wanted.required) if wanted is not None and wanted.required is not None else None,
    )


def compile_preferred_terms(terms: Iterable[PreferredSchedulingTerm]) -> tuple[PreferredNodeTerm, ...]:
    """Return the preferred terms that count.

    Those with weight 0 and empty ones are dropped before they are checked, as in kube-scheduler. Raise `SelectorError` with
    all the errors of the others.
    """
    compiled = []
    for index, preferred in enumerate(terms):
        if preferred.weight and not _is_empty(preferred.preference):
            compiled.append(PreferredNodeTerm(preferred.weight, _compile_node_term(preferred.preference, f"[{index}]")))
    errors = [error for preferred in compiled for error in preferred.term.errors]
    if errors:
        raise SelectorError(aggregate(errors))
    return tuple(compiled)


def _is_empty(term: NodeSelectorTerm) -> bool:
    """Return whether a term has no expressions."""
    return not term.match_expressions and not term.match_fields


def _compile_node_term(term: NodeSelectorTerm, path: str) -> NodeTerm:
    """Return a compiled term, or one that has only its errors."""
    errors = node_term_errors(term, path)
    if errors:
        return NodeTerm(errors=tuple(errors))
    return NodeTerm(
        tuple(Requirement(wanted.key, wanted.operator, wanted.values or ()) for wanted in term.match_expressions),
        tuple(Requirement(wanted.key, wanted.operator, wanted.values or ()) for wanted in term.match_fields),
    )


def node_term_errors(term: NodeSelectorTerm, path: str) -> list[str]:
    """Return what is wrong with a term, each with the path of its field."""
    errors: list[str] = []
    for index, expression in enumerate(term.match_expressions):
        where = f"{path}.matchExpressions[{index}]"
        if expression.operator not in _NODE_OPERATORS:
            errors.append(unsupported(f"{where}.operator", expression.operator, _NODE_OPERATORS))
        else:
            errors += requirement_errors(expression.key, expression.operator, expression.values, where)
    for index, expression in enumerate(term.match_fields):
        where = f"{path}.matchFields[{index}]"
        if expression.operator not in (IN, NOT_IN):
            errors.append(unsupported(f"{where}.operator", expression.operator, (IN, NOT_IN)))
        elif len(expression.values or ()) != 1:
            errors.append(invalid(f"{where}.values", expression.values, "must have one element"))
    return errors


# --- pods -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """A pod affinity term: namespaces that are listed or selected, labels that match, within one topology."""

    namespaces: frozenset[str]
    ns_selector: Selector
    selector: Selector
    topology_key: str

    def matches(self, namespace: str, labels: Mapping[str, str], ns_labels: Mapping[str, str]) -> bool:
        """Return whether the term matches a pod with these labels in that namespace."""
        if namespace not in self.namespaces and not self.ns_selector.matches(ns_labels):
            return False
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class WeightedAffinityTerm:
    """A preferred pod affinity term and its weight."""

    weight: int
    term: AffinityTerm


@dataclass(frozen=True, slots=True)
class PodAffinityTerms:
    """The four groups of a pod's affinity terms. A group with a wrong term is empty, and `error` says why."""

    required: tuple[AffinityTerm, ...] = ()
    required_anti: tuple[AffinityTerm, ...] = ()
    preferred: tuple[WeightedAffinityTerm, ...] = ()
    preferred_anti: tuple[WeightedAffinityTerm, ...] = ()
    error: str | None = None

    @property
    def every_term(self) -> tuple[AffinityTerm, ...]:
        """Return all terms of all groups."""
        preferences = (*self.preferred, *self.preferred_anti)
        return (*self.required, *self.required_anti, *(preferred.term for preferred in preferences))


_NO_TERMS = PodAffinityTerms()


def compile_affinity_term(term: PodAffinityTerm, own_namespace: str) -> AffinityTerm:
    """Return a compiled term of a pod in `own_namespace`; raise `SelectorError` for a wrong one.

    `matchLabelKeys` and `mismatchLabelKeys` are ignored: the API server has merged them into the selector when the pod was
    created.
    """
    selector = compile_selector(term.label_selector)
    alone = not term.namespaces and term.namespace_selector is None
    namespaces = frozenset((own_namespace,)) if alone else frozenset(term.namespaces)
    return AffinityTerm(namespaces, compile_selector(term.namespace_selector), selector, term.topology_key)


def compile_pod_affinity(pod: Pod) -> PodAffinityTerms:
    """Return all affinity terms of a pod. Nothing is raised; see `PodAffinityTerms.error`."""
    stated = pod.spec.affinity
    if stated is None or (stated.pod_affinity is None and stated.pod_anti_affinity is None):
        return _NO_TERMS
    near, away, namespace = stated.pod_affinity, stated.pod_anti_affinity, pod.metadata.namespace
    errors: list[str] = []

    def required(group: str, terms: tuple[PodAffinityTerm, ...]) -> tuple[AffinityTerm, ...]:
        try:
            return tuple(compile_affinity_term(term, namespace) for term in terms)
        except SelectorError as error:
            errors.append(f"{group}: {error}")
            return ()

    def weighted(group: str, preferences: tuple[WeightedPodAffinityTerm, ...]) -> tuple[WeightedAffinityTerm, ...]:
        terms = required(group, tuple(preferred.pod_affinity_term for preferred in preferences))
        return tuple(WeightedAffinityTerm(preferred.weight, term) for preferred, term in zip(preferences, terms, strict=False))

    groups = (
        required("requiredAffinityTerms", near.required if near is not None else ()),
        required("requiredAntiAffinityTerms", away.required if away is not None else ()),
        weighted("preferredAffinityTerms", near.preferred if near is not None else ()),
        weighted("preferredAntiAffinityTerms", away.preferred if away is not None else ()),
    )
    return PodAffinityTerms(*groups, error=aggregate(errors) if errors else None)


# --- taints -----------------------------------------------------------------------------------------------------------


def tolerates(toleration: Toleration, taint: Taint, comparison_operators: bool = False) -> bool:
    """Return whether a toleration covers a taint.

    `comparison_operators` is the gate TaintTolerationComparisonOperators. Without it, Lt and Gt never match.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator
    if operator in ("", "Equal"):
        return toleration.value == taint.value
    if operator == "Exists":
        return True
    if operator in (LT, GT) and comparison_operators:
        mine, theirs = _taint_number(toleration.value), _taint_number(taint.value)
        if mine is None or theirs is None:
            return False
        return theirs < mine if operator == LT else theirs > mine
    return False


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration], comparison_operators: bool = False) -> bool:
    """Return whether one of the tolerations covers the taint."""
    return any(tolerates(toleration, taint, comparison_operators) for toleration in tolerations)


def find_untolerated(
    taints: Iterable[Taint],
    tolerations: Collection[Toleration],
    effects: Collection[str] = HARD_EFFECTS,
    comparison_operators: bool = False,
) -> Taint | None:
    """Return the first taint with one of the effects that no toleration covers, or None."""
    for taint in taints:
        if taint.effect in effects and not is_tolerated(taint, tolerations, comparison_operators):
            return taint
    return None


def _taint_number(text: str) -> int | None:
    """Return the number of a taint or toleration: no sign but a minus, no leading zeros."""
    return parse_int64(text) if _TAINT_NUMBER.fullmatch(text) else None
