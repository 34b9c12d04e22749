"""What is wrong with a field, in the API's words: one function for each kind of mistake, named as in Kubernetes' own library.

Used as `field.required("spec.containers")`. Nothing here decides; the callers do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class Cause:
    """One field that is wrong: the API's reason word, the path, the text."""

    reason: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


def invalid(path: str, value: object, detail: str) -> Cause:
    """Return the cause for a value that is not allowed; strings are quoted, as the API quotes them."""
    return Cause("FieldValueInvalid", path, f"Invalid value: {_shown(value)}: {detail}")


def invalid_each(path: str, value: object, details: Iterable[str]) -> list[Cause]:
    """Return a cause for everything that is wrong with one value."""
    return [invalid(path, value, detail) for detail in details]


def required(path: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", path, "Required value" + (f": {detail}" if detail else ""))


def forbidden(path: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", path, f"Forbidden: {detail}")


def duplicate(path: str, value: object, detail: str = "") -> Cause:
    return Cause("FieldValueDuplicate", path, f"Duplicate value: {_shown(value)}" + (f": {detail}" if detail else ""))


def not_found(path: str, value: object, detail: str = "") -> Cause:
    return Cause("FieldValueNotFound", path, f"Not found: {_shown(value)}" + (f": {detail}" if detail else ""))


def not_supported(path: str, value: object, allowed: Sequence[str]) -> Cause:
    listed = ", ".join(f'"{one}"' for one in allowed)
    return Cause("FieldValueNotSupported", path, f"Unsupported value: {_shown(value)}: supported values: {listed}")


def too_long(path: str, limit: int) -> Cause:
    return Cause("FieldValueTooLong", path, f"Too long: may not be more than {limit} bytes")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 200 else text[:200] + "..."  # a message is for reading
