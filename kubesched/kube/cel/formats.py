"""Named formats in CEL: `format.dns1123Label().validate(text)` gives the complaints, or nothing if there are none."""

from __future__ import annotations

import base64
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, ClassVar

from kubesched.kube.cel.networks import URL
from kubesched.kube.cel.values import NOTHING, CelError, Optional, no_overload
from kubesched.kube.values import naming


@dataclass(frozen=True, slots=True)
class Format:
    """A format that texts are checked against."""

    cel_name: ClassVar[str] = "kubernetes.NamedFormat"
    name: str

    @property
    def pattern_size(self) -> int:
        """Return how long a pattern the cost of a check is counted with."""
        return _PATTERN_SIZES[self.name]


def _label(pattern: str, text: str) -> list[str]:
    complaints = [] if len(text) <= 63 else ["must be no more than 63 characters"]
    if not re.fullmatch(pattern, text):
        complaints.append(f"must match {pattern}")
    return complaints


def _complaints(of: Callable[[str], tuple[str, ...]], text: str) -> list[str]:
    # What an expression makes up is not worth remembering, and may be long.
    return list(inspect.unwrap(of)(text))


def _unless(accept: Callable[[str], object], what: str) -> Callable[[str], list[str]]:
    def complaints(text: str) -> list[str]:
        try:
            accept(text)
        except (ValueError, CelError):
            return [what]
        return []

    return complaints


def _uuid(text: str) -> list[str]:
    found = re.fullmatch(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", text)
    return [] if found else ["does not match the UUID format"]


_CHECKS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": lambda text: _label(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", text),
    "dns1123Subdomain": lambda text: _complaints(naming.subdomain_complaints, text),
    "dns1035Label": lambda text: _label(r"[a-z]([-a-z0-9]*[a-z0-9])?", text),
    "dns1123LabelPrefix": lambda text: _label(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", _completed(text)),
    "dns1123SubdomainPrefix": lambda text: _complaints(naming.subdomain_complaints, _completed(text)),
    "dns1035LabelPrefix": lambda text: _label(r"[a-z]([-a-z0-9]*[a-z0-9])?", _completed(text)),
    "qualifiedName": lambda text: _complaints(naming.qualified_name_complaints, text),
    "labelValue": lambda text: _complaints(naming.label_value_complaints, text),
    "uri": _unless(URL.parse, "invalid URI"),
    "uuid": _uuid,
    "byte": _unless(lambda text: base64.b64decode(text, validate=True), "invalid base64"),
    "date": _unless(date.fromisoformat, "invalid date"),
    "datetime": _unless(datetime.fromisoformat, "invalid datetime"),
}


def _completed(prefix: str) -> str:
    """Return a name that a generated suffix could have completed."""
    return prefix[:-1] + "a" if prefix.endswith("-") else prefix


def _named(name: Any) -> Optional:
    if not isinstance(name, str):
        raise no_overload("format.named", name)
    return Optional(Format(name), True) if name in _CHECKS else NOTHING


def _validate(wanted: Format, text: Any) -> Optional:
    if not isinstance(text, str):
        raise no_overload("validate", wanted, text)
    complaints = _CHECKS[wanted.name](text)
    return Optional(complaints, True) if complaints else NOTHING


_PATTERN_SIZES = {
    **dict.fromkeys(("dns1123Label", "dns1035Label", "dns1123LabelPrefix", "dns1035LabelPrefix"), 30),
    **dict.fromkeys(("dns1123Subdomain", "dns1123SubdomainPrefix", "qualifiedName"), 60),
    "labelValue": 40,
    "uri": 1103,
    "uuid": 73,
    "byte": 84,
    "date": 77,
    "datetime": 77,
}

NAMES = tuple(_CHECKS)

GLOBALS: dict[str, Callable[..., Any]] = {
    "format.named": _named,
    **{f"format.{name}": (lambda wanted: lambda: wanted)(Format(name)) for name in _CHECKS},
}

MEMBERS: dict[str, Callable[..., Any]] = {"validate": _validate}
"""What can be asked of a format."""
