"""Labels, taints, node terms and pod terms, matched one at a time."""

from __future__ import annotations

import re
from typing import Any

_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_TAINT_NUMBER = re.compile(r"-?[1-9][0-9]*|0")

Labels = dict[str, str]


class Unreadable(Exception):
    """A selector that cannot be read."""


def is_label_value(text: str) -> bool:
    return len(text) <= 63 and _VALUE.fullmatch(text) is not None


def is_label_key(key: str) -> bool:
    domain, slash, name = key.rpartition("/")
    if slash and not (domain and len(domain) <= 253 and _DOMAIN.fullmatch(domain)):
        return False
    return 0 < len(name) <= 63 and _NAME.fullmatch(name) is not None


def number(text: str) -> int | None:
    if not _NUMBER.fullmatch(text):
        return None
    found = int(text)
    return found if -(2**63) <= found < 2**63 else None


def meets(expression: dict[str, Any], labels: Labels) -> bool:
    """Return whether labels meet one expression that can be read."""
    key, operator, values = expression["key"], expression["operator"], expression.get("values") or []
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    mine = number(labels[key]) if key in labels else None
    limit = number(values[0])
    if mine is None or limit is None:
        return False
    return mine > limit if operator == "Gt" else mine < limit


def check(expression: dict[str, Any], operators: tuple[str, ...]) -> None:
    """Raise if an expression cannot be read."""
    operator, values = expression["operator"], expression.get("values") or []
    if operator not in operators or not is_label_key(expression["key"]) or not all(is_label_value(v) for v in values):
        raise Unreadable
    if operator in ("In", "NotIn") and not values:
        raise Unreadable
    if operator in ("Exists", "DoesNotExist") and values:
        raise Unreadable
    if operator in ("Gt", "Lt") and (len(values) != 1 or number(values[0]) is None):
        raise Unreadable


# Label selectors: None selects nothing, {} selects everything.


def check_selector(selector: dict[str, Any] | None) -> None:
    for expression in expressions_of(selector):
        check(expression, ("In", "NotIn", "Exists", "DoesNotExist"))


def expressions_of(selector: dict[str, Any] | None) -> list[dict[str, Any]]:
    selector = selector or {}
    equal = [{"key": k, "operator": "In", "values": [v]} for k, v in (selector.get("matchLabels") or {}).items()]
    return equal + list(selector.get("matchExpressions") or [])


def selects(selector: dict[str, Any] | None, labels: Labels) -> bool:
    return selector is not None and all(meets(expression, labels) for expression in expressions_of(selector))


def is_everything(selector: dict[str, Any] | None) -> bool:
    return selector is not None and not expressions_of(selector)


# Nodes


def labels_of(obj: dict[str, Any]) -> Labels:
    return obj["metadata"].get("labels") or {}


def is_empty_term(term: dict[str, Any]) -> bool:
    return not term.get("matchExpressions") and not term.get("matchFields")


def check_term(term: dict[str, Any]) -> None:
    for expression in term.get("matchExpressions") or []:
        check(expression, ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    for wanted in term.get("matchFields") or []:
        if wanted["operator"] not in ("In", "NotIn") or len(wanted.get("values") or []) != 1:
            raise Unreadable


def term_matches(term: dict[str, Any], node: dict[str, Any]) -> bool:
    """Return whether a node meets a term; one that is empty or cannot be read is met by none."""
    if is_empty_term(term):
        return False
    try:
        check_term(term)
    except Unreadable:
        return False
    if not all(meets(expression, labels_of(node)) for expression in term.get("matchExpressions") or []):
        return False
    for wanted in term.get("matchFields") or []:
        found = node["metadata"]["name"] if wanted["key"] == "metadata.name" else ""
        if (found == wanted["values"][0]) != (wanted["operator"] == "In"):
            return False
    return True


def node_affinity(pod: dict[str, Any]) -> dict[str, Any]:
    return (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}


def required_node_terms(pod: dict[str, Any]) -> dict[str, Any] | None:
    return node_affinity(pod).get("requiredDuringSchedulingIgnoredDuringExecution")


def may_go_to(pod: dict[str, Any], node: dict[str, Any]) -> bool:
    """Return whether a node is what the pod's node selector and required node affinity ask for."""
    for key, value in (pod["spec"].get("nodeSelector") or {}).items():
        if labels_of(node).get(key) != value:
            return False
    required = required_node_terms(pod)
    return required is None or any(term_matches(term, node) for term in required.get("nodeSelectorTerms") or [])


# Taints


def tolerates(toleration: dict[str, Any], taint: dict[str, Any], compares: bool) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    mine, theirs = toleration.get("value") or "", taint.get("value") or ""
    if operator == "Equal":
        return mine == theirs
    if operator == "Exists":
        return True
    if operator in ("Lt", "Gt") and compares:
        if not _TAINT_NUMBER.fullmatch(mine) or not _TAINT_NUMBER.fullmatch(theirs):
            return False
        limit, found = number(mine), number(theirs)
        if limit is None or found is None:
            return False
        return found < limit if operator == "Lt" else found > limit
    return False


def tolerations_of(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return pod["spec"].get("tolerations") or []


def has_hard_taint(pod: dict[str, Any], node: dict[str, Any], compares: bool) -> bool:
    """Return whether a node has a taint that keeps the pod away."""
    hard = [taint for taint in node["spec"].get("taints") or [] if taint["effect"] in ("NoSchedule", "NoExecute")]
    return any(not any(tolerates(toleration, taint, compares) for toleration in tolerations_of(pod)) for taint in hard)
