"""The expiry of Event objects: each lives an hour after its last write, and at most 20,000 are kept.

In: every change to Events. Out: expired Events removed, at the next write of anything. Events are kept as JSON, because most
are never read.
"""

from __future__ import annotations

from collections import OrderedDict

from kubesched.embedded.clock import ServerClock
from kubesched.embedded.storage.objects import Storage
from kubesched.embedded.storage.watch import Change

TABLE = "events"
TTL_SECONDS = 3600.0
MOST_EVENTS = 20_000


class EventExpiry:
    """The Events by expiry time, the next one to expire first.

    A write moves its Event to the end, so the order needs no heap.
    """

    def __init__(self, storage: Storage, clock: ServerClock) -> None:
        self._storage = storage
        self._clock = clock
        self._ends: OrderedDict[str, float] = OrderedDict()
        for key, entry in storage.table(TABLE).entries.items():
            self._ends[key] = clock.now() + TTL_SECONDS  # kept from before; each gets an hour from now
            entry.pack()
        storage.listen(TABLE, self._changed)

    def __len__(self) -> int:
        return len(self._ends)

    def _changed(self, change: Change) -> None:
        """Note a new expiry time for an Event that was written; forget one that was deleted."""
        self._ends.pop(change.key, None)
        if change.new is not None:
            self._ends[change.key] = self._clock.now() + TTL_SECONDS
            change.new.pack()

    def remove_expired(self) -> None:
        """Remove the Events that have expired, and the oldest ones if there are too many."""
        now, table = self._clock.now(), self._storage.table(TABLE)
        while self._ends and (len(self._ends) > MOST_EVENTS or next(iter(self._ends.values())) <= now):
            key, _ = self._ends.popitem(last=False)
            if key in table.entries:  # a deletion whose change is not delivered yet
                self._storage.remove(table, key)
