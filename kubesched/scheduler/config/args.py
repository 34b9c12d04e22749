"""Plugin arguments (`pluginConfig`): the base class, and what the arguments of several plugins share.

A plugin's arguments are a frozen struct in the plugin's own file:

    class InterPodAffinityArgs(Args):
        hard_pod_affinity_weight: Int32 = 1

        def validate(self, path: Path, gates: Gates) -> list[FieldError]: ...

The class name is the kind on the wire, so the plugin `X` has `XArgs`. The default of a field is used if the field is absent or
null; defaults that depend on other fields or on feature gates are set in `defaulted`.
"""

from __future__ import annotations

from typing import Self

from kubesched.kube.api import is_extended_name
from kubesched.kube.values import qualified_name_complaints
from kubesched.scheduler.config.documents.fielderrors import FieldError, Path, TypedString, invalid, required
from kubesched.scheduler.config.documents.wire import Int32, Int64, Wire
from kubesched.scheduler.config.releases.gates import Gates

MAX_SHAPE_SCORE = 10


class Args(Wire, frozen=True, rename="camel"):
    """Base of all plugin arguments."""

    def defaulted(self, gates: Gates) -> Self:
        """Return the arguments with every remaining default filled in."""
        return self

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        """Return what is wrong with the defaulted arguments; `path` is where they stand in the document."""
        return []


class ResourceSpec(Wire, frozen=True, rename="camel"):
    """A resource and its weight in a score; a weight of 0 reads as 1."""

    name: str = ""
    weight: Int64 = 0

    def with_weight(self) -> ResourceSpec:
        return self if self.weight else ResourceSpec(self.name, 1)


CPU_AND_MEMORY = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


class UtilizationShapePoint(Wire, frozen=True, rename="camel"):
    """One corner of a piecewise linear function from utilization (percent) to score (0 to 10)."""

    utilization: Int32 = 0
    score: Int32 = 0


def validate_shape(shape: tuple[UtilizationShapePoint, ...], path: Path) -> list[FieldError]:
    """Return the errors of a shape: no points, utilization not rising, values out of range."""
    if not shape:
        return [required(path, "at least one point must be specified")]
    errors = []
    for at in range(1, len(shape)):
        if shape[at - 1].utilization >= shape[at].utilization:
            where = path.index(at).child("utilization")
            errors.append(invalid(where, shape[at].utilization, "values must be sorted in increasing order"))
            # One complaint about the order is enough, as in kube-scheduler; ranges are checked for every point.
            break
    for at, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            where = path.index(at).child("utilization")
            errors.append(invalid(where, point.utilization, "not in valid range [0, 100]"))
        if not 0 <= point.score <= MAX_SHAPE_SCORE:
            errors.append(invalid(path.index(at).child("score"), point.score, "not in valid range [0, 10]"))
    return errors


def validate_label_key(key: str, path: Path) -> list[FieldError]:
    """Return the errors of a label key."""
    return [invalid(path, key, complaint) for complaint in qualified_name_complaints(key)]


def validate_extended_resource(name: str, path: Path) -> list[FieldError]:
    """Return the errors of the name of an extended resource, which must not be in a Kubernetes domain."""
    errors = [invalid(path, TypedString(name), complaint) for complaint in qualified_name_complaints(name)]
    # Only a well-formed name is looked at further, so there is one kind of complaint at a time.
    if not errors and not is_extended_name(name):
        errors.append(invalid(path, name, "is an invalid extended resource name"))
    return errors
