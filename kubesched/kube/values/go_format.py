"""Texts as Go formats them inside the reference's errors: strings quoted by `%q`, other values as JSON, lists of errors."""

from __future__ import annotations

import json
from collections.abc import Iterable

_ESCAPED_IN_JSON = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
ESCAPES = {'"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\"}


def go_quote(text: str) -> str:
    """Return the text as Go's %q prints it."""
    parts = []
    for char in text:
        if char in ESCAPES:
            parts.append(ESCAPES[char])
        elif char.isprintable():
            parts.append(char)
        elif ord(char) < 0x80:
            parts.append(f"\\x{ord(char):02x}")
        elif ord(char) <= 0xFFFF:
            parts.append(f"\\u{ord(char):04x}")
        else:
            parts.append(f"\\U{ord(char):08x}")
    return f'"{"".join(parts)}"'


def go_json(value: object) -> str:
    """Return a plain value as Go's JSON encoder prints it: no spaces, and nothing that HTML would take for markup."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).translate(_ESCAPED_IN_JSON)


def aggregate(errors: Iterable[object]) -> str:
    """Return one text for all errors: a lone one bare, several in brackets, repeated texts once."""
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
