"""Strings in CEL: the standard functions, the strings extension, and Kubernetes' `find` and `findAll`.

Positions count characters. Patterns are RE2's.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

from kubesched.kube.cel import formatting
from kubesched.kube.cel.values import EvaluationError, no_overload
from kubesched.kube.values import ESCAPES, Regex, RegexError, compile_regex


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
    return text.find(part, _position(start))


def _last_index_of(text: str, part: Any, last: Any = None) -> int:
    _texts("lastIndexOf", text, part)
    if last is None:
        return text.rfind(part)
    if not part:
        return int(last)
    return text.rfind(part, 0, _position(last) + len(part)) if last < len(text) else -1


def _newer_index_of(text: str, part: Any, start: Any = 0) -> int:
    return min(_position(start), len(text)) if part == "" else _index_of(text, part, start)


def _newer_last_index_of(text: str, part: Any, last: Any = None) -> int:
    return min(_position(last), len(text)) if part == "" and last is not None else _last_index_of(text, part, last)


def _position(given: Any) -> int:
    if given < 0:
        raise EvaluationError(f"index out of range: {given}")
    return int(given)


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


_SPACES = "".join(letter for letter in map(chr, range(0x3001)) if letter.isspace() and letter not in "\x1c\x1d\x1e\x1f")
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)


def join(parts: list[Any], separator: Any = "") -> str:
    """Return texts as one."""
    _texts("join", separator, *parts)
    return str(separator).join(parts)


def _quote(text: Any) -> str:
    _texts("strings.quote", text)
    return '"' + "".join(ESCAPES.get(letter, letter) for letter in text) + '"'


def _format(template: str, values: Any) -> str:
    if not isinstance(values, list):
        raise no_overload("format", template, values)
    return formatting.fill(template, values)


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
    "trim": lambda text: text.strip(_SPACES),
    "format": _format,
}
"""What can be asked of a string."""

NEWER_MEMBERS: dict[str, Callable[..., Any]] = {"indexOf": _newer_index_of, "lastIndexOf": _newer_last_index_of}
"""What is answered in another way since 1.37."""
