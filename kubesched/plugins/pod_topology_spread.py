"""PodTopologySpread: keep matching pods evenly spread over zones, hosts or any other topology."""

from __future__ import annotations

from typing import Annotated

import msgspec

from kubesched.config.args import Args
from kubesched.config.fielderrors import (
    FieldError,
    Path,
    TypedString,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kubesched.config.gates import Gates
from kubesched.config.names import validate_label_key
from kubesched.config.selectors import TopologySpreadConstraint
from kubesched.config.wire import Go

SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"
ACTIONS = ("DoNotSchedule", "ScheduleAnyway")


class PodTopologySpreadArgs(Args, frozen=True, rename="camel"):
    """Constraints for pods that bring none: the built-in pair (System) or a list of one's own (List)."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: Annotated[str, Go("v1.PodTopologySpreadConstraintsDefaulting", omit_empty=True)] = ""

    def defaulted(self, gates: Gates) -> PodTopologySpreadArgs:
        return msgspec.structs.replace(self, defaulting_type=self.defaulting_type or SYSTEM_DEFAULTING)

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        errors = []
        where, kind = path.child("defaultingType"), TypedString(self.defaulting_type)
        if kind not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
            errors.append(not_supported(where, kind, (SYSTEM_DEFAULTING, LIST_DEFAULTING)))
        elif kind == SYSTEM_DEFAULTING and self.default_constraints:
            errors.append(invalid(where, kind, "when .defaultConstraints are not empty"))
        seen = set()
        for at, constraint in enumerate(self.default_constraints):
            where = path.child("defaultConstraints").index(at)
            errors += _validate_constraint(constraint, where)
            identity = (constraint.topology_key, constraint.when_unsatisfiable)
            if identity in seen:
                errors.append(duplicate(where, f"{{{identity[0]}, {identity[1]}}}"))
            seen.add(identity)
        return errors


def _validate_constraint(constraint: TopologySpreadConstraint, path: Path) -> list[FieldError]:
    errors = []
    if constraint.max_skew <= 0:
        errors.append(invalid(path.child("maxSkew"), constraint.max_skew, "not in valid range (0, inf)"))
    if not constraint.topology_key:
        errors.append(required(path.child("topologyKey"), "can not be empty"))
    else:
        errors += validate_label_key(constraint.topology_key, path.child("topologyKey"))
    where, action = path.child("whenUnsatisfiable"), TypedString(constraint.when_unsatisfiable)
    if not action:
        errors.append(required(where, "can not be empty"))
    elif action not in ACTIONS:
        errors.append(not_supported(where, action, ACTIONS))
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        errors.append(forbidden(path.child("labelSelector"), detail))
    return errors
