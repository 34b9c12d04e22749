"""Selectors over stored objects: label selectors (as query text and as LabelSelector) and field selectors.

In: the text of a request. Out: a predicate over objects, or None if it selects everything, so that the common case costs
nothing. A selector that cannot be read is refused in the API's words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kubesched.embedded.api_errors import bad_request
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.errors import ApiError, BadRequest
from kubesched.kube.api import DOES_NOT_EXIST, EXISTS, GT, IN, LT, NOT_IN, Requirement
from kubesched.kube.values import label_value_complaints, qualified_name_complaints

Predicate = Callable[[Object], bool]
Pin = tuple[str, str]  # a field and the value it must have

# The fields by which watches are looked up (see `Feed`).
PINNABLE = {"metadata.name": ("metadata", "name"), "spec.nodeName": ("spec", "nodeName")}

_TOKEN = re.compile(r"\s*(==|!=|=|!|\(|\)|,|<|>|[^\s,()=!<>]+)\s*")
_MARKS = frozenset(("==", "!=", "=", "(", ")", ",", "<", ">"))
_SUPPORTED_FIELDS: dict[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "replicationcontrollers": ("status.replicas",),
    "replicasets.apps": ("status.replicas",),
    "jobs.batch": ("status.successful",),
    "resourceslices.resource.k8s.io": ("spec.nodeName", "spec.driver"),
}
# The two event APIs name the same thing differently; objects are stored under the core names.
_EVENT_ALIASES = {"regarding": "involvedObject", "reportingController": "reportingComponent"}


def parse_labels(text: str) -> list[Requirement]:
    """Return the requirements of a label selector in its query form, such as `a=b,c in (d,e),!f`.

    The grammar and its error texts are those of apimachinery's `labels.Parse`; kubectl shows the texts to its users.
    """
    requirements: list[Requirement] = []
    tokens = _tokens(text)
    at = 0

    def take() -> str:
        nonlocal at
        if at >= len(tokens):
            raise _unparsable("found '', expected: identifier")
        at += 1
        return tokens[at - 1]

    while at < len(tokens):
        key = take()
        if key == "!":
            requirements.append(Requirement(_key(take()), DOES_NOT_EXIST, ()))
        elif key in _MARKS:
            raise bad_request(f"found '{key}', expected: !, identifier, or 'end of string'")
        else:
            key = _key(key)
            follows = tokens[at] if at < len(tokens) else ","
            if follows == ",":
                requirements.append(Requirement(key, EXISTS, ()))
            elif follows in ("=", "==", "!="):
                at += 1
                value = take() if at < len(tokens) and tokens[at] != "," else ""
                if value in _MARKS:
                    raise _unparsable(f"found '{value}', expected: identifier")
                requirements.append(Requirement(key, NOT_IN if follows == "!=" else IN, (_value(key, value),)))
            elif follows in ("in", "notin"):
                at += 1
                values = _parenthesised(key, take)
                requirements.append(Requirement(key, IN if follows == "in" else NOT_IN, values))
            elif follows in ("<", ">"):
                at += 1
                bound = take()
                if not re.fullmatch(r"-?\d+", bound):
                    raise _unparsable(
                        f"values[0]: Invalid value: \"{bound}\": for 'Gt', 'Lt' operators, the value must be an integer"
                    )
                requirements.append(Requirement(key, LT if follows == "<" else GT, (bound,)))
            else:
                raise _unparsable(f"found '{follows}', expected: in, notin, =, ==, !=, gt, lt")
        if at < len(tokens) and take() != ",":
            raise bad_request(f"found '{tokens[at - 1]}', expected: ',' or 'end of string'")
    return requirements


def requirements_of(selector: Mapping[str, Any]) -> list[Requirement]:
    """Return the requirements of a LabelSelector object."""
    found = [Requirement(key, IN, (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    for one in selector.get("matchExpressions") or ():
        found.append(Requirement(one.get("key", ""), one.get("operator", ""), tuple(one.get("values") or ())))
    return found


def written_selector(selector: Mapping[str, Any]) -> str:
    """Return a LabelSelector in its query form."""
    requirements = requirements_of(selector)
    return ",".join(str(one) for one in sorted(requirements, key=lambda one: (one.key, one.operator, one.values)))


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str] | None) -> bool:
    """Return whether a LabelSelector selects `labels`. None selects nothing, an empty one everything."""
    return selector is not None and all(one.matches(labels or {}) for one in requirements_of(selector))


def predicate(resource: Resource, label_text: str, field_text: str) -> Predicate | None:
    """Return a function that tests objects against both selectors of a request, or None if both are empty."""
    labels = parse_labels(label_text) if label_text.strip() else []
    fields = _parse_fields(resource, field_text) if field_text.strip() else []
    if not labels and not fields:
        return None

    def matches(obj: Object) -> bool:
        held = obj["metadata"].get("labels") or {} if labels else {}
        if not all(one.matches(held) for one in labels):
            return False
        return all((field_value(obj, path) == wanted) is equal for path, equal, wanted in fields)

    return matches


def field_value(obj: Object, path: tuple[str, ...]) -> str:
    """Return a field as field selectors compare it: as text, "" if absent, "false" for an absent flag."""
    found: Any = obj
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    if path[-1] in ("unschedulable", "hostNetwork"):
        return "true" if found else "false"
    if path == ("status", "replicas") or path == ("status", "successful"):
        return str(found or 0)
    if path == ("source",):
        return str((found or {}).get("component") or obj.get("reportingComponent") or "")
    return "" if found is None else str(found)


def name_in(field_text: str) -> str:
    """Return the name that a field selector pins with metadata.name=, or ""."""
    for part in field_text.split(","):
        key, _, value = part.partition("=")
        if key.strip() == "metadata.name":
            return value.lstrip("=").strip()
    return ""


def pin_of(field_text: str) -> Pin | None:
    """Return a field and the value it must have, for the fields by which watches are looked up; None if there is none."""
    for part in field_text.split(","):
        name, _, value = part.partition("=")
        if name.strip() in PINNABLE and not value.startswith("="):
            return name.strip(), value.strip()
    return None


def _parse_fields(resource: Resource, field_text: str) -> list[tuple[tuple[str, ...], bool, str]]:
    """Return path, operator and value of each part of a field selector; refuse fields that the resource does not offer."""
    supported = set(_SUPPORTED_FIELDS.get(resource.table, ()))
    supported.add("metadata.name")
    if resource.namespaced:
        supported.add("metadata.namespace")
    for extra in (resource.custom or {}).get("selectableFields") or []:
        supported.add(str(extra.get("jsonPath", "")).lstrip("."))
    found = []
    for part in field_text.split(","):
        if not part.strip():
            continue
        split = re.fullmatch(r"([^=!\s]+)\s*(==|=|!=)\s*(.*)", part.strip())
        if split is None:
            raise bad_request(f"invalid selector: '{field_text}'; can't understand '{part}'")
        name, operator, value = split.groups()
        first, dot, rest = name.partition(".")
        name = _EVENT_ALIASES.get(first, first) + dot + rest if resource.table == "events" else name
        if name not in supported:
            raise _unknown_field(resource, name)
        found.append((tuple(name.split(".")), operator != "!=", value))
    return found


def _unknown_field(resource: Resource, name: str) -> ApiError:
    """Return the refusal of a field. Resources with fields of their own and plain ones have different texts."""
    if resource.table in _SUPPORTED_FIELDS:
        return bad_request(f"field label not supported: {name}")
    known = '"metadata.name", "metadata.namespace"'
    return bad_request(f'"{name}" is not a known field selector: only {known}')


def _tokens(text: str) -> list[str]:
    """Split a label selector into words and marks."""
    tokens = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _unparsable(f"found '{text[at]}'")
        tokens.append(found.group(1))
        at = found.end()
    return tokens


def _parenthesised(key: str, take: Callable[[], str]) -> tuple[str, ...]:
    """Read the values of `in (a,b)`. An empty place between commas is the empty value."""
    if (found := take()) != "(":
        raise _unparsable(f"found '{found}' expected: '('")
    values: list[str] = []
    expecting = True
    while True:
        try:
            token = take()
        except BadRequest:
            raise _unparsable("found '', expected: ',' or ')'") from None
        if token == ")":
            return tuple(values) if values else ("",)
        if token == ",":
            if expecting:
                values.append("")
            expecting = True
        else:
            values.append(_value(key, token))
            expecting = False


def _key(key: str) -> str:
    """Return a label key, or refuse it."""
    for complaint in qualified_name_complaints(key):
        raise _unparsable(f'<nil>: Invalid value: "{key}": {complaint}')
    return key


def _value(key: str, value: str) -> str:
    """Return a label value, or refuse it."""
    for complaint in label_value_complaints(value):
        raise _unparsable(f'values[0][{key}]: Invalid value: "{value}": {complaint}')
    return value


def _unparsable(why: str) -> ApiError:
    return bad_request(f"unable to parse requirement: {why}")
