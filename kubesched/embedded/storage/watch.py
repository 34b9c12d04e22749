"""Watches: the changes of one table for readers that follow along, and the recent past for readers that resume.

In: one `Change` per write, in the order of versions. Out: `WatchEvent`s in the buffer of each reader.

* A reader with a selector sees an update that enters its selection as ADDED, and one that leaves it as DELETED. * A change is
encoded once for all readers that see it in the same form. * The past is bounded by count and by bytes; a reader that needs more
gets 410. It is kept as JSON, a fifth of the parsed size. * A reader whose buffer is full is closed. It never blocks the writer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from typing import Any

import msgspec

from kubesched.embedded.api_errors import expired
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.storage.selectors import PINNABLE, Pin, field_value

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"
BUFFER_LIMIT = 65_536  # events that a reader may be behind
HISTORY_BYTES = 32 * 1024 * 1024  # of JSON, for each table
_encode = msgspec.json.Encoder().encode


class Entry:
    """One version of one object. It never changes."""

    __slots__ = ("_obj", "_raw", "key", "namespace", "version")

    def __init__(self, key: str, obj: Object, version: int) -> None:
        self.key = key
        self.namespace: str = obj["metadata"].get("namespace", "")
        self._obj: Object | None = obj
        self.version = version
        self._raw: bytes | None = None

    @property
    def obj(self) -> Object:
        """The object. After `pack` it is parsed again at each access."""
        if self._obj is not None:
            return self._obj
        parsed: Object = msgspec.json.decode(self.raw)
        return parsed

    @property
    def raw(self) -> bytes:
        """The object as JSON, encoded on first use."""
        if self._raw is None:
            self._raw = _encode(self._obj)
        return self._raw

    def pack(self) -> None:
        """Keep the JSON alone: for old versions, and for objects that are rarely read."""
        self._raw = self.raw
        self._obj = None


class WatchEvent:
    """One event of a watch. All readers that see a change in the same way share it."""

    __slots__ = ("_frames", "entry", "type")

    def __init__(self, kind: str, entry: Entry) -> None:
        self.type = kind
        self.entry = entry
        self._frames: dict[Hashable, bytes] = {}

    @property
    def obj(self) -> Object:
        return self.entry.obj

    def frame(self, form: Hashable, encode: Callable[[Entry], bytes]) -> bytes:
        """Return the line of the stream in one form (a version, a table). The first reader encodes it, the others reuse it."""
        line = self._frames.get(form)
        if line is None:
            line = b'{"type":"%b","object":%b}\n' % (self.type.encode(), encode(self.entry))
            self._frames[form] = line
        return line


class Change:
    """One write: the entry before and after. A creation has no old entry, a deletion no new one."""

    __slots__ = ("_events", "new", "old", "version")

    def __init__(self, version: int, old: Entry | None, new: Entry | None) -> None:
        self.version = version
        self.old = old
        self.new = new
        self._events: dict[str, WatchEvent] = {}

    @property
    def size(self) -> int:
        """The bytes of JSON that this change added to the past."""
        entry = self.new or self.old
        assert entry is not None
        return len(entry.raw)

    @property
    def key(self) -> str:
        entry = self.new or self.old
        assert entry is not None
        return entry.key

    @property
    def namespace(self) -> str:
        entry = self.new or self.old
        assert entry is not None
        return entry.namespace

    def event(self, matches: Callable[[Object], bool] | None) -> WatchEvent | None:
        """Return the event that a reader with this selector sees, or None."""
        was = self.old is not None and (matches is None or matches(self.old.obj))
        now = self.new is not None and (matches is None or matches(self.new.obj))
        if now:
            return self._shared(MODIFIED if was else ADDED)
        return self._shared(DELETED) if was else None

    def settle(self) -> None:
        """Drop the parsed old object and the encoded lines: after delivery only resuming readers need this change."""
        self._events = {}
        if self.old is not None:
            self.old.pack()

    def _shared(self, kind: str) -> WatchEvent:
        """Return the event of a type, made once for all readers."""
        event = self._events.get(kind)
        if event is None:
            entry = self._last_seen() if kind == DELETED else self.new
            assert entry is not None
            event = self._events[kind] = WatchEvent(kind, entry)
        return event

    def _last_seen(self) -> Entry:
        """Return the old object with the version of the change: a DELETED event carries the version of the deletion."""
        assert self.old is not None
        obj = dict(self.old.obj)
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.version)}
        return Entry(self.old.key, obj, self.version)


class Watch:
    """One reader of a table. Drain it, or iterate over it in an event loop; close it in the end."""

    def __init__(
        self,
        feed: Feed,
        namespace: str,
        matches: Callable[[Object], bool] | None,
        limit: int = BUFFER_LIMIT,
        pin: Pin | None = None,
    ) -> None:
        self.closed = False
        self.pin = pin
        self._feed = feed
        self._namespace = namespace
        self._matches = matches
        self._limit = limit
        self._buffer: deque[WatchEvent] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def offer(self, change: Change) -> None:
        """Buffer the event that `change` is for this reader, if it is one."""
        if self._namespace and change.namespace != self._namespace:
            return
        event = change.event(self._matches)
        if event is not None:
            self.put(event)

    def put(self, event: WatchEvent) -> None:
        """Buffer an event. A full buffer is thrown away and the watch closed: the reader has to list again anyway."""
        if len(self._buffer) >= self._limit:
            self._buffer.clear()  # the reader must start over anyway; do not keep old versions alive for it
            self.close()
            return
        self._buffer.append(event)
        self._wake()

    def preload(self, events: Iterable[WatchEvent]) -> None:
        """Buffer the initial state; it does not count against the limit."""
        self._buffer.extend(events)
        self._limit += len(self._buffer)

    def drain(self) -> list[WatchEvent]:
        """Return and clear what is buffered."""
        events = list(self._buffer)
        self._buffer.clear()
        return events

    def close(self) -> None:
        """End the watch; what is buffered can still be drained."""
        if not self.closed:
            self.closed = True
            self._feed.forget(self)
            self._wake()

    async def arrived(self) -> None:
        """Wait until there is something to drain or the watch is closed."""
        if not self._buffer and not self.closed:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def __aiter__(self) -> AsyncIterator[WatchEvent]:
        while True:
            await self.arrived()
            for event in self.drain():
                yield event
            if self.closed:
                return


class Feed:
    """The recent changes of one table, and its readers.

    Kubelets watch the pods of one node, and `kubectl get -w` a single name: there may be thousands of such readers. They are
    kept by the value that they pin (`spec.nodeName=n1`), so a change is offered only to those of its old and new value.
    """

    def __init__(self, start_version: int, limit: int) -> None:
        self.oldest = start_version  # changes after this version are known
        self._limit = limit
        self._n_bytes = 0
        self._history: deque[Change] = deque()
        self._watches: dict[Watch, None] = {}
        self._pinned: dict[str, dict[str, dict[Watch, None]]] = {}  # field: value: the readers that want no other
        self._listeners: list[Callable[[Change], None]] = []

    def record(self, change: Change) -> None:
        """Append a change to the past, and forget the oldest ones beyond the limits."""
        self._history.append(change)
        self._n_bytes += change.size
        while len(self._history) > self._limit or self._n_bytes > HISTORY_BYTES:
            self._forget_oldest()

    def deliver(self, change: Change) -> None:
        """Offer a change to the readers, then to the listeners."""
        for watch in list(self._watches):
            watch.offer(change)
        for field, by_value in self._pinned.items():
            sides = {field_value(entry.obj, PINNABLE[field]) for entry in (change.old, change.new) if entry is not None}
            for value in sides:
                for watch in list(by_value.get(value, ())):
                    watch.offer(change)
        for listener in self._listeners:
            listener(change)

    def _forget_oldest(self) -> None:
        change = self._history.popleft()
        self.oldest = change.version
        self._n_bytes -= change.size

    def forget_until(self, version: int) -> None:
        """Forget changes up to `version`."""
        while self._history and self._history[0].version <= version:
            self._forget_oldest()

    def compact(self, version: int) -> None:
        """Forget changes up to `version`, and refuse readers that resume from before it."""
        self.forget_until(version)
        self.oldest = max(self.oldest, version)

    def since(self, version: int) -> list[Change]:
        """Return the changes after `version`, oldest first; 410 if some are forgotten."""
        if version < self.oldest:
            raise expired(f"too old resource version: {version} ({self.oldest})")
        found = []
        for change in reversed(self._history):
            if change.version <= version:
                break
            found.append(change)
        found.reverse()
        return found

    def open(
        self,
        namespace: str,
        matches: Callable[[Object], bool] | None,
        limit: int = BUFFER_LIMIT,
        pin: Pin | None = None,
    ) -> Watch:
        """Add a reader; `pin` is a field for which its selector demands one value."""
        watch = Watch(self, namespace, matches, limit, pin)
        if pin is None:
            self._watches[watch] = None
        else:
            self._pinned.setdefault(pin[0], {}).setdefault(pin[1], {})[watch] = None
        return watch

    def forget(self, watch: Watch) -> None:
        """Remove a reader."""
        if watch.pin is None:
            self._watches.pop(watch, None)
            return
        field, value = watch.pin
        held = self._pinned[field].get(value)
        if held is not None:
            held.pop(watch, None)
            if not held:
                del self._pinned[field][value]

    def _all(self) -> list[Watch]:
        pinned = [watch for by_value in self._pinned.values() for held in by_value.values() for watch in held]
        return [*self._watches, *pinned]

    def listen(self, listener: Callable[[Change], None]) -> None:
        """Call `listener` with every change from now on, once the write is complete."""
        self._listeners.append(listener)

    def close(self) -> None:
        for watch in self._all():
            watch.close()

    @property
    def has_listeners(self) -> bool:
        return bool(self._listeners)

    @property
    def n_watches(self) -> int:
        return len(self._all())


def bookmark(kind: str, api_version: str, version: int, is_initial_end: bool = False) -> bytes:
    """Return a BOOKMARK line, which tells a reader the version it has seen everything up to."""
    metadata: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
    if is_initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    obj = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
    return b'{"type":"BOOKMARK","object":%b}\n' % _encode(obj)
