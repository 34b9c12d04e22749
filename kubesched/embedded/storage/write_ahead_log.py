"""The write-ahead log: every write in one file, so that a server started again knows what its predecessor acknowledged.

In: one record per write, handed to the kernel before the write is acknowledged: a process killed at any moment loses
nothing it acknowledged. Against the loss of power there is the sync policy: `always` syncs every record before it is
acknowledged, `interval` syncs once a second, `never` leaves it to the kernel.
A record is its length, its checksum, a line `[version, table, key]` and the object; no object means deleted.
The file is written anew, to a second name that then takes the first's place, at start and when most of it is outdated.
A last record cut short was never acknowledged and is dropped; damage anywhere else stops the start.
"""

from __future__ import annotations

import os
import re
import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from kubesched.errors import ConfigError, newer_format

try:
    import fcntl
except ImportError:  # Windows has no locks of this kind; what only reads a snapshot works there all the same
    fcntl = None  # type: ignore[assignment]

FILE_NAME = "objects.log"
SYNC_POLICIES = ("always", "interval", "never")
SYNC_INTERVAL_SECONDS = 1.0
FORMAT = 1
MAGIC = b"kubesched objects %d\n" % FORMAT
REWRITE_BYTES = 64 * 1024 * 1024  # a smaller log is never rewritten while the server runs
_HEAD = struct.Struct("<II")
_encode = msgspec.json.Encoder().encode

Record = tuple[int, str, str, bytes]  # version, table, key, object as JSON (empty: deleted)


class WriteAheadLog:
    """The open log of one data directory. A lock on the directory keeps a second server out."""

    def __init__(self, directory: Path, sync: str = "interval") -> None:
        if sync not in SYNC_POLICIES:
            raise ConfigError("fsync", f"unknown policy {sync!r}; expected one of {', '.join(SYNC_POLICIES)}")
        if fcntl is None:
            raise ConfigError("data-dir", "it needs file locks, which this system does not have")
        self.path = directory / FILE_NAME
        self._sync = sync
        self._synced_at = time.monotonic()
        self._size = 0
        self._live_size = 0
        self._file = -1
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(directory, os.O_RDONLY)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise ConfigError("data-dir", f"{directory} is in use by another server") from None
        except OSError as error:
            raise ConfigError("data-dir", f"{directory}: {error.strerror}") from error

    def read(self) -> Iterator[Record]:
        """Yield every complete record in order. A cut-off last record is skipped: its write was never acknowledged."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return
        if not data.startswith(MAGIC):
            if MAGIC.startswith(data):
                return  # killed while the very first bytes were written
            if found := re.match(rb"kubesched objects (\d+)\n", data):
                raise ConfigError("data-dir", newer_format(str(self.path), int(found[1]), FORMAT))
            raise ConfigError("data-dir", f"{self.path} is not a kubesched object log")
        at = len(MAGIC)
        while at + _HEAD.size <= len(data):
            length, checksum = _HEAD.unpack_from(data, at)
            end = at + _HEAD.size + length
            if end > len(data):
                return
            body = data[at + _HEAD.size : end]
            if zlib.crc32(body) != checksum:
                if end == len(data):
                    return
                raise ConfigError("data-dir", f"{self.path} is damaged at byte {at}; restore it or start with an empty one")
            head, _, raw = body.partition(b"\n")
            version, table, key = msgspec.json.decode(head, type=tuple[int, str, str])
            yield version, table, key, raw
            at = end

    def rewrite(self, version: int, live: Iterable[Record]) -> None:
        """Replace the log by one with exactly `live`: a new file is written, synced and renamed over the old one."""
        fresh = self.path.with_suffix(".new")
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        size = 0
        pending = [MAGIC, _frame((version, "", "", b""))]
        for record in live:
            pending.append(_frame(record))
            if len(pending) >= 1024:
                size += _write_all(file, b"".join(pending))
                pending = []
        size += _write_all(file, b"".join(pending))
        os.fsync(file)
        os.rename(fresh, self.path)
        os.fsync(self._lock)
        if self._file >= 0:
            os.close(self._file)
        self._file = file
        self._size = self._live_size = size

    def append(self, record: Record) -> None:
        """Write one record. When this returns, killing the process cannot lose it."""
        try:
            self._size += self._write(_frame(record))
        except OSError:
            os.ftruncate(self._file, self._size)  # a half record in the middle would read as damage
            os.lseek(self._file, 0, os.SEEK_END)
            raise
        if self._sync == "always" or (self._sync == "interval" and time.monotonic() - self._synced_at > SYNC_INTERVAL_SECONDS):
            self.sync()

    @property
    def is_mostly_outdated(self) -> bool:
        """Whether a rewrite is worth it: over 64 MiB, and over four times what was alive at the last one."""
        return self._size > REWRITE_BYTES and self._size > 4 * self._live_size

    def sync(self) -> None:
        """Force what was written to the disk."""
        self._synced_at = time.monotonic()
        os.fdatasync(self._file)

    def _write(self, data: bytes) -> int:
        return _write_all(self._file, data)

    def close(self) -> None:
        if self._file >= 0:
            os.fsync(self._file)
            os.close(self._file)
            self._file = -1
        os.close(self._lock)


def _frame(record: Record) -> bytes:
    """Return a record as bytes: length, checksum, a line with version, table and key, then the object."""
    version, table, key, raw = record
    body = _encode([version, table, key]) + b"\n" + raw
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def _write_all(file: int, data: bytes) -> int:
    """Write all of `data`, however often the kernel takes only a part."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    return len(data)
