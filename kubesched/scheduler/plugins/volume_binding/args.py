"""What VolumeBinding can be told: how long to wait for volumes, and how to score the storage that is left."""

from __future__ import annotations

import msgspec

from kubesched.scheduler.config import (
    MAX_SHAPE_SCORE,
    Args,
    FieldError,
    Gates,
    Int64,
    Path,
    UtilizationShapePoint,
    invalid,
    validate_shape,
)

PREFER_ROOM = (UtilizationShapePoint(0, MAX_SHAPE_SCORE), UtilizationShapePoint(100, 0))


class VolumeBindingArgs(Args, frozen=True, rename="camel"):
    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None

    def defaulted(self, gates: Gates) -> VolumeBindingArgs:
        if self.shape or not gates.is_enabled("StorageCapacityScoring"):
            return self
        return msgspec.structs.replace(self, shape=PREFER_ROOM)

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        errors = []
        if self.bind_timeout_seconds < 0:
            detail = "invalid BindTimeoutSeconds, should not be a negative value"
            errors.append(invalid(path.child("bindTimeoutSeconds"), self.bind_timeout_seconds, detail))
        if gates.is_enabled("StorageCapacityScoring"):
            errors += validate_shape(self.shape or (), path.child("shape"))
        elif self.shape is not None:
            detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
            errors.append(invalid(path.child("shape"), self.shape, detail))
        return errors
