"""The object that holds the leader's name: a Lease, or in old releases an annotation of an Endpoints or a ConfigMap.

A lock keeps the object as it last read it. So a renewal is one PUT, guarded by the resourceVersion, and fields of other
writers survive. While clusters moved from the old place to the new one, releases wrote both (`BothLocks`), so that leaders of
either kind saw each other.
"""

from __future__ import annotations

import contextlib
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from kubesched.errors import AlreadyExists, MalformedObject, NotFound
from kubesched.kube.api import codec, format_micro_time, format_time, parse_time
from kubesched.kube.client.connection import Connection
from kubesched.kube.client.informers.resources import collection_path

LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader"
UNKNOWN = "leaderelection.k8s.io/unknown"
"""The leader while the two objects name different ones."""


@dataclass(frozen=True, slots=True)
class Record:
    """The leader, since when, how long the lease holds, how often the leader changed. Times are seconds since the epoch."""

    holder: str = ""
    lease_duration_seconds: int = 0
    acquire_time: float = 0.0
    renew_time: float = 0.0
    transitions: int = 0
    preferred_holder: str = ""
    """The next leader, if a controller chooses it. The holder then stops renewing."""


class Lock(Protocol):
    """An object that holds the record."""

    identity: str

    async def get(self) -> Record:
        """Return the record; raise `NotFound` if the object does not exist."""

    async def create(self, record: Record) -> Record:
        """Make the lock."""

    async def update(self, record: Record) -> Record:
        """Replace the record; raise `Conflict` if another replica has replaced it since we last read it."""


