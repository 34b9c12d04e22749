"""InterPodAffinity: place pods next to, or away from, other pods."""

from __future__ import annotations

from kubesched.config.args import Args
from kubesched.config.fielderrors import FieldError, Path, invalid
from kubesched.config.gates import Gates
from kubesched.config.wire import Int32


class InterPodAffinityArgs(Args, frozen=True, rename="camel"):
    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        weight = self.hard_pod_affinity_weight
        if 0 <= weight <= 100:
            return []
        return [invalid(path.child("hardPodAffinityWeight"), weight, "not in valid range [0, 100]")]
