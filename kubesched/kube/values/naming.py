"""The rules for names: label keys, label values, DNS subdomains, with the API's own messages.

Each function returns the complaints about a text, none for a good one.
"""

from __future__ import annotations

import re
from functools import lru_cache

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NAME_SYNTAX = re.compile(_NAME)
_VALUE_SYNTAX = re.compile(_VALUE)
_SUBDOMAIN_SYNTAX = re.compile(_SUBDOMAIN)

_MUST_BE_ALPHANUMERIC = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_NAME_COMPLAINT = (
    f"{_MUST_BE_ALPHANUMERIC} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE_COMPLAINT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)
_SUBDOMAIN_COMPLAINT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_LONGEST_NAME = 63
_LONGEST_SUBDOMAIN = 253


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def is_subdomain(text: str) -> bool:
    """Return whether a text is a DNS subdomain. Unlike the checks below it caches nothing: it is for names that come once."""
    return len(text.encode()) <= _LONGEST_SUBDOMAIN and _SUBDOMAIN_SYNTAX.fullmatch(text) is not None


@lru_cache(maxsize=16384)
def subdomain_complaints(text: str) -> tuple[str, ...]:
    """Return what is wrong with a DNS subdomain."""
    complaints = []
    if len(text.encode()) > _LONGEST_SUBDOMAIN:
        complaints.append(_too_long(_LONGEST_SUBDOMAIN))
    if not _SUBDOMAIN_SYNTAX.fullmatch(text):
        complaints.append(_SUBDOMAIN_COMPLAINT)
    return tuple(complaints)


@lru_cache(maxsize=16384)
def qualified_name_complaints(text: str) -> tuple[str, ...]:
    """Return what is wrong with a label key or resource name: an optional subdomain and `/`, then a name."""
    complaints = []
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return (f"a valid label key {_NAME_COMPLAINT} with an optional DNS subdomain prefix and '/' "
                "(e.g. 'example.com/MyName')",)  # fmt: skip
    if slash:
        if not prefix:
            complaints.append("prefix part must be non-empty")
        else:
            complaints.extend(f"prefix part {complaint}" for complaint in subdomain_complaints(prefix))
    if not name:
        complaints.append("name part must be non-empty")
    elif len(name.encode()) > _LONGEST_NAME:
        complaints.append(f"name part {_too_long(_LONGEST_NAME)}")
    if not _NAME_SYNTAX.fullmatch(name):
        complaints.append(f"name part {_NAME_COMPLAINT}")
    return tuple(complaints)


@lru_cache(maxsize=16384)
def label_value_complaints(text: str) -> tuple[str, ...]:
    """Return what is wrong with a label's value."""
    complaints = []
    if len(text.encode()) > _LONGEST_NAME:
        complaints.append(_too_long(_LONGEST_NAME))
    if not _VALUE_SYNTAX.fullmatch(text):
        complaints.append(_VALUE_COMPLAINT)
    return tuple(complaints)
