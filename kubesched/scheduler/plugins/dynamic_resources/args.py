"""What DynamicResources can be told: how long one node may take in Filter, and how long devices may take to bind."""

from __future__ import annotations

from typing import Annotated

import msgspec

from kubesched.scheduler.config import Args, Duration, FieldError, Gates, Go, Path, forbidden, invalid


class DynamicResourcesArgs(Args, frozen=True, rename="camel"):
    """A timeout whose feature is off must not be set; a filter timeout of 0 means no limit."""

    filter_timeout: Annotated[Duration | None, Go(keep_null=True)] = None
    binding_timeout: Duration | None = None

    def defaulted(self, gates: Gates) -> DynamicResourcesArgs:
        changes = {}
        if self.filter_timeout is None and gates.is_enabled("DRASchedulerFilterTimeout"):
            changes["filter_timeout"] = Duration.of(seconds=10)
        if self.binding_timeout is None and _binding_conditions(gates):
            changes["binding_timeout"] = Duration.of(minutes=10)
        return msgspec.structs.replace(self, **changes)

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        errors = []
        where, timeout = path.child("filterTimeout"), self.filter_timeout
        if timeout is not None and not gates.is_enabled("DRASchedulerFilterTimeout"):
            errors.append(forbidden(where, "DRASchedulingFilterTimeout feature gate is disabled"))
        elif timeout is not None and timeout < 0:
            errors.append(invalid(where, timeout, "must be zero or positive"))
        where, timeout = path.child("bindingTimeout"), self.binding_timeout
        if timeout is not None and not _binding_conditions(gates):
            detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
            errors.append(forbidden(where, detail))
        elif timeout is not None and timeout < Duration.of(seconds=1):
            errors.append(invalid(where, timeout, "must be at least 1 second"))
        return errors


def _binding_conditions(gates: Gates) -> bool:
    return gates.is_enabled("DRADeviceBindingConditions") and gates.is_enabled("DRAResourceClaimDeviceStatus")
