"""Node selectors and spread constraints inside a configuration file: strictly read, checked term by term.

The same shapes exist in `kubesched.api` for pods. There an unknown field is ignored and a bad term simply never
matches; in a configuration file both are errors with a path, so the file has its own, stricter, copies.
`NodeAffinity.as_api` hands the checked result over.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

from kubesched.config.fielderrors import FieldError, Path, TypedString, invalid, not_supported
from kubesched.config.names import label_key_problems, label_value_problems
from kubesched.config.wire import Go, Int32, Wire

LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
FIELD_OPERATORS = ("In", "NotIn")
_INTEGER = re.compile(r"[+-]?[0-9]+")


class NodeSelectorRequirement(Wire, frozen=True, rename="camel"):
    key: str = ""
    operator: Annotated[str, Go("v1.NodeSelectorOperator")] = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Wire, frozen=True, rename="camel"):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()

    def validate(self, path: Path) -> list[FieldError]:
        """Return what keeps the term from being understood."""
        errors = []
        for at, expression in enumerate(self.match_expressions):
            errors += _validate_expression(expression, path.child("matchExpressions").index(at))
        for at, field in enumerate(self.match_fields):
            errors += _validate_field(field, path.child("matchFields").index(at))
        return errors


class NodeSelector(Wire, frozen=True, rename="camel"):
    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...] | None, Go(keep_null=True)] = None


class PreferredSchedulingTerm(Wire, frozen=True, rename="camel"):
    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, frozen=True, rename="camel"):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()

    def validate(self, path: Path) -> list[FieldError]:
        errors = []
        if self.required_during_scheduling_ignored_during_execution is not None:
            terms = self.required_during_scheduling_ignored_during_execution.node_selector_terms or ()
            where = path.child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
            for at, term in enumerate(terms):
                errors += term.validate(where.index(at))
        where = path.child("preferredDuringSchedulingIgnoredDuringExecution")
        for at, preferred in enumerate(self.preferred_during_scheduling_ignored_during_execution):
            if preferred.weight:  # a term without weight is never looked at, so it may say anything
                errors += preferred.preference.validate(where.index(at))
        return errors


class LabelSelectorRequirement(Wire, frozen=True, rename="camel"):
    key: str = ""
    operator: Annotated[str, Go("v1.LabelSelectorOperator")] = ""
    values: tuple[str, ...] = ()


class LabelSelector(Wire, frozen=True, rename="camel"):
    match_labels: Annotated[dict[str, str] | None, Go(omit_empty=True)] = None
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class TopologySpreadConstraint(Wire, frozen=True, rename="camel"):
    go_type: ClassVar[str] = "v1.TopologySpreadConstraint"

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: Annotated[str, Go("v1.UnsatisfiableConstraintAction")] = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: Annotated[str | None, Go("v1.NodeInclusionPolicy")] = None
    node_taints_policy: Annotated[str | None, Go("v1.NodeInclusionPolicy")] = None
    match_label_keys: tuple[str, ...] = ()


def _validate_expression(expression: NodeSelectorRequirement, path: Path) -> list[FieldError]:
    if expression.operator not in LABEL_OPERATORS:
        return [not_supported(path.child("operator"), TypedString(expression.operator), LABEL_OPERATORS)]
    errors = []
    problems = label_key_problems(expression.key)
    if problems:
        errors.append(invalid(path.child("key"), expression.key, "; ".join(problems)))
    where, values = path.child("values"), expression.values or ()
    match expression.operator:
        case "In" | "NotIn":
            if not values:
                errors.append(
                    invalid(where, expression.values, "for 'in', 'notin' operators, values set can't be empty")
                )
        case "Exists" | "DoesNotExist":
            if values:
                errors.append(invalid(where, values, "values set must be empty for exists and does not exist"))
        case _:
            errors += _validate_comparison(expression, where)
    for at, value in enumerate(values):
        problems = label_value_problems(value)
        if problems:
            errors.append(invalid(where.index(at).key(expression.key), value, "; ".join(problems)))
    return errors


def _validate_comparison(expression: NodeSelectorRequirement, path: Path) -> list[FieldError]:
    errors = []
    values = expression.values or ()
    if len(values) != 1:
        errors.append(invalid(path, expression.values, "for 'Gt', 'Lt' operators, exactly one value is required"))
    for at, value in enumerate(values):
        if not _is_int64(value):
            errors.append(invalid(path.index(at), value, "for 'Gt', 'Lt' operators, the value must be an integer"))
    return errors


def _validate_field(field: NodeSelectorRequirement, path: Path) -> list[FieldError]:
    if field.operator not in FIELD_OPERATORS:
        return [not_supported(path.child("operator"), TypedString(field.operator), FIELD_OPERATORS)]
    if len(field.values or ()) != 1:
        return [invalid(path.child("values"), field.values, "must have one element")]
    return []


def _is_int64(text: str) -> bool:
    return bool(_INTEGER.fullmatch(text)) and -(1 << 63) <= int(text) < 1 << 63
