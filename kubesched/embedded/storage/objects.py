"""Storage: all objects in tables under one version counter, with their recent past.

In: complete objects to write or remove; the verbs decide which. Out: entries, lists as of a version, and changes for watches.

* Every write takes the next number of one counter, as in etcd; it becomes the object's resourceVersion. * A write is in the
write-ahead log before any watch sees it. * Objects are never changed in place, so a version that was read stays as it was. *
Changes are kept for five to ten minutes, as etcd is compacted, and only so many of a table.
"""

from __future__ import annotations

import time
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator

import msgspec

from kubesched.embedded.schema.resources import Object
from kubesched.embedded.storage.watch import Change, Entry, Feed
from kubesched.embedded.storage.write_ahead_log import Record, WriteAheadLog

HISTORY_LIMIT = 10_000  # changes of a table
COMPACT_SECONDS = 300.0  # as kube-apiserver compacts etcd


class Table:
    """The objects of one resource, in the order of namespace and name: the order of lists."""

    def __init__(self, name: str, start_version: int, history_limit: int) -> None:
        self.name = name
        self.entries: dict[str, Entry] = {}
        self.keys: list[str] = []
        self.feed = Feed(start_version, history_limit)

    def put(self, entry: Entry) -> None:
        """Insert or replace an entry. New names mostly sort last (generated, counted), so the end is tried first."""
        if entry.key not in self.entries:
            if self.keys and entry.key < self.keys[-1]:
                insort(self.keys, entry.key)
            else:
                self.keys.append(entry.key)
        self.entries[entry.key] = entry

    def drop(self, key: str) -> None:
        """Remove an entry, if it is there."""
        if self.entries.pop(key, None) is not None:
            del self.keys[bisect_left(self.keys, key)]

    def in_namespace(self, namespace: str) -> list[Entry]:
        """Return the entries of a namespace in order; of all namespaces for ""."""
        return [self.entries[key] for key in _range(self.keys, namespace)] if self.keys else []

    def as_of(self, version: int, namespace: str) -> list[Entry]:
        """Return the entries as they were after `version`, by undoing the later changes; 410 if those are forgotten."""
        changes = self.feed.since(version)
        if not changes:
            return self.in_namespace(namespace)
        then: dict[str, Entry] = dict(self.entries)
        for change in reversed(changes):
            if change.old is None:
                then.pop(change.key, None)
            else:
                then[change.key] = change.old
        return [then[key] for key in _range(sorted(then), namespace)]


def _range(keys: list[str], namespace: str) -> list[str]:
    """Return the keys of a namespace: those between "ns/" and "ns0", for "0" is the character after "/"."""
    if not namespace:
        return keys
    return keys[bisect_left(keys, namespace + "/") : bisect_left(keys, namespace + "0")]  # "0" follows "/"


