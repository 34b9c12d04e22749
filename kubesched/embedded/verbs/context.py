"""What every verb works with: the storage, the catalogue of resources, the clock and the random numbers."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import NamedTuple

from kubesched.embedded.admission.quotas import Quotas
from kubesched.embedded.api_errors import bad_request, not_found
from kubesched.embedded.clock import ServerClock
from kubesched.embedded.schema.resources import Catalogue, Resource
from kubesched.embedded.storage.event_ttl import EventExpiry
from kubesched.embedded.storage.objects import Storage, Table
from kubesched.embedded.storage.watch import Entry


class Target(NamedTuple):
    """What a request addresses: the objects of a resource, one of them, or a subresource of one."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


@dataclass(slots=True)
class WriteOptions:
    """The options of a write. `warnings` collects what the client is told although the write succeeded."""

    dry_run: bool = False
    manager: str = ""  # of the fields that are written, for managedFields
    force: bool = False  # take over fields that other managers own, in a server-side apply
    is_apply: bool = False  # server-side apply keeps its own record of who owns what
    field_validation: str = "Warn"  # Strict refuses unknown fields, Warn warns of them, Ignore drops them
    warnings: list[str] = field(default_factory=list)


class Context:
    """The parts, and the lookups that most verbs need."""

    def __init__(
        self,
        storage: Storage,
        catalogue: Catalogue,
        clock: ServerClock,
        rng: random.Random,
        has_priority_admission: bool = True,
    ) -> None:
        self.storage = storage
        self.catalogue = catalogue
        self.clock = clock
        self.rng = rng
        self.has_priority_admission = has_priority_admission
        self.quotas = Quotas(storage)
        self.events = EventExpiry(storage, clock)

    def resource(self, name: str | Resource) -> Resource:
        """Return a resource by any of its names; 400 if nobody serves it."""
        if isinstance(name, Resource):
            return name
        try:
            return self.catalogue.named(name)
        except KeyError:
            raise bad_request(f'the server doesn\'t have a resource type "{name}"') from None

    def table(self, resource: Resource) -> Table:
        """Return the table that holds the objects of a resource."""
        return self.storage.table(resource.table)

    def find(self, resource: Resource, namespace: str, name: str) -> Entry | None:
        """Return an object's entry, or None."""
        return self.table(resource).entries.get(key_of(resource, namespace, name))

    def get(self, resource: Resource, namespace: str, name: str) -> Entry:
        """Return an object's entry; 404 if it is not there."""
        entry = self.find(resource, namespace, name)
        if entry is None:
            raise not_found(resource, name)
        return entry


def key_of(resource: Resource, namespace: str, name: str) -> str:
    """Return the key of an object in its table."""
    return f"{namespace}/{name}" if resource.namespaced else name
