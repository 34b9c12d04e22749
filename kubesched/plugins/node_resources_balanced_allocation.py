"""NodeResourcesBalancedAllocation: prefer nodes whose resources would be used up evenly."""

from __future__ import annotations

from kubesched.config.args import CPU_AND_MEMORY, Args, ResourceSpec
from kubesched.config.fielderrors import FieldError, Path, duplicate, invalid
from kubesched.config.gates import Gates


class NodeResourcesBalancedAllocationArgs(Args, frozen=True, rename="camel"):
    resources: tuple[ResourceSpec, ...] = ()

    def defaulted(self, gates: Gates) -> NodeResourcesBalancedAllocationArgs:
        resources = tuple(resource.with_weight() for resource in self.resources) or CPU_AND_MEMORY
        return NodeResourcesBalancedAllocationArgs(resources)

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        errors = []
        seen = set()
        for at, resource in enumerate(self.resources):
            where = path.child("resources").index(at)
            if resource.name in seen:
                errors.append(duplicate(where.child("name"), resource.name))
            seen.add(resource.name)
            if resource.weight != 1:
                errors.append(invalid(where.child("weight"), resource.weight, "must be 1"))
        return errors