class Storage:
    """All tables under one counter."""

    def __init__(
        self,
        journal: WriteAheadLog | None = None,
        history_limit: int = HISTORY_LIMIT,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.version = 1
        self._now = now
        self._start = 1  # nothing is known about changes before this version
        self._tables: dict[str, Table] = {}
        self._journal = journal
        self._history_limit = history_limit
        self._undelivered: deque[tuple[Table, Change | None]] = deque()  # None: the end of a table
        self._listeners: list[Callable[[str, Change], None]] = []
        self._delivering = False
        if journal is not None:
            self._load(journal)
        self._compact_to, self._compact_at = self.version, now() + COMPACT_SECONDS

    def table(self, name: str) -> Table:
        """Return a table, creating it if needed."""
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = Table(name, self._start, self._history_limit)
        return found

    def tables(self) -> Iterator[Table]:
        return iter(list(self._tables.values()))

    def write(self, table: Table, key: str, obj: Object) -> Entry:
        """Store `obj` as the next version and publish the change; the caller gives the object away."""
        version = self.version + 1
        obj["metadata"]["resourceVersion"] = str(version)
        entry = Entry(key, obj, version)
        if self._journal is not None:
            self._journal.append((version, table.name, key, entry.raw))
        old = table.entries.get(key)
        self.version = version
        table.put(entry)
        self._publish(table, Change(version, old, entry))
        return entry

    def remove(self, table: Table, key: str) -> Entry:
        """Remove what is stored under `key` and return it with the version of its removal."""
        version = self.version + 1
        if self._journal is not None:
            self._journal.append((version, table.name, key, b""))
        change = Change(version, table.entries[key], None)
        self.version = version
        table.drop(key)
        self._publish(table, change)
        event = change.event(None)
        assert event is not None
        return event.entry

    def listen(self, table: str, listener: Callable[[Change], None]) -> None:
        """Call `listener` with every change to a table from now on."""
        self.table(table).feed.listen(listener)

    def listen_to_all(self, listener: Callable[[str, Change], None]) -> None:
        """Call `listener` with the name of the table and every change from now on, after the table's own listeners."""
        self._listeners.append(listener)

    def drop_table(self, table: Table) -> None:
        """Remove every object of a table, end its watches, and forget the table, as when a custom resource is deleted.

        The table goes last, once the deletions are delivered. It stays if somebody listens to it by name (a quota that counts
        it), or if it has objects again by then. The past goes with it: a table of this name that comes later must not answer
        for versions before now, and `_start` says so for every table that does not exist yet.
        """
        for key in list(table.entries):
            self.remove(table, key)
        self._undelivered.append((table, None))
        self._deliver()

    def compact(self) -> None:
        """Forget the past of all tables; watches and pages that need it get 410 and start over."""
        for table in self._tables.values():
            table.feed.compact(self.version)

    def _compact_in_time(self) -> None:
        """Forget, every five minutes, the changes that are older than five minutes.

        A table without changes forgets nothing, so an idle watch can resume after hours.
        """
        now = self._now()
        if now >= self._compact_at:
            for table in self._tables.values():
                table.feed.forget_until(self._compact_to)
            self._compact_to, self._compact_at = self.version, now + COMPACT_SECONDS

    def close(self) -> None:
        for table in self._tables.values():
            table.feed.close()
        if self._journal is not None:
            self._journal.close()

    def _publish(self, table: Table, change: Change) -> None:
        """Record a change in the past of its table, and deliver it."""
        self._compact_in_time()
        table.feed.record(change)
        self._undelivered.append((table, change))
        self._deliver()

    def _deliver(self) -> None:
        """Deliver in order of version. A listener may write: its change is queued, and delivered by the call under way."""
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._undelivered:
                table, change = self._undelivered.popleft()
                if change is None:
                    self._forget(table)
                    continue
                table.feed.deliver(change)
                for listener in self._listeners:
                    listener(table.name, change)
                change.settle()
        finally:
            self._delivering = False
        if self._journal is not None and self._journal.is_mostly_outdated:
            self._journal.rewrite(self.version, self._live())

    def _forget(self, table: Table) -> None:
        """Forget a table that was dropped, unless it is in use again."""
        if not table.entries and not table.feed.has_listeners:
            table.feed.close()
            self._tables.pop(table.name, None)
            self._start = self.version

    def _live(self) -> Iterator[Record]:
        """Yield all objects as records, for a new write-ahead log."""
        for table in self._tables.values():
            for entry in table.entries.values():
                yield entry.version, table.name, entry.key, entry.raw

    def _load(self, journal: WriteAheadLog) -> None:
        """Read the log: the last record of each key counts. Then write the log anew, without what is outdated."""
        raws: dict[tuple[str, str], tuple[int, bytes]] = {}
        for version, table, key, raw in journal.read():
            self.version = max(self.version, version)
            if not table:
                continue
            raws.pop((table, key), None)
            if raw:
                raws[table, key] = (version, raw)
        self._start = self.version
        for (name, key), (version, raw) in raws.items():
            self.table(name).put(Entry(key, msgspec.json.decode(raw), version))
        journal.rewrite(self.version, self._live())
