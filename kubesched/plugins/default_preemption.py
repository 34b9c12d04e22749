"""DefaultPreemption: when nothing fits, find the cheapest pods of lower priority to evict."""

from __future__ import annotations

from kubesched.config.args import Args
from kubesched.config.fielderrors import FieldError, Path, invalid
from kubesched.config.gates import Gates
from kubesched.config.wire import Int32


class DefaultPreemptionArgs(Args, frozen=True, rename="camel"):
    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        of_percentage = path.child("minCandidateNodesPercentage")
        of_absolute = path.child("minCandidateNodesAbsolute")
        errors = []
        if not 0 <= percentage <= 100:
            errors.append(invalid(of_percentage, percentage, "not in valid range [0, 100]"))
        if absolute < 0:
            errors.append(invalid(of_absolute, absolute, "not in valid range [0, inf)"))
        if percentage == 0 and absolute == 0:
            both = "cannot be zero at the same time as"
            errors.append(invalid(of_percentage, percentage, f"{both} minCandidateNodesAbsolute"))
            errors.append(invalid(of_absolute, absolute, f"{both} minCandidateNodesPercentage"))
        return errors
