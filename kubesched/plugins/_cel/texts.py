"""Strings in CEL: the standard functions, the strings extension, and Kubernetes' `find` and `findAll`.

Positions count characters. Patterns are RE2's.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from kubesched.api.regex import Regex, RegexError, compile_regex
from kubesched.plugins._cel.values import CelType, EvaluationError, no_overload, type_name


def _pattern(text: str, mark: str = "") -> Regex:
    try:
        return compile_regex(text)
    except RegexError as error:
        raise EvaluationError(f"{mark}{error}") from None


def _texts(name: str, *values: Any) -> bool:
    """Make sure that all arguments are strings."""
    if not all(isinstance(value, str) for value in values):
        raise no_overload(name, *values)
    return True


def matches(text: Any, pattern: Any) -> bool:
    """Return whether a pattern is found anywhere in a text."""
    _texts("matches", text, pattern)
    return _pattern(pattern).matches(text)


def _find(text: str, pattern: Any) -> str:
    _texts("find", text, pattern)
    return _pattern(pattern, "Illegal regex: ").find(text)


def _find_all(text: str, pattern: Any, limit: Any = -1) -> list[str]:
    _texts("findAll", text, pattern)
    return _pattern(pattern, "Illegal regex: ").find_all(text, limit)


def _char_at(text: str, at: Any) -> str:
    if not 0 <= at <= len(text):
        raise EvaluationError(f"index out of range: {at}")
    return text[at : at + 1]


def _index_of(text: str, part: Any, start: Any = 0) -> int:
    _texts("indexOf", text, part)
    if not part:
        return int(start)
    if not 0 <= start < max(len(text), 1):
        raise EvaluationError(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(text: str, part: Any, last: Any = None) -> int:
    _texts("lastIndexOf", text, part)
    if last is None:
        return text.rfind(part)
    if not 0 <= last < len(text):
        raise EvaluationError(f"index out of range: {last}")
    return text.rfind(part, 0, last + len(part))


def _substring(text: str, start: Any, end: Any = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= start <= len(text):
        raise EvaluationError(f"index out of range: {start}")
    if not 0 <= stop <= len(text):
        raise EvaluationError(f"index out of range: {stop}")
    if start > stop:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


def _split(text: str, separator: Any, limit: Any = -1) -> list[str]:
    _texts("split", text, separator)
    if limit == 0:
        return []
    if separator == "":
        letters = list(text)
        return letters if limit < 0 or limit >= len(letters) else [*letters[: limit - 1], "".join(letters[limit - 1 :])]
    return text.split(separator) if limit < 0 else text.split(separator, limit - 1)


def _replace(text: str, old: Any, new: Any, limit: Any = -1) -> str:
    _texts("replace", text, old, new)
    return text.replace(old, new, limit if limit >= 0 else -1)


_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)


def join(parts: list[Any], separator: Any = "") -> str:
    """Return texts as one."""
    _texts("join", separator, *parts)
    return str(separator).join(parts)


def _quote(text: Any) -> str:
    _texts("strings.quote", text)
    escapes = {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
    return '"' + "".join(escapes.get(letter, letter) for letter in text) + '"'


def _format(template: str, values: Any) -> str:
    """Fill a template's %s, %d, %f, %e, %b, %o, %x, %X in order."""
    if not isinstance(values, list):
        raise no_overload("format", template, values)
    left = list(values)

    def fill(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        if not left:
            raise EvaluationError("index out of range: too few arguments to format")
        value, precision = left.pop(0), int(found[1][1:]) if found[1] else 6
        clause = found[2]
        if clause == "s":
            return as_text(value)
        if clause in "fe" and isinstance(value, (int, float)) and not isinstance(value, bool):
            return f"{value:.{precision}{clause}}"
        if clause in "xX" and isinstance(value, (str, bytes)):
            digits = (value.encode() if isinstance(value, str) else value).hex()
            return digits if clause == "x" else digits.upper()
        if clause == "d" and isinstance(value, float) and value.is_integer():
            return str(int(value))
        if clause in "dboxX" and isinstance(value, int):
            return format(int(value), clause)
        raise EvaluationError(f"error during formatting: %{clause} does not take {type_name(value)}")

    return re.sub(r"%(?:%|(\.[0-9]+)?([sdfebxXo]))", fill, template)


def as_text(value: Any) -> str:
    """Return how `%s` shows a value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, float):
        if math.isinf(value) or math.isnan(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, list):
        return f"[{', '.join(as_text(element) for element in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_text(k)}: {as_text(v)}" for k, v in sorted(value.items(), key=str)) + "}"
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, CelType):
        return value.name
    if isinstance(value, datetime):
        return timestamp_text(value)
    if isinstance(value, timedelta):
        return duration_text(value)
    return str(value)


def timestamp_text(moment: datetime) -> str:
    """Return a moment as RFC 3339."""
    text = moment.strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
    return text + "Z"


def duration_text(span: timedelta) -> str:
    """Return a time span in seconds."""
    seconds = span.total_seconds()
    return f"{int(seconds) if seconds == int(seconds) else seconds}s"


GLOBALS: dict[str, Callable[..., Any]] = {"strings.quote": _quote, "matches": matches}

MEMBERS: dict[str, Callable[..., Any]] = {
    "contains": lambda text, part: _texts("contains", text, part) and part in text,
    "startsWith": lambda text, part: _texts("startsWith", text, part) and text.startswith(part),
    "endsWith": lambda text, part: _texts("endsWith", text, part) and text.endswith(part),
    "matches": matches,
    "find": _find,
    "findAll": _find_all,
    "charAt": _char_at,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "lowerAscii": lambda text: text.translate(_LOWER),
    "upperAscii": lambda text: text.translate(_UPPER),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "trim": lambda text: text.strip(),
    "format": _format,
}
"""What can be asked of a string."""
