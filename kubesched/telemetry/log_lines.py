"""How one log record looks: klog's text, or a line of JSON.

In: a standard `logging.LogRecord`, structured or not. Out: one line, or a few where a value has several.

    I1116 02:30:52.123456    4711 loop.py:88] "Successfully bound pod to node" pod="team-b/web-3" node="n1"
    {"ts":1700101852123.456,"caller":"loop.py:88","msg":"Successfully bound pod to node","v":2,"pod":"team-b/web-3"}

Records of the plain `logging` calls have no values; their text stands there unquoted, as klog's printf-like calls do.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from typing import Any

_LETTERS = ((logging.CRITICAL, "F"), (logging.ERROR, "E"), (logging.WARNING, "W"))


class Event:
    """The structured part of a record: its values, its verbosity and the logger's name where one was given."""

    __slots__ = ("name", "values", "verbosity")

    def __init__(self, verbosity: int, values: Mapping[str, Any], name: str = "") -> None:
        self.verbosity = verbosity
        self.values = values
        self.name = name


class TextFormatter(logging.Formatter):
    """klog's text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        event = _event(record)
        message = record.getMessage()
        parts = [f'"{_escaped(message)}"' if event is not None else message.rstrip("\n")]
        if event is not None and event.name:
            parts.append(f'logger="{_escaped(event.name)}"')
        parts += [f"{key}={_shown(value)}" for key, value in _values(self, record, event).items()]
        return f"{self._head(record)} {' '.join(parts)}"

    def _head(self, record: logging.LogRecord) -> str:
        when = time.localtime(record.created)
        # klog prints microseconds; `strftime` knows none.
        micro = int(record.created % 1 * 1_000_000)
        stamp = f"{time.strftime('%m%d %H:%M:%S', when)}.{micro:06d}"
        return f"{_letter(record.levelno)}{stamp} {record.process or 0:7d} {record.filename}:{record.lineno}]"


class JsonFormatter(logging.Formatter):
    """One JSON object a line; the time is in milliseconds since the epoch."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON."""
        event = _event(record)
        line: dict[str, Any] = {"ts": round(record.created * 1000, 3)}
        if event is not None and event.name:
            line["logger"] = event.name
        line["caller"] = f"{record.filename}:{record.lineno}"
        line["msg"] = record.getMessage().rstrip("\n")
        # As klog: errors have no verbosity.
        if record.levelno < logging.ERROR:
            line["v"] = event.verbosity if event is not None else 0
        line.update(_values(self, record, event))
        return json.dumps(line, default=str, ensure_ascii=False, separators=(",", ":"))


def _event(record: logging.LogRecord) -> Event | None:
    return getattr(record, "event", None)


def _values(formatter: logging.Formatter, record: logging.LogRecord, event: Event | None) -> dict[str, Any]:
    values = dict(event.values) if event is not None else {}
    if record.exc_info and record.exc_info[1] is not None:
        # A value `err` that the caller gave says more than the exception's own text.
        values.setdefault("err", record.exc_info[1])
        values["stacktrace"] = formatter.formatException(record.exc_info)
    if record.stack_info:
        values["stack"] = record.stack_info
    return values


def _letter(level: int) -> str:
    return next((letter for least, letter in _LETTERS if level >= least), "I")


def _shown(value: Any) -> str:
    """Return a value as klog prints it: numbers bare, texts quoted, texts of several lines indented below."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        return json.dumps(_plain(value), default=str, ensure_ascii=False, separators=(",", ":"))
    text = str(value)
    # klog's way: readable in a terminal, and still one record for whoever splits at the head of a line.
    if "\n" in text:
        body = "\n".join(f"\t{line}" for line in text.rstrip("\n").split("\n"))
        return f"<\n{body}\n >"
    return f'"{_escaped(text)}"'


def _plain(value: Any) -> Any:
    return sorted(value, key=str) if isinstance(value, (set, frozenset)) else value


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
