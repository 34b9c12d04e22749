"""Names of objects, and what the API says about one that it does not allow. Labels are checked by `kube.values.naming`."""

from __future__ import annotations

import re

from kubesched.kube.values import subdomain_complaints

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def dns_label_faults(name: str) -> list[str]:
    """Return what is wrong with a name that must be one label of a DNS name."""
    faults = ["must be no more than 63 characters"] if len(name) > 63 else []
    return faults if _LABEL.match(name) else [*faults, _LABEL_TEXT]


def dns_subdomain_faults(name: str) -> list[str]:
    """Return what is wrong with a name that must be a DNS subdomain. The API counts characters here, and bytes in labels.

    No cache: names are new each time, and would only fill it.
    """
    if len(name) <= 253 and _SUBDOMAIN.match(name):  # names are new each time, and a cache would only be filled with them
        return []
    return [text.replace("bytes", "characters") for text in subdomain_complaints(name)]
