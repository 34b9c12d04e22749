"""Decode pages of a list and lines of a watch into our structs.

A whole page, or all lines that have arrived, are decoded by one call of msgspec, without dicts in between. If that fails (a
null where the API means "absent", a value of a wrong type), they are decoded object by object. An object that cannot be read
at all is logged in one line and left out: one broken object must not hide a hundred thousand others. Bytes that are no JSON
were cut off: `AnswerLost`.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import msgspec

from kubesched.errors import AnswerLost, MalformedObject
from kubesched.kube.api import ListMeta, ObjectMeta, Status, Wire, codec
from kubesched.kube.client.informers.resources import CustomObject, Watched

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"

log = logging.getLogger(__name__)


class _OnlyMeta(Wire, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()


class _RawList(Wire, kw_only=True):
    metadata: ListMeta = ListMeta()
    items: tuple[msgspec.Raw, ...] | None = None


class _RawEvent(Wire, kw_only=True):
    type: str
    object: msgspec.Raw


class _Custom(Wire, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()


class Page(NamedTuple):
    """One page of a list."""

    metadata: ListMeta
    items: list[Any]


class Event(NamedTuple):
    """One line of a watch. `object` is an object, something with metadata for a bookmark, a `Status` for an error."""

    verb: str
    object: Any


class Decoder:
    """Decodes one resource, in one of its versions: the items of a list do not say which it is."""

    def __init__(self, watched: Watched, api_version: str = "") -> None:
        self._plural = watched.plural
        self._stamp = api_version if api_version not in ("", watched.api_versions[0]) and watched.type is not None else ""
        self._decode_one: Callable[[bytes], Any] = _decode_custom
        self._pages: msgspec.json.Decoder[Any] | None = None
        self._lines: msgspec.json.Decoder[Any] | None = None
        if watched.type is not None:
            type_ = watched.type
            self._decode_one = lambda raw: codec.decode_as(type_, raw)
            self._pages, self._lines = _decoders_of(type_)

    def page(self, body: bytes) -> Page:
        """Return one page of a list."""
        page = self._page(body)
        if self._stamp:
            return Page(page.metadata, [msgspec.structs.replace(item, api_version=self._stamp) for item in page.items])
        return page

    def _page(self, body: bytes) -> Page:
        if self._pages is not None:
            try:
                found = self._pages.decode(body)
                return Page(found.metadata, found.items)
            except msgspec.ValidationError:
                pass  # one object or more needs a closer look
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise AnswerLost(f"list of {self._plural}: {error}") from error
        try:
            # The slow way, taken only if the fast one failed: each object on its own, so that one malformed object costs itself
            # and not the other 1,999 of the page.
            raw = msgspec.json.decode(body, type=_RawList)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise AnswerLost(f"list of {self._plural}: {error}") from error
        return Page(raw.metadata, [obj for item in raw.items or () if (obj := self._lenient(bytes(item))) is not None])

    def lines(self, data: bytes) -> list[Event]:
        """Return the events of whole lines."""
        if self._lines is not None:
            try:
                return self._lines.decode_lines(data)
            except msgspec.ValidationError:
                pass
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise AnswerLost(f"watch of {self._plural}: {error}") from error
        return [event for line in data.splitlines() if line and (event := self._event(line)) is not None]

    def _event(self, line: bytes) -> Event | None:
        try:
            raw = msgspec.json.decode(line, type=_RawEvent)
            # By verb first: an error carries a Status and a bookmark an object with metadata alone. Read as the resource they
            # would be malformed.
            if raw.type == ERROR:
                return Event(ERROR, msgspec.json.decode(raw.object, type=Status))
            if raw.type == BOOKMARK:
                return Event(BOOKMARK, msgspec.json.decode(raw.object, type=_OnlyMeta))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise AnswerLost(f"watch of {self._plural}: {error}") from error
        obj = self._lenient(bytes(raw.object))
        return None if obj is None else Event(raw.type, obj)

    def _lenient(self, raw: bytes) -> Any | None:
        try:
            return self._decode_one(raw)
        except MalformedObject as error:
            log.error("%s; the object is left out until it is mended", error)
            return None


@contextmanager
def garbage_kept() -> Iterator[None]:
    """Switch the garbage collector off while many objects are decoded at once.

    Frozen structs cannot form cycles, but creating them starts collection after collection: a list of 100,000 pods
    took 35 to 58 µs a pod with the collector and 14 µs without.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _decode_custom(raw: bytes) -> CustomObject:
    content = codec.decode_json(raw)
    if not isinstance(content, dict):
        raise MalformedObject("object", "body", content, "expected a JSON object")
    return CustomObject(codec.convert(content, _Custom).metadata, content)


@cache
def _decoders_of(type_: type) -> tuple[msgspec.json.Decoder[Any], msgspec.json.Decoder[Any]]:
    """Return what reads pages and lines of a type; made once, as each makes classes of its own."""
    return msgspec.json.Decoder(_page_of(type_)), msgspec.json.Decoder(_events_of(type_))


def _page_of(type_: type) -> type[msgspec.Struct]:
    fields: list[Any] = [("metadata", ListMeta, ListMeta()), ("items", list[type_], ())]  # type: ignore[valid-type]
    return msgspec.defstruct(f"{type_.__name__}Page", fields, frozen=True, gc=False)


def _events_of(type_: type) -> Any:
    """Return the union of a watch's events; the verb is the tag, so an error's Status is never read as an object."""
    bodies = {ADDED: type_, MODIFIED: type_, DELETED: type_, BOOKMARK: _OnlyMeta, ERROR: Status}
    union: Any = None
    for verb, body in bodies.items():
        fields: list[Any] = [("object", body)]
        made = msgspec.defstruct(
            f"{type_.__name__}{verb.title()}",
            fields,
            tag=verb,
            tag_field="type",
            frozen=True,
            gc=False,
            namespace={"verb": verb},
        )
        union = made if union is None else union | made
    return union
