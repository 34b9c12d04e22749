"""Selectors: what they let through and what they refuse."""

from __future__ import annotations

import pytest

from kubesched.embedded.schema.resources import Catalogue
from kubesched.embedded.storage.selectors import predicate, selects
from kubesched.errors import BadRequest

PODS = Catalogue().named("pods")
LABELS = [
    ("equality", "a=1", {"a": "1"}, True),
    ("double equality", "a==1", {"a": "1"}, True),
    ("another value", "a=1", {"a": "2"}, False),
    ("inequality of a missing key", "a!=1", {}, True),
    ("inequality", "a!=1", {"a": "1"}, False),
    ("one of several", "a in (1, 2)", {"a": "2"}, True),
    ("none of several", "a notin (1,2)", {"a": "3"}, True),
    ("none of several, missing", "a notin (1,2)", {}, True),
    ("presence", "a", {"a": ""}, True),
    ("absence", "!a", {"b": ""}, True),
    ("a key with a prefix", "x.io/a=b", {"x.io/a": "b"}, True),
    ("all of them", "a=1,b!=2,c", {"a": "1", "c": "x"}, True),
    ("not all of them", "a=1,b=2", {"a": "1"}, False),
    ("greater", "a>3", {"a": "5"}, True),
    ("smaller", "a<3", {"a": "5"}, False),
    ("an empty value", "a=", {"a": ""}, True),
]


@pytest.mark.parametrize(("text", "labels", "expected"), [row[1:] for row in LABELS], ids=[row[0] for row in LABELS])
def test_label_selectors(text: str, labels: dict, expected: bool) -> None:
    matches = predicate(PODS, text, "")
    assert matches is not None
    assert matches({"metadata": {"labels": labels}}) is expected


@pytest.mark.parametrize("text", ["a=b=c", "=b", "a in b", "a in (b", "a (b)", "a b", "-a", "a=-b", "a>x", "a,,b", "!", "a!"])
def test_unreadable_label_selectors_are_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        predicate(PODS, text, "")


FIELDS = [
    ("a node", "spec.nodeName=n", True),
    ("no node", "spec.nodeName=", False),
    ("not ended", "status.phase!=Succeeded,status.phase!=Failed", True),
    ("a name and a namespace", "metadata.name=p,metadata.namespace=d", True),
    ("a flag that is not set", "spec.hostNetwork=false", True),
    ("two equal signs", "spec.nodeName==n", True),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in FIELDS], ids=[row[0] for row in FIELDS])
def test_field_selectors(text: str, expected: bool) -> None:
    pod = {"metadata": {"name": "p", "namespace": "d"}, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
    matches = predicate(PODS, "", text)
    assert matches is not None
    assert matches(pod) is expected


def test_a_field_nobody_selects_by_is_named() -> None:
    with pytest.raises(BadRequest, match=r"field label not supported: spec\.foo"):
        predicate(PODS, "", "spec.foo=1")
    with pytest.raises(BadRequest, match="can't understand"):
        predicate(PODS, "", "spec.nodeName")


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert selects(None, {"a": "b"}) is False
    assert selects({}, {"a": "b"}) is True
    assert selects({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"a": "b"}) is True


def test_nothing_asked_costs_nothing() -> None:
    assert predicate(PODS, "", " ") is None
