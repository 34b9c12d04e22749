"""The history of a run: one line for everything that happened, and what was wrong about it.

In: lines from all parts. Out: a text that is the same, byte for byte, for the same seed; its digest; the violations.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import traceback
from collections.abc import Callable

from chaos.disk import PowerLost
from chaos.sabotage import Liar, Sabotaged
from kubesched.errors import PluginError


class Violation(AssertionError):
    """Something happened that must never happen."""


class History:
    """What happened."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.lines: list[str] = []
        self.violations: list[str] = []
        self._now = now

    def note(self, text: str) -> None:
        """Write a line."""
        self.lines.append(f"{self._now():.6f} {text}")

    def violated(self, text: str) -> None:
        """Write down that something was wrong."""
        self.note(f"VIOLATION {text}")
        self.violations.append(text)

    def end(self) -> None:
        """Let go of the world."""
        self._now = lambda: 0.0

    @property
    def digest(self) -> str:
        """Return what is the same for the same history only."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()


def is_ours(error: BaseException | None) -> bool:
    """Return whether an exception goes back to a fault: a plugin that does harm on purpose, a full disk, a loss of power."""
    while error is not None:
        if isinstance(error, (Sabotaged, PowerLost)) or (isinstance(error, OSError) and error.errno == errno.ENOSPC):
            return True
        if isinstance(error, PluginError) and error.plugin == Liar.name:
            return True
        error = error.__cause__ or error.__context__
    return False


class Listener(logging.Handler):
    """Hears what the program logs: an exception that was caught in the last moment is a violation."""

    def __init__(self, history: History, is_loud: bool = False) -> None:
        super().__init__(logging.DEBUG if is_loud else logging.ERROR)
        self._history = history
        self._is_loud = is_loud

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None and not is_ours(record.exc_info[1]):
            where = traceback.extract_tb(record.exc_info[2])[-1]
            error = record.exc_info[1]
            self._history.violated(f"{text}: {type(error).__name__}: {error} ({where.name}:{where.lineno})")
        elif self._is_loud:
            self._history.note(f"log {record.name} {text}")
