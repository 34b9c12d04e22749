"""How objects go out: as JSON, from the bytes that each entry keeps.

In: the Accept header, entries and listings. Out: bytes, in one of three forms: the object, its metadata alone, or the Table
that `kubectl get` prints. A client that accepts nothing but protobuf gets 406.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from kubesched.embedded.api_errors import not_acceptable
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.storage.watch import Entry
from kubesched.embedded.verbs.conversion import from_storage
from kubesched.embedded.verbs.reading import Listing

encode = msgspec.json.Encoder().encode
JSON = "application/json"
_METADATA_VERSION = "meta.k8s.io/v1"  # of PartialObjectMetadata, which clients ask for to follow many kinds cheaply


@dataclass(frozen=True, slots=True)
class Form:
    """The form of an answer: "Table", "PartialObjectMetadata", or "" for the object itself."""

    kind: str = ""
    version: str = "v1"
    group: str = ""


def wanted_form(accept: str) -> Form:
    """Return the first form of an Accept header that this server writes."""
    if not accept:
        return Form()
    for part in accept.split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        if media not in (JSON, "*/*", "application/*"):
            continue
        given = dict(one.split("=", 1) for one in parameters if "=" in one)
        kind = given.get("as", "").removesuffix("List")
        if kind in ("Table", "PartialObjectMetadata"):
            if given.get("g") == "meta.k8s.io" and given.get("v") == "v1":
                return Form(kind, "v1", "meta.k8s.io")
        elif kind == "APIGroupDiscovery":
            if given.get("v") == "v2":
                return Form(kind, "v2", "apidiscovery.k8s.io")
        elif not kind:
            return Form()
    raise not_acceptable((JSON,))


def encoder_for(resource: Resource, form: Form) -> Callable[[Entry], bytes]:
    """Return the function that writes an entry in a form other than a table. Stored versions cost nothing: they are bytes."""
    if form.kind == "PartialObjectMetadata":
        return _metadata_only
    if resource.is_storage:
        return _raw
    return lambda entry: encode(from_storage(entry.obj, resource))


def _raw(entry: Entry) -> bytes:
    return entry.raw


def _metadata_only(entry: Entry) -> bytes:
    return encode({"kind": "PartialObjectMetadata", "apiVersion": _METADATA_VERSION, "metadata": entry.obj["metadata"]})


def encode_listing(resource: Resource, listing: Listing, form: Form) -> bytes:
    """Return a list; its items are the bytes that the entries keep."""
    if form.kind == "PartialObjectMetadata":
        kind, api_version = "PartialObjectMetadataList", _METADATA_VERSION
    else:
        kind, api_version = f"{resource.kind}List", resource.api_version
    write = encoder_for(resource, form)
    head = encode({"kind": kind, "apiVersion": api_version, "metadata": list_metadata(listing)})
    return b"".join((head[:-1], b',"items":[', b",".join([write(entry) for entry in listing.entries]), b"]}"))


def list_metadata(listing: Listing) -> Object:
    """Return the metadata of a list: its version, and how to go on if it is a page."""
    metadata: Object = {"resourceVersion": listing.resource_version}
    if listing.continue_token:
        metadata["continue"] = listing.continue_token
    if listing.n_remaining is not None:
        metadata["remainingItemCount"] = listing.n_remaining
    return metadata
