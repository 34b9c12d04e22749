"""Selectors: what they let through and what they refuse."""

from __future__ import annotations

from kubesched.embedded.schema.resources import Catalogue
from kubesched.embedded.storage.selectors import predicate, selects

PODS = Catalogue().named("pods")


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert selects(None, {"a": "b"}) is False
    assert selects({}, {"a": "b"}) is True
    assert selects({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"a": "b"}) is True


def test_nothing_asked_costs_nothing() -> None:
    assert predicate(PODS, "", " ") is None
