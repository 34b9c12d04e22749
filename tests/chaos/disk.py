"""A disk that loses what was not synced: the write-ahead log of the simulated API server.

In: the records of a store. Out: the same file as in production, except that syncing only remembers how much is safe, that
the disk may be full, and that the power may go in the middle of a record. `lose_power` leaves what a disk leaves: all that
was synced, and any part of the rest, the last of it possibly damaged.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path

from kubesched.embedded.storage.write_ahead_log import Record, WriteAheadLog


class PowerLost(BaseException):
    """The machine is off; nobody catches this."""


class SimulatedLog(WriteAheadLog):
    """The log of one life of the server."""

    def __init__(
        self,
        directory: Path,
        sync: str,
        chance: random.Random,
        wrote: Callable[[Record], None],
        power_lost: Callable[[], None],
    ) -> None:
        super().__init__(directory, sync)
        self.is_full = False
        self.loses_power_in: int | None = None
        """After how many more records the power goes, in the middle of one."""
        self.under_way: Record | None = None
        """The record that is being written, of which nobody knows whether it will be there."""
        self._wrote, self._power_lost, self._chance = wrote, power_lost, chance
        self._n_safe = 0

    def append(self, record: Record) -> None:
        """Write a record, as far as the disk lets us."""
        self.under_way = record
        super().append(record)
        self.under_way = None
        self._wrote(record)

    def rewrite(self, version: int, live: Iterable[Record]) -> None:
        """Replace the file, which is synced as a whole."""
        super().rewrite(version, live)
        self._n_safe = self._size

    def sync(self) -> None:
        """Know that what is written is safe; a real sync would only cost time here."""
        self._n_safe = self._size

    def _write(self, data: bytes) -> int:
        part = data[: self._chance.randrange(len(data))]
        if self.is_full:
            os.write(self._file, part)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.loses_power_in is not None:
            self.loses_power_in -= 1
            if self.loses_power_in < 0:
                os.write(self._file, part)
                self._power_lost()
                raise PowerLost
        return super()._write(data)

    def abandon(self) -> None:
        """Let go of the files without another word, as the end of a process does."""
        os.close(self._file)
        self._file = -1
        os.close(self._lock)

    def lose_power(self) -> None:
        """Keep what was synced, and a part of the rest by chance."""
        size = self.path.stat().st_size
        kept = self._chance.randint(min(self._n_safe, size), size)
        os.truncate(self.path, kept)
        if kept > self._n_safe and self._chance.random() < 0.5:
            with open(self.path, "r+b") as file:
                file.seek(kept - 1)
                file.write(b"\xff")
