"""Names as Kubernetes allows them: label keys and label values, with the sentences that explain a refusal."""

from __future__ import annotations

import re

from kubesched.config.fielderrors import FieldError, Path, invalid

_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_VALUE = f"({_NAME})?"
_VALUE_RULE = f"a valid label must be an empty string or {_NAME_RULE.removeprefix('must ')}"
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_MAX_NAME = 63
_MAX_SUBDOMAIN = 253


def label_key_problems(key: str) -> list[str]:
    """Return why this is no label key (`name` or `prefix/name`); nothing when it is one."""
    parts = key.split("/")
    if len(parts) > 2:
        rule = _explain(_NAME_RULE, _NAME, "MyName", "my.name", "123-abc")
        return [f"a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    problems = []
    if len(parts) == 2:
        problems += [f"prefix part {problem}" for problem in _prefix_problems(parts[0])]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif _n_bytes(name) > _MAX_NAME:
        problems.append(f"name part must be no more than {_MAX_NAME} bytes")
    if not re.fullmatch(_NAME, name):
        problems.append(f"name part {_explain(_NAME_RULE, _NAME, 'MyName', 'my.name', '123-abc')}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """Return why this is no label value; nothing when it is one."""
    problems = []
    if _n_bytes(value) > _MAX_NAME:
        problems.append(f"must be no more than {_MAX_NAME} bytes")
    if not re.fullmatch(_VALUE, value):
        problems.append(_explain(_VALUE_RULE, _VALUE, "MyValue", "my_value", "12345"))
    return problems


def validate_label_key(key: str, path: Path) -> list[FieldError]:
    return [invalid(path, key, problem) for problem in label_key_problems(key)]


def is_extended_resource(name: str) -> bool:
    """Tell whether a name belongs to no Kubernetes domain, as the name of a device's resource must not."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not label_key_problems(f"requests.{name}")


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["must be non-empty"]
    problems = []
    if _n_bytes(prefix) > _MAX_SUBDOMAIN:
        problems.append(f"must be no more than {_MAX_SUBDOMAIN} bytes")
    if not re.fullmatch(_SUBDOMAIN, prefix):
        problems.append(_explain(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return problems


def _explain(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


def _n_bytes(text: str) -> int:
    return len(text.encode())
