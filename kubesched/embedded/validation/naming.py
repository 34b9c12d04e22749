"""Names and labels: what the API allows, and what it says about one that it does not allow.

In: a text that a client wrote. Out: the API's sentences about it, none for a good one. Checks that run on every write
ask `is_label_key` and `is_label_value` first, which build no sentences.
"""

from __future__ import annotations

import re

from kubesched.embedded.validation.wording import (
    DNS_LABEL_TEXT,
    DNS_SUBDOMAIN_TEXT,
    LABEL_KEY_TEXT,
    LABEL_VALUE_TEXT,
    QUALIFIED_NAME_TEXT,
)

NAME_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_ANY_LENGTH = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")
_LONGEST_LABEL, _LONGEST_SUBDOMAIN = 63, 253


def is_label_key(key: str) -> bool:
    """Say whether `key` is a qualified name: an optional DNS prefix, a slash, a name of at most 63 characters."""
    prefix, slash, name = key.rpartition("/")
    if slash and (not SUBDOMAIN.match(prefix) or len(prefix) > _LONGEST_SUBDOMAIN):
        return False
    return bool(NAME_PART.match(name))


def is_label_value(value: str) -> bool:
    return value == "" or bool(NAME_PART.match(value))


def qualified_name_faults(key: str) -> list[str]:
    """Return what is wrong with a label key, the name of a resource, a finalizer and the like."""
    *prefixes, name = key.split("/")
    if len(prefixes) > 1:
        return [QUALIFIED_NAME_TEXT]
    faults = []
    if prefixes:
        prefix = prefixes[0]
        found = dns_subdomain_faults(prefix) if prefix else ["must be non-empty"]
        faults += [f"prefix part {text}" for text in found]
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > _LONGEST_LABEL:
        faults.append(f"name part must be no more than {_LONGEST_LABEL} bytes")
    if not _ANY_LENGTH.match(name):
        faults.append(LABEL_KEY_TEXT)
    return faults


def label_value_faults(value: str) -> list[str]:
    """Return what is wrong with the value of a label."""
    faults = [f"must be no more than {_LONGEST_LABEL} bytes"] if len(value) > _LONGEST_LABEL else []
    return faults if not value or _ANY_LENGTH.match(value) else [*faults, LABEL_VALUE_TEXT]


def dns_label_faults(name: str) -> list[str]:
    """Return what is wrong with a name that must be one label of a DNS name."""
    faults = [_too_long(_LONGEST_LABEL)] if len(name) > _LONGEST_LABEL else []
    return faults if LABEL.match(name) else [*faults, DNS_LABEL_TEXT]


def dns_subdomain_faults(name: str) -> list[str]:
    """Return what is wrong with a name that must be a DNS name."""
    faults = [_too_long(_LONGEST_SUBDOMAIN)] if len(name) > _LONGEST_SUBDOMAIN else []
    return faults if SUBDOMAIN.match(name) else [*faults, DNS_SUBDOMAIN_TEXT]


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"
