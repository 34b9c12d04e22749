"""Named formats in CEL: `format.dns1123Label().validate(text)` gives the complaints, or nothing if there are none."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from kubesched.kube.cel.times import Timestamp
from kubesched.kube.cel.urls import request_complaint
from kubesched.kube.cel.values import NOTHING, EvaluationError, Optional, no_overload
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


_SHAPE = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_OLD_SHAPE = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    f"alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_SHAPE}')"
)
_OLD_LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
    f"with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '{_OLD_SHAPE}')"
)


def _label(text: str) -> list[str]:
    complaints = _too_long(text)
    if not re.fullmatch(_SHAPE, text):
        complaints.append("must not contain dots" if re.fullmatch(rf"{_SHAPE}(\.{_SHAPE})*", text) else _LABEL)
    return complaints


def _old_label(text: str) -> list[str]:
    return _too_long(text) + ([] if re.fullmatch(_OLD_SHAPE, text) else [_OLD_LABEL])


def _too_long(text: str) -> list[str]:
    return [] if len(text.encode(errors="replace")) <= 63 else ["must be no more than 63 characters"]


def _complaints(of: Callable[[str], tuple[str, ...]], text: str) -> list[str]:
    # What an expression makes up is not worth remembering, and may be long.
    return list(inspect.unwrap(of)(text))


def _unless(accept: Callable[[str], object], what: str) -> Callable[[str], list[str]]:
    return lambda text: [] if accept(text) else [what]


def _pattern(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern).fullmatch


def _uri(text: str) -> list[str]:
    complaint = request_complaint(text)
    return [] if complaint is None else [complaint]


def _is_date(text: str) -> bool:
    try:
        return re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is not None and Timestamp.parse(f"{text}T00:00:00Z") is not None
    except EvaluationError:
        # Go knows the year 0, in which February had 29 days.
        return text.startswith("0000-") and _is_date(f"2000{text[4:]}")


def _is_moment(text: str) -> bool:
    """Return whether a text is a date, a `t`, and a time; what follows a second `t` does not count."""
    date, *times = text.lower().split("t")
    clock = re.fullmatch(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})", times[0]) if times else None
    return clock is not None and _is_date(date) and clock[1] <= "23" and clock[2] <= "59" and clock[3] <= "59"


_CHECKS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": _label,
    "dns1123Subdomain": lambda text: _complaints(naming.subdomain_complaints, text),
    "dns1035Label": _old_label,
    "dns1123LabelPrefix": lambda text: _label(_completed(text)),
    "dns1123SubdomainPrefix": lambda text: _complaints(naming.subdomain_complaints, _completed(text)),
    "dns1035LabelPrefix": lambda text: _old_label(_completed(text)),
    "qualifiedName": lambda text: _complaints(naming.qualified_name_complaints, text),
    "labelValue": lambda text: _complaints(naming.label_value_complaints, text),
    "uri": _uri,
    "uuid": _unless(
        _pattern("(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"), "does not match the UUID format"
    ),
    "byte": _unless(
        _pattern("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"), "invalid base64"
    ),
    "date": _unless(_is_date, "invalid date"),
    "datetime": _unless(_is_moment, "invalid datetime"),
}


def _completed(prefix: str) -> str:
    """Return a name that a generated suffix could have completed, with one letter less, as the reference makes it."""
    return prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix


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
    "uuid": 70,
    "byte": 84,
    "date": 71,
    "datetime": 71,
}

GLOBALS: dict[str, Callable[..., Any]] = {
    "format.named": _named,
    **{f"format.{name}": (lambda wanted: lambda: wanted)(Format(name)) for name in _CHECKS},
}

MEMBERS: dict[str, Callable[..., Any]] = {"validate": _validate}
"""What can be asked of a format."""
