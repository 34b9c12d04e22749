"""Annotations that later became fields: affinity, tolerations, schedulerName and taints.

    scheduler.alpha.kubernetes.io/tolerations: '[{"key": "gpu", "operator": "Exists"}]'      ->  spec.tolerations

1.4 read all of them, 1.6 only affinity and only with the gate AffinityInAnnotations. A field wins over its annotation;
tolerations and taints are added up. An annotation that is not JSON is logged and ignored.
"""

from __future__ import annotations

import logging
from typing import Any, TypeVar

import msgspec

from kubesched.errors import SchedulerError
from kubesched.kube.api import Affinity, Node, Pod, Taint, Toleration, Wire, convert
from kubesched.scheduler.legacy.releases import LegacyGates, Release

PREFIX = "scheduler.alpha.kubernetes.io/"
AFFINITY, TOLERATIONS, TAINTS, NAME = (PREFIX + what for what in ("affinity", "tolerations", "taints", "name"))

log = logging.getLogger(__name__)
T = TypeVar("T", bound=Wire)


class AnnotationReader:
    """Reads the annotations that a release reads."""

    def __init__(self, release: Release, gates: LegacyGates) -> None:
        self._all = release.reads_annotations
        self.reads_any = self._all or gates.affinity_in_annotations

    def read(self, obj: Any) -> Any:
        """Return a pod or node with its annotations as fields; other objects unchanged."""
        if isinstance(obj, Pod) and any(name.startswith(PREFIX) for name in obj.metadata.annotations):
            return self._pod(obj)
        if self._all and isinstance(obj, Node) and TAINTS in obj.metadata.annotations:
            taints = _listed(obj, TAINTS, Taint)
            return msgspec.structs.replace(obj, spec=msgspec.structs.replace(obj.spec, taints=(*obj.spec.taints, *taints)))
        return obj

    def _pod(self, pod: Pod) -> Pod:
        spec: dict[str, Any] = {}
        if AFFINITY in pod.metadata.annotations:
            spec["affinity"] = _reconciled(pod.spec.affinity, _read(pod, AFFINITY, Affinity))
        if self._all and TOLERATIONS in pod.metadata.annotations:
            spec["tolerations"] = (*pod.spec.tolerations, *_listed(pod, TOLERATIONS, Toleration))
        if self._all and pod.metadata.annotations.get(NAME):
            spec["scheduler_name"] = pod.metadata.annotations[NAME]
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **spec))


def _reconciled(field: Affinity | None, annotation: Affinity | None) -> Affinity | None:
    """Return the field, completed from the annotation."""
    if field is None or annotation is None:
        return field or annotation
    return Affinity(
        node_affinity=field.node_affinity or annotation.node_affinity,
        pod_affinity=field.pod_affinity or annotation.pod_affinity,
        pod_anti_affinity=field.pod_anti_affinity or annotation.pod_anti_affinity,
    )


def _read(obj: Pod | Node, name: str, type_: type[T]) -> T | None:
    try:
        return convert(msgspec.json.decode(obj.metadata.annotations[name]), type_)
    except (msgspec.DecodeError, SchedulerError) as error:
        log.warning("%s: annotation %s is left out: %s", obj.key, name, error)
        return None


def _listed(obj: Pod | Node, name: str, type_: type[T]) -> tuple[T, ...]:
    try:
        return tuple(convert(item, type_) for item in msgspec.json.decode(obj.metadata.annotations[name], type=list[Any]))
    except (msgspec.DecodeError, SchedulerError) as error:
        log.warning("%s: annotation %s is left out: %s", obj.key, name, error)
        return ()
