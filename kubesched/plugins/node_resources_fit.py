"""NodeResourcesFit: refuse nodes that cannot hold a pod's requests, and score the others by how full they would be."""

from __future__ import annotations

from typing import Annotated

import msgspec

from kubesched.config.args import CPU_AND_MEMORY, Args, ResourceSpec, UtilizationShapePoint, validate_shape
from kubesched.config.fielderrors import FieldError, Path, TypedString, forbidden, invalid, not_supported, required
from kubesched.config.gates import Gates
from kubesched.config.names import validate_label_key
from kubesched.config.wire import Go, Wire

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"
STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)


class RequestedToCapacityRatioParam(Wire, frozen=True, rename="camel"):
    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Wire, frozen=True, rename="camel"):
    """How a node is scored; a strategy that is given must name its type, there is no default for it."""

    type: Annotated[str, Go("v1.ScoringStrategyType", omit_empty=True)] = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    def validate(self, path: Path) -> list[FieldError]:
        errors = []
        if self.type not in STRATEGIES:
            errors.append(not_supported(path.child("type"), TypedString(self.type), STRATEGIES))
        for at, resource in enumerate(self.resources):
            if not 0 < resource.weight <= 100:
                where = path.child("resources").index(at).child("weight")
                detail = f"resource weight of {resource.name} not in valid range (0, 100]"
                errors.append(invalid(where, resource.weight, detail))
        where, ratio = path.child("requestedToCapacityRatio"), self.requested_to_capacity_ratio
        if self.type == REQUESTED_TO_CAPACITY_RATIO and ratio is None:
            errors.append(required(where, "must be specified when type is RequestedToCapacityRatio"))
        elif self.type == REQUESTED_TO_CAPACITY_RATIO and ratio is not None:
            errors += validate_shape(ratio.shape, where.child("shape"))
        elif ratio is not None:
            errors.append(forbidden(where, "must be nil when type is not RequestedToCapacityRatio"))
        return errors


class NodeResourcesFitArgs(Args, frozen=True, rename="camel"):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy | None = None

    def defaulted(self, gates: Gates) -> NodeResourcesFitArgs:
        strategy = self.scoring_strategy or ScoringStrategy(LEAST_ALLOCATED)
        resources = tuple(resource.with_weight() for resource in strategy.resources) or CPU_AND_MEMORY
        strategy = msgspec.structs.replace(strategy, resources=resources)
        return msgspec.structs.replace(self, scoring_strategy=strategy)

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        errors = []
        for at, name in enumerate(self.ignored_resources):
            errors += validate_label_key(name, path.child("ignoredResources").index(at))
        for at, group in enumerate(self.ignored_resource_groups):
            where = path.child("ignoredResourceGroups").index(at)
            if "/" in group:
                errors.append(invalid(where, group, "resource group name can't contain '/'"))
            errors += validate_label_key(group, where)
        where = path.child("scoringStrategy")
        if self.scoring_strategy is None:
            errors.append(required(where, "ScoringStrategy field is required"))
        else:
            errors += self.scoring_strategy.validate(where)
        return errors
