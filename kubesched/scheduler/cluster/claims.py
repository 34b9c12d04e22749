"""Volumes and volume claims, with changes that are decided but not written yet: kube-scheduler's assume caches.

In: the cluster's objects, and copies of them with a promise (a volume for a claim, a node for a claim). Out: each object as it
will be. A promise holds as long as the object has the version it was made on. Example: pod a is decided, and claim c is
promised volume v, on version 7 of c. Until version 8 of c arrives, every plugin sees c bound to v. Version 8 is what the API
server has, so it counts, and the promise is dropped.

An index over these objects reads from a log which names changed. This module never writes to the API and reads no clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from kubesched.errors import SchedulerError
from kubesched.kube.api import PersistentVolume, PersistentVolumeClaim, TopLevel
from kubesched.scheduler.cluster.changelog import ChangeLog
from kubesched.scheduler.cluster.objects import Objects

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_SWEEP = 1 << 8

T = TypeVar("T", bound=TopLevel)


class PromiseError(SchedulerError):
    """A promise about an object that is gone or has a newer version."""


@dataclass(frozen=True, slots=True)
class _Promise(Generic[T]):
    made_on: T
    promised: T


class AssumeCache(Generic[T]):
    """Objects of one kind, each with the promise made for it."""

    def __init__(self, objects: Objects, kind: type[T], plural: str) -> None:
        self._objects = objects
        self._kind = kind
        self._plural = plural
        self._promises: dict[tuple[str, str], _Promise[T]] = {}
        self._sweep_at = _SWEEP
        self.touched: ChangeLog[str] = ChangeLog()
        """The volumes whose promises changed."""

    def get(self, name: str, namespace: str = "") -> T | None:
        """Return an object with the promise made about it, or None if it does not exist."""
        stored = self._objects.get(self._kind, name, namespace)
        if stored is None or not self._promises:
            return stored
        return self._as_promised(stored)

    def stored(self, name: str, namespace: str = "") -> T | None:
        """Return an object as the watch delivered it last."""
        return self._objects.get(self._kind, name, namespace)

    def not_found(self, name: str, namespace: str = "") -> str:
        """Return kube-scheduler's text for an object that its cache does not have."""
        return f'{self._plural} "{namespace}/{name}" not found' if namespace else f'{self._plural} "{name}" not found'

    def assume(self, promised: T) -> None:
        """Keep a promise. Raise if the object is gone, or has another version than the one that the promise was made on."""
        meta = promised.metadata
        stored = self._objects.get(self._kind, meta.name, meta.namespace)
        if stored is None:
            raise PromiseError(self.not_found(meta.name, meta.namespace))
        found, assumed = stored.metadata.resource_version, meta.resource_version
        if found != assumed:
            raise PromiseError(f'"{promised.key}" is out of sync (stored: {found}, assume: {assumed})')
        if len(self._promises) >= self._sweep_at:
            self._sweep()
        self._promises[(meta.namespace, meta.name)] = _Promise(stored, promised)
        self.touched.append(meta.name)

    def restore(self, obj: T) -> None:
        """Drop the promise for an object. If the object was written meanwhile, its new version will come by the watch, and
        nothing is done."""
        meta = obj.metadata
        promise = self._promises.get((meta.namespace, meta.name))
        if promise is not None and promise.promised.metadata.resource_version == meta.resource_version:
            del self._promises[(meta.namespace, meta.name)]
            self.touched.append(meta.name)

    def promised(self) -> Iterator[T]:
        """Yield the promised versions of all objects with a promise that still holds."""
        for promise in list(self._promises.values()):
            meta = promise.promised.metadata
            found = self.get(meta.name, meta.namespace)
            if found is promise.promised:
                yield found

    def _as_promised(self, stored: T) -> T:
        """Return the promised version of an object while the promise holds: the store has the object it was made on, or, once
        the promise is written, a version that is equal to it. Any other version ends the promise."""
        key = (stored.metadata.namespace, stored.metadata.name)
        promise = self._promises.get(key)
        if promise is None:
            return stored
        version = promise.promised.metadata.resource_version
        if stored is promise.made_on or (version and stored.metadata.resource_version == version):
            return promise.promised
        del self._promises[key]
        return stored

    def _sweep(self) -> None:
        """Drop promises that no longer hold. `get` does so too, but some objects are never looked at again."""
        for namespace, name in list(self._promises):
            if self.get(name, namespace) is None:
                del self._promises[(namespace, name)]
        self._sweep_at = max(_SWEEP, 2 * len(self._promises))


class VolumeCache(AssumeCache[PersistentVolume]):
    """Persistent volumes with their promises."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects, PersistentVolume, "persistentvolumes")


class ClaimCache(AssumeCache[PersistentVolumeClaim]):
    """Volume claims with their promises."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects, PersistentVolumeClaim, "persistentvolumeclaims")


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """Return the name of the storage class that a claim wants; the old annotation wins, even when empty."""
    annotations = claim.metadata.annotations
    if annotations and CLASS_ANNOTATION in annotations:
        return annotations[CLASS_ANNOTATION]
    return claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    """Return the name of the storage class that a volume belongs to."""
    annotations = volume.metadata.annotations
    if annotations and CLASS_ANNOTATION in annotations:
        return annotations[CLASS_ANNOTATION]
    return volume.spec.storage_class_name
