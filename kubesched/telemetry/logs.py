"""Logs: klog's verbosity, text and JSON over the standard `logging` module.

    log = logger(__name__)
    log.info("Starting", version="v1.36.4")
    log.error("Cannot bind", err=error, pod=pod.key)
    log.v(5).info("Pod moved to an internal scheduling queue", pod=pod.key, queue="Active")

`log.v(n)` is false, and says nothing, while the verbosity is lower; where even making the values costs too much,
`if log.level >= n:` is one comparison. Modules that use the standard library's loggers are served as well: their info
is verbosity 0 and their debug verbosity 4. Libraries are heard from warnings on, and fully from verbosity 8.

`configure` is called once, by the program; `set_verbosity` at any time. Nothing here knows the other rooms.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import logging
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Protocol, TextIO

from kubesched.telemetry.log_lines import Event, JsonFormatter, TextFormatter

PACKAGE = "kubesched"
DEBUG_VERBOSITY = 4
LIBRARY_VERBOSITY = 8
_NEVER = -1


class Span(Protocol):
    """A length of time."""

    @property
    def seconds(self) -> float:
        """Return it in seconds."""


class LogSettings(Protocol):
    """The logging flags."""

    @property
    def format(self) -> str: ...
    @property
    def flush_frequency(self) -> Span: ...
    @property
    def verbosity(self) -> int: ...
    @property
    def vmodule(self) -> Sequence[tuple[str, int]]: ...
    @property
    def split_stream(self) -> bool: ...
    @property
    def info_buffer_bytes(self) -> int: ...


class Verbose:
    """A logger at one verbosity; false where that is not shown."""

    __slots__ = ("_is_on", "_logger", "_verbosity")

    def __init__(self, to: Logger | None, verbosity: int) -> None:
        self._logger = to
        self._verbosity = verbosity
        self._is_on = to is not None

    def __bool__(self) -> bool:
        return self._is_on

    def info(self, message: str, **values: Any) -> None:
        """Log a line, if this verbosity is shown."""
        if self._logger is not None:
            self._logger._emit(logging.INFO, message, values, self._verbosity)


_SILENT = Verbose(None, _NEVER)


class Logger:
    """One module's structured log."""

    __slots__ = ("_named", "_plain", "level")

    def __init__(self, plain: logging.Logger, level: int, named: str = "") -> None:
        self._plain = plain
        self._named = named
        self.level = level
        """The verbosity up to which this module speaks."""

    def v(self, verbosity: int) -> Verbose:
        """Return this logger at a verbosity."""
        # `_SILENT` is one shared object: a line that is not shown costs a comparison. Callers that must compute their values
        # first check `level` themselves.
        return Verbose(self, verbosity) if verbosity <= self.level else _SILENT

    def info(self, message: str, **values: Any) -> None:
        """Log a line that is always shown."""
        self._emit(logging.INFO, message, values, 0)

    def warning(self, message: str, **values: Any) -> None:
        """Log a warning."""
        self._emit(logging.WARNING, message, values, 0)

    def error(self, message: str, **values: Any) -> None:
        """Log an error; `err` is its cause."""
        self._emit(logging.ERROR, message, values, 0)

    def exception(self, message: str, **values: Any) -> None:
        """Log an error with the traceback of the current exception."""
        self._emit(logging.ERROR, message, values, 0, has_traceback=True)

    def named(self, name: str) -> Logger:
        """Return a logger whose lines carry a name, such as `Filter.NodeName`."""
        return Logger(self._plain, self.level, f"{self._named}.{name}" if self._named else name)

    def _emit(self, level: int, message: str, values: Mapping[str, Any], verbosity: int, has_traceback: bool = False) -> None:
        # `stacklevel=3`: the caller of `info` is named in the line, and not this file.
        event = Event(verbosity, values, self._named if _state.is_contextual else "")
        self._plain.log(level, "%s", message, exc_info=has_traceback, extra={"event": event}, stacklevel=3)


@dataclass(slots=True)
class _State:
    """The current configuration, and the loggers that follow it."""

    verbosity: int
    modules: tuple[tuple[str, int], ...]
    loggers: dict[str, Logger]
    flusher: _Flusher | None = None
    heard: set[str] = field(default_factory=lambda: {PACKAGE})
    """The packages whose lines are ours."""
    is_contextual: bool = True
    """Whether lines carry the names that their loggers were given."""


_state = _State(0, (), {})


def logger(name: str) -> Logger:
    """Return the log of a module, by its `__name__`."""
    found = _state.loggers.get(name)
    if found is None:
        found = _state.loggers[name] = Logger(logging.getLogger(name), _level_of(name))
    return found


def hear(package: str) -> None:
    """Treat a package's lines as ours: they are shown from info on, like all of ours."""
    _state.heard.add(package)
    _apply()


