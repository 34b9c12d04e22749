"""A log of changes, and readers that follow it. Everything that is derived from something else is kept up to date by this.

In: one entry for each change. Out: for each reader the entries since it last looked, or None for "everything". It is None the
first time, after a restart of the log, for another log than before, and if the log has forgotten some of the entries.

Code that keeps a derived value has a `Reader` of the log and two ways to go on: update what the entries name, or compute all of
it anew. Example: entries 0 to 4 are written, and a reader has read up to position 3. `changed` returns entries 3 and 4. When
1,024 more entries came, the log has dropped the oldest half, and `changed` returns None.
"""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

T = TypeVar("T")


class ChangeLog(Generic[T]):
    """The newest changes, in order. A position is the number of all changes before it."""

    __slots__ = ("entries", "start")

    longest: ClassVar[int] = 1 << 10
    """How many changes are kept at most. A reader further behind had better compute all of it anew; and a change may keep an
    object alive that is gone."""

    def __init__(self) -> None:
        self.entries: list[T] = []
        self.start = 0

    @property
    def end(self) -> int:
        """Return the position after the last change."""
        return self.start + len(self.entries)

    def append(self, entry: T) -> None:
        """Write down a change."""
        self.entries.append(entry)
        if len(self.entries) > self.longest:
            n_forgotten = self.longest // 2
            del self.entries[:n_forgotten]
            self.start += n_forgotten

    def since(self, position: int) -> list[T] | None:
        """Return the changes from a position on; None if some of them are forgotten."""
        return self.entries[position - self.start :] if position >= self.start else None

    def restart(self) -> None:
        """Forget all changes: every reader gets None next."""
        self.start = self.end + 1
        self.entries.clear()


class Reader(Generic[T]):
    """A position in a log, up to which its owner has read."""

    __slots__ = ("_log", "_position")

    def __init__(self, log: ChangeLog[T] | None = None) -> None:
        """Start at the end of a log, or without a log: then everything is new."""
        self._log = log
        self._position = log.end if log is not None else 0

    @property
    def position(self) -> int:
        """Return up to which position everything was read."""
        return self._position

    def is_current(self, log: ChangeLog[T]) -> bool:
        """Return whether there is nothing new in a log."""
        return log is self._log and log.start + len(log.entries) == self._position

    def changed(self, log: ChangeLog[T]) -> list[T] | None:
        """Return what is new in a log since the last time; None if that is everything."""
        position, self._position = self._position, log.start + len(log.entries)
        if log is not self._log:
            self._log = log
            return None
        return log.entries[position - log.start :] if position >= log.start else None

    def forget(self) -> None:
        """Let everything be new the next time."""
        self._log = None
