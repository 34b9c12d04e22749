"""The decision log: every record as a line of JSON in a file that is rotated by size.

FILE is the newest, FILE.1 the one before, and so on up to a number of files. Lines are kept in memory until `flush`, which the
program calls about once a second. If the disk is full, the lines of that second are lost and one error is logged; no decision
waits for it.
"""

from __future__ import annotations

import contextlib
import logging
import os
from typing import IO

import msgspec

from kubesched.scheduler.engine.records.decision_record import DecisionRecord, document

MAX_BYTES = 64 << 20
MAX_FILES = 5
DECISION_LOG_FORMAT = 1
"""In every line. A release that changes what a field means raises it, and reads the older ones too."""

log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode


class DecisionLog:
    """Writes records to a file. Add it to a recorder's listeners."""

    def __init__(self, path: str, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> None:
        """Append to a file, or create it; raise OSError if that fails."""
        self._path = path
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._held: list[bytes] = []
        self._file: IO[bytes] | None = open(path, "ab")  # noqa: SIM115  it is closed at the end
        self._is_failing = False

    def __call__(self, record: DecisionRecord) -> None:
        """Take in a record."""
        self._held.append(_encode({"format": DECISION_LOG_FORMAT, **document(record)}) + b"\n")

    def flush(self) -> None:
        """Write the lines in memory. If that fails they are lost, and the first failure is logged."""
        held, self._held = self._held, []
        try:
            for line in held:
                if self._file is None:
                    self._file = open(self._path, "ab")  # noqa: SIM115
                if self._file.tell() and self._file.tell() + len(line) > self._max_bytes:
                    self._rotate()
                assert self._file is not None
                self._file.write(line)
            if self._file is not None:
                self._file.flush()
            self._is_failing = False
        except OSError as error:
            if not self._is_failing:
                log.error("decisions cannot be written to %s and are lost: %s", self._path, error.strerror or error)
            self._is_failing = True

    def close(self) -> None:
        """Write the remaining lines and close the file."""
        self.flush()
        if self._file is not None:
            self._file.close()

    def _rotate(self) -> None:
        """Rename every file to the next number, drop the last one, and start a new file."""
        assert self._file is not None
        self._file.close()
        self._file = None
        names = [self._path, *(f"{self._path}.{i}" for i in range(1, self._max_files))]
        for older, newer in zip(names[:0:-1], names[-2::-1], strict=True):
            with contextlib.suppress(FileNotFoundError):
                os.replace(newer, older)
        if len(names) == 1:
            os.remove(self._path)
        self._file = open(self._path, "ab")  # noqa: SIM115
