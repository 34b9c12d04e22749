"""The decision log: every record as a line of JSON in a file that is rotated by size.

In: records as they are kept. Out: FILE, and FILE.1, FILE.2, ... with what was before, so many and no more. Lines are held back
until `flush`, which whoever runs the engine calls about once a second. A disk that is full costs the lines of that second
and one line in the log, never a decision.
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
    """Writes records to a file; to be put among a recorder's listeners."""

    def __init__(self, path: str, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> None:
        """Go on with a file, or begin it; raise OSError if that cannot be."""
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
        """Write what is held back; what cannot be written is lost, which is said once."""
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
        """Write the rest."""
        self.flush()
        if self._file is not None:
            self._file.close()

    def _rotate(self) -> None:
        """Move every file one number on, drop the last, and begin anew."""
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
