"""Field errors in kube-scheduler's format:

    profiles[0].pluginConfig[1].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]

Values are printed as Go prints them: strings quoted, durations and structs as JSON, numbers plain. What is valid is decided
elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kubesched.kube.values import go_json, go_quote
from kubesched.scheduler.config.documents.durations import Duration


@dataclass(frozen=True, slots=True)
class Path:
    """A place in a document: `Path("profiles").index(0).child("plugins")` prints as `profiles[0].plugins`."""

    text: str = ""

    def child(self, *names: str) -> Path:
        return Path(".".join(part for part in (self.text, *names) if part))

    def index(self, position: int) -> Path:
        return Path(f"{self.text}[{position}]")

    def key(self, name: str) -> Path:
        return Path(f"{self.text}[{name}]")

    def __str__(self) -> str:
        # Go prints the root like this.
        return self.text or "<nil>"


class TypedString(str):
    """A string of a named Go type, which is printed as JSON, not as a quoted Go string."""


class Verbatim(str):
    """A value that is printed as it is."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error of one field; `str()` is the line that users see."""

    path: str
    kind: str
    detail: str = ""

    def __str__(self) -> str:
        body = f"{self.kind}: {self.detail}" if self.detail else self.kind
        return f"{self.path}: {body}"


def invalid(path: Path, value: object, detail: str) -> FieldError:
    return FieldError(str(path), f"Invalid value: {render(value)}", detail)


def required(path: Path, detail: str = "") -> FieldError:
    return FieldError(str(path), "Required value", detail)


def forbidden(path: Path, detail: str) -> FieldError:
    return FieldError(str(path), "Forbidden", detail)


def duplicate(path: Path, value: object) -> FieldError:
    return FieldError(str(path), f"Duplicate value: {render(value)}")


def not_supported(path: Path, value: object, supported: Sequence[str]) -> FieldError:
    listed = ", ".join(go_quote(name) for name in supported)
    return FieldError(str(path), f"Unsupported value: {render(value)}", f"supported values: {listed}")


def render(value: object) -> str:
    """Return a value as Go prints it in an error."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Verbatim):
        return str(value)
    if isinstance(value, Duration | TypedString | Path):
        return go_json(_plain(value))
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        return go_quote(value)
    return go_json(_plain(value))


def _plain(value: object) -> object:
    """Return a value as JSON data, structs with the names of their Go fields."""
    if isinstance(value, Path):
        return {}
    if isinstance(value, Duration):
        return str(value)
    # Internal types of kube-scheduler have no JSON names, so Go prints the fields with capitals.
    if isinstance(value, msgspec.Struct):
        return {
            field.encode_name[:1].upper() + field.encode_name[1:]: _plain(getattr(value, field.name))
            for field in msgspec.structs.fields(value)
        }
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in sorted(value.items())}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
