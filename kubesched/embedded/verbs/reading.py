"""Reading: lists as of one version, in pages, and watches that go on where a list ended.

In: selectors, versions and limits of a request. Out: entries and watches. Nothing here writes.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

import msgspec

from kubesched.embedded.api_errors import bad_request, expired, invalid_options, version_too_large
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.storage.objects import Table
from kubesched.embedded.storage.selectors import name_in, pin_of, predicate
from kubesched.embedded.storage.watch import ADDED, BUFFER_LIMIT, Entry, Watch, WatchEvent
from kubesched.embedded.validation import field
from kubesched.embedded.validation.field import Cause
from kubesched.embedded.verbs.context import Context, key_of
from kubesched.errors import Gone

_STALE_TOKEN = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_ANY_VERSION = -1  # in a token: continue with whatever is there now


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The parameters of a list or a watch."""

    namespace: str = ""  # empty for all namespaces
    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0  # 0 for no limit
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""  # Exact or NotOlderThan
    send_initial_events: bool | None = None  # begin a watch with the objects that there are; None is the old rule


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a list. All pages of a list show the same version, however much is written meanwhile."""

    entries: list[Entry]
    version: int
    continue_token: str = ""
    n_remaining: int | None = None  # objects on later pages; unknown with a selector

    @property
    def items(self) -> list[Object]:
        """The objects of the page, in their storage version."""
        return [entry.obj for entry in self.entries]

    @property
    def resource_version(self) -> str:
        return str(self.version)


def list_objects(context: Context, resource: Resource, query: ListQuery) -> Listing:
    """Return one page, in the order of namespace and name, as of one version.

    Which version: that of the continue token; the one asked for with resourceVersionMatch=Exact, or with a limit and a
    version; otherwise the newest.
    """
    matches = predicate(resource, query.label_selector, query.field_selector)
    _check_list(query)
    wanted = _version_of(context, query.resource_version)
    if wanted > context.storage.version:
        raise version_too_large(wanted, context.storage.version)
    table, current = context.table(resource), context.storage.version
    version, start = current, ""
    if query.continue_token:
        version, start = _read_token(query.continue_token)
        if version == _ANY_VERSION:
            version = current
    elif query.resource_version_match == "Exact" or (query.limit and wanted and not query.resource_version_match):
        version = wanted
    name = name_in(query.field_selector)
    if name and version == current and (query.namespace or not resource.namespaced):
        one = table.entries.get(key_of(resource, query.namespace, name))
        entries = [] if one is None else [one]
    else:
        entries = _entries(table, version, query.namespace, start)
    if start:
        entries = [entry for entry in entries if entry.key > start]
    if matches is not None:
        entries = [entry for entry in entries if matches(entry.obj)]
    if not query.limit or len(entries) <= query.limit:
        return Listing(entries, version)
    page = entries[: query.limit]
    n_remaining = len(entries) - len(page) if matches is None else None
    return Listing(page, version, _write_token(version, page[-1].key), n_remaining)


def open_watch(context: Context, resource: Resource, query: ListQuery, buffer_limit: int = BUFFER_LIMIT) -> tuple[Watch, int]:
    """Open a watch with the events it begins with already buffered; return it with the version these reach.

    Without a version, with version 0, or if initial events are asked for, the watch begins with every object as ADDED. With a
    version it begins with what happened since.
    """
    matches = predicate(resource, query.label_selector, query.field_selector)
    _check_watch(query)
    table = context.table(resource)
    wanted = _version_of(context, query.resource_version)
    initial = wanted == 0 if query.send_initial_events is None else query.send_initial_events
    past = [] if initial or wanted == 0 else table.feed.since(wanted)
    watch = table.feed.open(query.namespace, matches, buffer_limit, pin_of(query.field_selector))
    if initial:
        there = table.in_namespace(query.namespace)
        watch.preload(WatchEvent(ADDED, entry) for entry in there if matches is None or matches(entry.obj))
    for change in past:
        watch.offer(change)
    return watch, context.storage.version


def _entries(table: Table, version: int, namespace: str, start: str) -> list[Entry]:
    """Return the entries as of a version. A page that comes too late gets 410 with a token that goes on with newer objects."""
    try:
        return table.as_of(version, namespace)
    except Gone as error:
        if start:
            raise expired(_STALE_TOKEN, _write_token(_ANY_VERSION, start)) from error
        raise


def _version_of(context: Context, text: str) -> int:
    """Return a resourceVersion as a number, 0 for none."""
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise bad_request(f'resourceVersion: Invalid value: "{text}": must be a decimal number')
    return int(text)


def _check_list(query: ListQuery) -> None:
    """Refuse combinations of parameters that kube-apiserver refuses for lists."""
    match, version = query.resource_version_match, query.resource_version
    causes = []
    if match:
        if not version:
            causes.append(_forbidden_match("is forbidden unless resourceVersion is provided"))
        if query.continue_token:
            causes.append(_forbidden_match("is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            causes.append(field.not_supported("resourceVersionMatch", match, ("Exact", "NotOlderThan", "")))
        elif match == "Exact" and version == "0":
            causes.append(_forbidden_match('"exact" is forbidden for resourceVersion "0"'))
    if query.send_initial_events is not None:
        causes.append(field.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if causes:
        raise invalid_options("ListOptions", causes)
    if query.continue_token and version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")


def _check_watch(query: ListQuery) -> None:
    """Refuse combinations of parameters that kube-apiserver refuses for watches."""
    match = query.resource_version_match
    causes = []
    if query.send_initial_events is not None and match != "NotOlderThan":
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(field.forbidden("resourceVersionMatch", text))
    elif match and query.send_initial_events is None:
        causes.append(_forbidden_match("is forbidden for watch unless sendInitialEvents is provided"))
    if match and match != "NotOlderThan":
        causes.append(field.not_supported("resourceVersionMatch", match, ("NotOlderThan",)))
    if query.continue_token:
        causes.append(_forbidden_match("is forbidden when continue is provided"))
    if causes:
        raise invalid_options("ListOptions", causes)


def _forbidden_match(why: str) -> Cause:
    return field.forbidden("resourceVersionMatch", f"resourceVersionMatch {why}")


def _write_token(version: int, key: str) -> str:
    """Return a continue token: the version of the list and the last key of the page."""
    return base64.urlsafe_b64encode(msgspec.json.encode([version, key])).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, str]:
    """Return version and key of a continue token."""
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(raw, type=tuple[int, str])
    except (ValueError, binascii.Error, msgspec.DecodeError):
        raise bad_request("continue key is not valid") from None
