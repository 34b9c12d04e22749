"""Node selectors and spread constraints inside a configuration file: strictly read, checked term by term.

The same shapes exist in `kubesched.api` for pods. There an unknown field is ignored and a bad term simply never
matches; in a configuration file both are errors with a path that show what the file says, `null` or `[]`, so the file
has its own, stricter, copies. Absent fields are not encoded: `msgspec.to_builtins` gives what the API's types read.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from kubesched.api.naming import label_value_complaints, qualified_name_complaints
from kubesched.api.selectors import parse_int64
from kubesched.config.fielderrors import FieldError, Path, TypedString, invalid, not_supported
from kubesched.config.wire import Go, Int32, Wire

LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
FIELD_OPERATORS = ("In", "NotIn")


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
    complaints = qualified_name_complaints(expression.key)
    if complaints:
        errors.append(invalid(path.child("key"), expression.key, "; ".join(complaints)))
    where, values = path.child("values"), expression.values or ()
    match expression.operator:
        case "In" | "NotIn":
            if not values:
                errors.append(invalid(where, expression.values, "for 'in', 'notin' operators, values set can't be empty"))
        case "Exists" | "DoesNotExist":
            if values:
                errors.append(invalid(where, values, "values set must be empty for exists and does not exist"))
        case _:
            errors += _validate_comparison(expression, where)
    for at, value in enumerate(values):
        complaints = label_value_complaints(value)
        if complaints:
            errors.append(invalid(where.index(at).key(expression.key), value, "; ".join(complaints)))
    return errors


def _validate_comparison(expression: NodeSelectorRequirement, path: Path) -> list[FieldError]:
    errors = []
    values = expression.values or ()
    if len(values) != 1:
        errors.append(invalid(path, expression.values, "for 'Gt', 'Lt' operators, exactly one value is required"))
    for at, value in enumerate(values):
        if parse_int64(value) is None:
            errors.append(invalid(path.index(at), value, "for 'Gt', 'Lt' operators, the value must be an integer"))
    return errors


def _validate_field(field: NodeSelectorRequirement, path: Path) -> list[FieldError]:
    if field.operator not in FIELD_OPERATORS:
        return [not_supported(path.child("operator"), TypedString(field.operator), FIELD_OPERATORS)]
    if len(field.values or ()) != 1:
        return [invalid(path.child("values"), field.values, "must have one element")]
    return []
