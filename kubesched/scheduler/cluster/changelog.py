"""What changed, in order, and readers who follow it: the one way in which anything is kept up to date.

In: one entry for every change. Out: to each reader what is new since it last looked, or "everything", the first time and
whenever the log cannot tell: when it began anew, when it is another log than before, when too much happened in between.
Whoever keeps something that follows from something else has a `Reader` of its log, and two ways to go on: repair what the
entries name, or begin again. So a cluster's journal, the changes to objects of a kind and the nominations are all followed
in the same few lines.
"""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

T = TypeVar("T")


class ChangeLog(Generic[T]):
    """Changes with a bounded memory; a position in it is the number of changes before it."""

    __slots__ = ("entries", "start")

    longest: ClassVar[int] = 1 << 10
    """How many changes are known at most. Who is that far behind had better begin again, and some changes are objects that may
    be gone."""

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
        """Forget everything: positions handed out before now are too old."""
        self.start = self.end + 1
        self.entries.clear()


class Reader(Generic[T]):
    """How far somebody has read a log."""

    __slots__ = ("_log", "_position")

    def __init__(self, log: ChangeLog[T] | None = None) -> None:
        """Begin with the log as it is, or with nothing: then everything is new."""
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
