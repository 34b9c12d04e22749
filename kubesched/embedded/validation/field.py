"""Causes: what is wrong with a field, in the API's words. Each function is named as in apimachinery's `field` package.

They are used as `field.required("spec.containers")`. They only build; the callers decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class Cause:
    """One wrong field: the API's reason word, the path, the text."""

    reason: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


def invalid(path: str, value: object, detail: str) -> Cause:
    """Return the cause for a value that is not allowed. Texts are quoted as the API quotes them."""
    return Cause("FieldValueInvalid", path, f"Invalid value: {_shown(value)}: {detail}")


def invalid_each(path: str, value: object, details: Iterable[str]) -> list[Cause]:
    """Return a cause for each of several complaints about one value."""
    return [invalid(path, value, detail) for detail in details]


def required(path: str, detail: str = "") -> Cause:
    """Return the cause for a field that is missing or empty."""
    return Cause("FieldValueRequired", path, "Required value" + (f": {detail}" if detail else ""))


def forbidden(path: str, detail: str) -> Cause:
    """Return the cause for a field that may not be set, or not be changed."""
    return Cause("FieldValueForbidden", path, f"Forbidden: {detail}")


def duplicate(path: str, value: object, detail: str = "") -> Cause:
    """Return the cause for a value that is there twice."""
    return Cause("FieldValueDuplicate", path, f"Duplicate value: {_shown(value)}" + (f": {detail}" if detail else ""))


def not_found(path: str, value: object, detail: str = "") -> Cause:
    """Return the cause for a name that refers to nothing."""
    return Cause("FieldValueNotFound", path, f"Not found: {_shown(value)}" + (f": {detail}" if detail else ""))


def not_supported(path: str, value: object, allowed: Sequence[str]) -> Cause:
    """Return the cause for a word outside a fixed set."""
    listed = ", ".join(f'"{one}"' for one in allowed)
    return Cause("FieldValueNotSupported", path, f"Unsupported value: {_shown(value)}: supported values: {listed}")


def too_long(path: str, limit: int) -> Cause:
    """Return the cause for a text that is too long."""
    return Cause("FieldValueTooLong", path, f"Too long: may not be more than {limit} bytes")


def _shown(value: object) -> str:
    """Return a value as a message shows it, cut after 200 characters."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 200 else text[:200] + "..."  # a message is for reading