def set_contextual(is_contextual: bool) -> None:
    """Let lines carry the names that their loggers were given (`Logger.named`), or not."""
    _state.is_contextual = is_contextual


def verbosity() -> int:
    """Return the verbosity of modules that have none of their own."""
    return _state.verbosity


def set_verbosity(level: int) -> None:
    """Change the verbosity from now on; modules with one of their own keep it."""
    _state.verbosity = level
    _apply()


def configure(settings: LogSettings, stdout: TextIO | None = None, stderr: TextIO | None = None) -> None:
    """Send every log line to the standard streams in the format that is asked for."""
    out, err = stdout or sys.stdout, stderr or sys.stderr
    formatter = JsonFormatter() if settings.format == "json" else TextFormatter()
    errors = logging.StreamHandler(err)
    errors.setFormatter(formatter)
    handlers: list[logging.Handler] = [errors]
    shut_down()
    # With --log-text-split-stream or its JSON sibling, errors go to stderr and all else to stdout through a buffer. Without it
    # everything goes to stderr at once.
    if settings.split_stream:
        errors.addFilter(lambda record: record.levelno >= logging.ERROR)
        info = _InfoHandler(out, settings.info_buffer_bytes)
        info.addFilter(lambda record: record.levelno < logging.ERROR)
        info.setFormatter(formatter)
        handlers.append(info)
        if settings.info_buffer_bytes:
            _state.flusher = _Flusher(info, settings.flush_frequency.seconds)
    root = logging.getLogger()
    root.handlers[:] = handlers
    _state.verbosity, _state.modules = settings.verbosity, tuple(settings.vmodule)
    _apply()


def say_flags(shown: Mapping[str, str]) -> None:
    """Log the flags that the program was started with, a line each, at verbosity 1."""
    if _state.verbosity >= 1:
        plain = logging.getLogger(__name__)
        for name, value in sorted(shown.items()):
            plain.info('FLAG: --%s="%s"', name, value)


def flush() -> None:
    """Write the buffered lines."""
    for handler in logging.getLogger().handlers:
        handler.flush()


def shut_down() -> None:
    """Write the buffered lines, and stop the flushing thread."""
    if _state.flusher is not None:
        _state.flusher.stop()
        _state.flusher = None
    with contextlib.suppress(OSError, ValueError):  # whoever lent us the stream may have closed it
        flush()


atexit.register(shut_down)


def _level_of(name: str) -> int:
    """Return a module's verbosity: of the first pattern that fits its file's name, or its path where it has a slash."""
    path = name.replace(".", "/")
    # The first pattern that matches counts, as for klog's --vmodule.
    for pattern, level in _state.modules:
        if fnmatchcase(path if "/" in pattern else path.rpartition("/")[2], pattern):
            return level
    return _state.verbosity


def _apply() -> None:
    for name, found in _state.loggers.items():
        found.level = _level_of(name)
    logging.getLogger().setLevel(logging.DEBUG if _state.verbosity >= LIBRARY_VERBOSITY else logging.WARNING)
    for package in _state.heard:
        logging.getLogger(package).setLevel(_standard(_state.verbosity))
    inside = tuple(f"{package}." for package in _state.heard)
    # Plain loggers of our modules follow --vmodule too. NOTSET lets them inherit the package's level, so that a later change of
    # -v reaches them.
    for name, plain in logging.Logger.manager.loggerDict.items():
        if name.startswith(inside) and isinstance(plain, logging.Logger):
            own = _level_of(name)
            plain.setLevel(_standard(own) if own != _state.verbosity else logging.NOTSET)


def _standard(level: int) -> int:
    return logging.DEBUG if level >= DEBUG_VERBOSITY else logging.INFO


class _InfoHandler(logging.StreamHandler[TextIO]):
    """Writes to a stream, with a buffer of so many bytes."""

    def __init__(self, stream: TextIO, held_bytes: int) -> None:
        super().__init__(stream)
        self._held_bytes = held_bytes
        self._held = io.StringIO()

    def emit(self, record: logging.LogRecord) -> None:
        """Buffer a line, and write the buffer if it is full."""
        try:
            self._held.write(self.format(record) + self.terminator)
            # Without a buffer the limit is 0, and every line is written at once.
            if self._held.tell() >= self._held_bytes:
                self.flush()
        except Exception:  # logging's own custom: a line that cannot be written must not end what it tells of
            self.handleError(record)

    def flush(self) -> None:
        """Write the buffer."""
        self.acquire()
        try:
            text = self._held.getvalue()
            if text:
                self._held = io.StringIO()
                self.stream.write(text)
            super().flush()
        finally:
            self.release()


class _Flusher:
    """Flushes a handler regularly in a thread of its own, so that the log goes on even if the event loop hangs."""

    def __init__(self, handler: logging.Handler, every_seconds: float) -> None:
        self._handler = handler
        self._every_seconds = every_seconds
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="log-flush", daemon=True).start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._every_seconds):
            self._handler.flush()
