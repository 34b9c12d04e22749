"""What all objects share: metadata, references, conditions, label selectors, and the base class of all structs.

The structs are frozen. Their snake_case attributes stand for the API's camelCase names. Every field is optional, because the
API leaves out what is empty. Where absent and empty mean the same, a list is a tuple and a map a dict, both empty by default;
where the scheduler must tell them apart, absent is None. Fields that nothing reads are skipped while decoding; `codec.overlay`
puts them back when an object is written.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import dataclass_transform

import msgspec
from msgspec import field

from kubesched.errors import MalformedObject

Quantity = str | int | float
"""A quantity as it stands on the wire; `quantity.parse` gives it a value."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """The base class of all structs that come from the API or go to it.

    `gc=False` is safe: frozen values from JSON have no cycles.
    """


class OwnerReference(Wire, kw_only=True):
    """The object that created this one."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False  # the one owner that manages the object
    block_owner_deletion: bool | None = None


class ObjectMeta(Wire, kw_only=True):
    """Name, identity, version and labels of an object. Times are RFC 3339 texts; see `parse_time`."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0  # counts changes of the spec
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None  # set while the object waits for its grace or its finalizers
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    def controller(self) -> OwnerReference | None:
        """Return the owner that manages the object, or None."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


def always(text: str) -> str:
    """Return a field that defaults to `text` and is written even then.

    msgspec leaves out fields that have their default. It cannot tell for a default that a factory makes, so those are always
    written.
    """
    made: str = field(default_factory=text.__str__)
    return made


class TopLevel(Wire, kw_only=True):
    """The base class of objects with a name. Subclasses set `api_version` and `kind`."""

    api_version: str = always("")
    kind: str = always("")
    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def key(self) -> str:
        """Return `namespace/name`, or the name of a cluster-wide object."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class ObjectReference(Wire, kw_only=True):
    """A reference to any object."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class Condition(Wire, kw_only=True):
    """One condition of an object."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class LabelSelectorRequirement(Wire, kw_only=True):
    """One expression of a label selector. Absent and empty values differ in error messages only."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class LabelSelector(Wire, kw_only=True):
    """A label selector. An absent one selects nothing, an empty one everything, so keep None and `{}` apart."""

    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class ListMeta(Wire, kw_only=True):
    """The version of a list, and the token of its next page."""

    resource_version: str = ""
    continue_: str = field(default="", name="continue")
    remaining_item_count: int | None = None


class Preconditions(Wire, kw_only=True):
    """What must be true of an object for it to be deleted."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Wire, kw_only=True):
    """The options of a deletion."""

    api_version: str = always("v1")
    kind: str = always("DeleteOptions")
    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = None
    propagation_policy: str | None = None
    dry_run: tuple[str, ...] = ()


class StatusCause(Wire, kw_only=True):
    """One cause of a refusal."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Wire, kw_only=True):
    """The object that a refusal is about, and its causes."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(Wire, kw_only=True):
    """The API server's answer if it does not return an object."""

    api_version: str = always("v1")
    kind: str = always("Status")
    metadata: ListMeta = ListMeta()
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0


def parse_time(text: str) -> float:
    """Return the seconds since the epoch of an RFC 3339 time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise MalformedObject("time", "value", text, "not an RFC 3339 time") from error
    if moment.tzinfo is None:
        raise MalformedObject("time", "value", text, "not an RFC 3339 time: the zone is missing")
    return moment.timestamp()


def format_time(seconds: float) -> str:
    """Return a moment as the API writes it, cut to whole seconds."""
    return datetime.fromtimestamp(int(seconds // 1), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(seconds: float) -> str:
    """Return a moment with microseconds, as Leases and Events have it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
