"""What every object has in common: metadata, references, conditions, label selectors, and the base of all wire values.

In: nothing but the wire. Out: frozen structs whose snake_case attributes stand for the API's camelCase names.
Every field is optional, because the API leaves out what is empty. Where absent and empty mean the same, a list is a
tuple and a map a dict, both empty by default; where the scheduler must tell them apart, absent is None.
Fields nobody here reads are skipped while decoding (`codec.overlay` puts them back when an object is written).
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
    """The base of all values that come from the API or go to it.

    `gc=False` is safe because frozen values decoded from JSON cannot form cycles.
    """


class OwnerReference(Wire, kw_only=True):
    """The object that created this one; `controller` marks the one in charge."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool | None = None


class ObjectMeta(Wire, kw_only=True):
    """Name, identity, version and labels of an object. Times stay RFC 3339 text; see `parse_time`."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    def controller(self) -> OwnerReference | None:
        """Return the owner in charge, if there is one."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


def always(text: str) -> str:
    """Return a field that defaults to `text` and is written even then.

    msgspec leaves out plain defaults and empty containers, but not the product of any other factory.
    """
    made: str = field(default_factory=text.__str__)
    return made


class TopLevel(Wire, kw_only=True):
    """The base of objects that have a name of their own. Subclasses give `api_version` and `kind` their values."""

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
        """Return `namespace/name`, or the bare name of a cluster-wide object."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class ObjectReference(Wire, kw_only=True):
    """A pointer to any object."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class Condition(Wire, kw_only=True):
    """One observed condition of an object."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class LabelSelectorRequirement(Wire, kw_only=True):
    """One expression of a label selector. Values that are absent and values that are empty differ in error texts only."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class LabelSelector(Wire, kw_only=True):
    """Labels to select by. An absent selector matches nothing, an empty one everything: keep None and `{}` apart."""

    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class ListMeta(Wire, kw_only=True):
    """The version of a list, and the token for its next part."""

    resource_version: str = ""
    continue_: str = field(default="", name="continue")
    remaining_item_count: int | None = None


class Preconditions(Wire, kw_only=True):
    """What must hold for a deletion to go ahead."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Wire, kw_only=True):
    """How to delete."""

    api_version: str = always("v1")
    kind: str = always("DeleteOptions")
    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = None
    propagation_policy: str | None = None
    dry_run: tuple[str, ...] = ()


class StatusCause(Wire, kw_only=True):
    """One reason behind a refusal."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Wire, kw_only=True):
    """What a refusal is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(Wire, kw_only=True):
    """The API server's answer when it does not send an object."""

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
    """Return the API's text for a moment, cut to whole seconds as `metadata` and conditions carry it."""
    return datetime.fromtimestamp(int(seconds // 1), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(seconds: float) -> str:
    """Return the API's text for a moment with six decimals, as leases and events carry it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
