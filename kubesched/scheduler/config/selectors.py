"""Node selectors and spread constraints in a configuration file, read strictly.

`kubesched.kube.api` has the same types for pods. There an unknown field is ignored, and an invalid term matches nothing. In a
configuration file both are errors with a path, and the error shows what the file says (`null` or `[]`), so the file has types
of its own. `msgspec.to_builtins` leaves absent fields out, so the result can be read as the API's types.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from kubesched.kube.api import node, node_term_errors
from kubesched.scheduler.config.documents.fielderrors import FieldError, Path
from kubesched.scheduler.config.documents.wire import Go, Int32, Wire


class NodeSelectorRequirement(Wire, frozen=True, rename="camel"):
    key: str = ""
    operator: Annotated[str, Go("v1.NodeSelectorOperator")] = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Wire, frozen=True, rename="camel"):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()

    def validate(self, path: Path) -> list[FieldError]:
        """Return the errors of the term."""
        term = msgspec.convert(msgspec.to_builtins(self), node.NodeSelectorTerm)
        return [FieldError(*text.split(": ", 1)) for text in node_term_errors(term, str(path))]


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