def make_identity() -> str:
    """Return a unique name for this process."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class _ObjectLock:
    """An object that is read and replaced whole."""

    api_version = ""
    kind = ""
    plural = ""

    def __init__(self, connection: Connection, identity: str, namespace: str, name: str) -> None:
        self.identity = identity
        self._connection = connection
        self._namespace, self._name = namespace, name
        self._collection = collection_path(self.api_version, self.plural, namespace)
        self._path = f"{self._collection}/{quote(name, safe='')}"
        self._seen: dict[str, Any] | None = None

    def __str__(self) -> str:
        return f"{self._namespace}/{self._name}"

    async def get(self) -> Record:
        return self._remember(await self._connection.request("GET", self._path))

    async def create(self, record: Record) -> Record:
        fresh = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {"name": self._name, "namespace": self._namespace},
        }
        body = msgspec.json.encode(self._written(fresh, record))
        return self._remember(await self._connection.request("POST", self._collection, body))

    async def update(self, record: Record) -> Record:
        # The object is written back whole, with the resourceVersion that was read. If another replica wrote in between, the
        # server answers Conflict, and we do not lead.
        if self._seen is None:
            await self.get()
        body = msgspec.json.encode(self._written(self._seen or {}, record))
        return self._remember(await self._connection.request("PUT", self._path, body))

    def _remember(self, body: bytes) -> Record:
        found = codec.decode_json(body)
        if not isinstance(found, dict):
            raise MalformedObject(f"{self.kind.lower()} {self}", "body", found, "expected an object")
        record = self._read(found)
        self._seen = found
        return record

    def _written(self, found: dict[str, Any], record: Record) -> dict[str, Any]:
        """Return the object with a record in it."""
        raise NotImplementedError

    def _read(self, found: dict[str, Any]) -> Record:
        """Return the record in an object."""
        raise NotImplementedError


class LeaseLock(_ObjectLock):
    """A Lease."""

    api_version, kind, plural = "coordination.k8s.io/v1", "Lease", "leases"

    def _written(self, found: dict[str, Any], record: Record) -> dict[str, Any]:
        # Updated and not replaced: `preferredHolder` and `strategy` belong to the controller of a coordinated election.
        spec = dict(found.get("spec") or {})
        spec.update(
            holderIdentity=record.holder,
            leaseDurationSeconds=record.lease_duration_seconds,
            acquireTime=format_micro_time(record.acquire_time),
            renewTime=format_micro_time(record.renew_time),
            leaseTransitions=record.transitions,
        )
        return {**found, "spec": spec}

    def _read(self, found: dict[str, Any]) -> Record:
        spec = found.get("spec") or {}
        return _record(spec, "leaseTransitions", f"lease {self}")


class _AnnotationLock(_ObjectLock):
    """An object with the record as JSON in an annotation."""

    api_version = "v1"

    def _written(self, found: dict[str, Any], record: Record) -> dict[str, Any]:
        text = msgspec.json.encode(
            {
                "holderIdentity": record.holder,
                "leaseDurationSeconds": record.lease_duration_seconds,
                "acquireTime": format_time(record.acquire_time),
                "renewTime": format_time(record.renew_time),
                "leaderTransitions": record.transitions,
            }
        ).decode()
        meta = dict(found.get("metadata") or {})
        meta["annotations"] = {**(meta.get("annotations") or {}), LEADER_ANNOTATION: text}
        return {**found, "metadata": meta}

    def _read(self, found: dict[str, Any]) -> Record:
        text = ((found.get("metadata") or {}).get("annotations") or {}).get(LEADER_ANNOTATION)
        if not text:
            return Record()
        return _record(codec.decode_json(text), "leaderTransitions", f"{self.kind.lower()} {self}")


class EndpointsLock(_AnnotationLock):
    """An Endpoints object."""

    kind, plural = "Endpoints", "endpoints"


class ConfigMapLock(_AnnotationLock):
    """A ConfigMap."""

    kind, plural = "ConfigMap", "configmaps"


class BothLocks:
    """The same record in an old object and in a Lease. While they name different leaders, the leader is unknown."""

    def __init__(self, old: Lock, new: Lock) -> None:
        self.identity = old.identity
        self._old, self._new = old, new

    def __str__(self) -> str:
        return str(self._old)

    async def get(self) -> Record:
        """Return the old object's record. If the Lease names another leader, return one with an unknown leader."""
        found = await self._old.get()
        try:
            beside = await self._new.get()
        except NotFound:
            return found
        # The record that was renewed last expires last. An unknown leader is waited for until then.
        if beside.holder == found.holder:
            return found
        return replace(max(found, beside, key=lambda each: each.renew_time), holder=UNKNOWN)

    async def create(self, record: Record) -> Record:
        """Create the objects that do not exist."""
        with contextlib.suppress(AlreadyExists):
            await self._old.create(record)
        return await self._new.create(record)

    async def update(self, record: Record) -> Record:
        """Replace the record in both objects, the old one first: it decides which replica wins."""
        await self._old.update(record)
        try:
            await self._new.get()
        except NotFound:
            return await self._new.create(record)
        return await self._new.update(record)


LOCKS: dict[str, Callable[[Connection, str, str, str], Lock]] = {
    "leases": LeaseLock,
    "endpoints": EndpointsLock,
    "configmaps": ConfigMapLock,
    "endpointsleases": lambda *given: BothLocks(EndpointsLock(*given), LeaseLock(*given)),
    "configmapsleases": lambda *given: BothLocks(ConfigMapLock(*given), LeaseLock(*given)),
}
"""Locks by their names in flags, made from (connection, identity, namespace, name)."""


def _record(fields: dict[str, Any], transitions: str, what: str) -> Record:
    try:
        return Record(
            holder=fields.get("holderIdentity") or "",
            lease_duration_seconds=int(fields.get("leaseDurationSeconds") or 0),
            acquire_time=_time(fields.get("acquireTime")),
            renew_time=_time(fields.get("renewTime")),
            transitions=int(fields.get(transitions) or 0),
            preferred_holder=fields.get("preferredHolder") or "",
        )
    except (TypeError, ValueError, AttributeError) as error:
        raise MalformedObject(what, "record", fields, "not a leader's record") from error


def _time(text: str | None) -> float:
    return parse_time(text) if text else 0.0
