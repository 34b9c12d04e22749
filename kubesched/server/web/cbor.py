"""CBOR, as much of it as our versioned pages need: maps, lists, texts, whole numbers, truths and nothing."""

from __future__ import annotations

from typing import Any

_SELF_DESCRIBED = b"\xd9\xd9\xf7"  # how Kubernetes marks its CBOR


def encode(document: Any) -> bytes:
    """Return a document in CBOR, texts as byte strings the way Kubernetes writes them: readable by any decoder."""
    return _SELF_DESCRIBED + _value(document)


def _value(value: Any) -> bytes:
    if value is None:
        return b"\xf6"
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return _head(0, value) if value >= 0 else _head(1, -1 - value)
    if isinstance(value, str):
        text = value.encode()
        return _head(2, len(text)) + text
    if isinstance(value, (list, tuple)):
        return _head(4, len(value)) + b"".join(map(_value, value))
    if isinstance(value, dict):
        return _head(5, len(value)) + b"".join(_value(key) + _value(item) for key, item in value.items())
    raise TypeError(f"no CBOR for {type(value).__name__}")


def _head(major: int, amount: int) -> bytes:
    for limit, code, size in ((24, amount, 0), (1 << 8, 24, 1), (1 << 16, 25, 2), (1 << 32, 26, 4), (1 << 64, 27, 8)):
        if amount < limit:
            return bytes([major << 5 | code]) + (amount.to_bytes(size, "big") if size else b"")
    raise ValueError(f"{amount} does not fit 64 bits")
