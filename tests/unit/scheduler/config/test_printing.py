"""Printing: the effective document, byte for byte as the reference writes it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubesched.scheduler.config import Gates, as_yaml, effective, load
from kubesched.scheduler.config.documents.wire import plain
from kubesched.scheduler.config.documents.yamltext import read_yaml
from kubesched.scheduler.plugins.args import IN_TREE_CATALOGUE

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}

SCALARS: list[tuple[Any, str]] = [
    ("leases", "leases"),
    ("", '""'),
    ("y", '"y"'),
    ("yes", '"yes"'),
    ("null", '"null"'),
    ("~", '"~"'),
    ("5", '"5"'),
    ("0x10", '"0x10"'),
    ("1_000", '"1_000"'),
    ("1.5", '"1.5"'),
    (".inf", '".inf"'),
    ("<<", '"<<"'),
    ("2001-02-03", '"2001-02-03"'),
    ("0001-02-29", "0001-02-29"),
    ("1:30", '"1:30"'),
    ("15s", "15s"),
    ("a: b", "'a: b'"),
    ("*", "'*'"),
    (" lead", "' lead'"),
    ("tab\there", '"tab\\there"'),
    ("a\nb", "|-\n  a\n  b"),
    ("word " * 40 + "end", "word " * 40 + "end"),
    ("ünï", "ünï"),
    (True, "true"),
    (None, "null"),
    (0, "0"),
    (2**64 - 1, "18446744073709551615"),
    (2**64, "1.8446744073709552e+19"),
    (1000.0, "1000"),
    (0.5, "0.5"),
    (0.0001, "0.0001"),
    (0.00001, "1e-05"),
    (123456.5, "123456.5"),
    (1234567.5, "1.2345675e+06"),
    (1e20, "1e+20"),
    (-1e-7, "-1e-07"),
    ([], "[]"),
    ({}, "{}"),
]


@pytest.mark.parametrize(("value", "text"), SCALARS, ids=[repr(case[0])[:20] for case in SCALARS])
def test_a_value_is_written_as_the_references_yaml_library_writes_it(value: Any, text: str) -> None:
    assert as_yaml({"key": value}) == f"key: {text}\n"


KEYS = [
    (["b", "a"], ["a", "b"]),
    (["a10", "a2"], ["a2", "a10"]),
    (["a", "A"], ["A", "a"]),
    (["ab", "a-b", "a1"], ["a-b", "a1", "ab"]),
    (["a100", "a11", "a10"], ["a10", "a11", "a100"]),
    (["a01", "a1"], ["a1", "a01"]),
    (["abc", "ab"], ["ab", "abc"]),
]


@pytest.mark.parametrize(("given_keys", "written"), KEYS, ids=[" ".join(case[1]) for case in KEYS])
def test_keys_are_in_the_order_of_that_library(given_keys: list[str], written: list[str]) -> None:
    assert list(yaml.safe_load(as_yaml(dict.fromkeys(given_keys, 0)))) == written


QPS = [
    (50, "50"),
    (0.1, "0.1"),
    (16777217, "16777216"),
    (1e10, "10000000000"),
    (1e20, "1e+20"),
    (1e21, "1e+21"),
    (1e-7, "1e-07"),
    (0.30000001, "0.3"),
    (123456789, "123456790"),
    (1.4e-45, "1e-45"),
]


@pytest.mark.parametrize(("qps", "text"), QPS)
def test_a_rate_is_written_with_the_digits_that_32_bits_need(qps: float, text: str) -> None:
    document = json.dumps({**HEAD, "clientConnection": {"qps": qps}})
    written = as_yaml(effective(load(document, gates=Gates.defaults(), registry=IN_TREE_CATALOGUE)))
    assert f"\n  qps: {text}\n" in written


def test_an_extender_says_only_what_it_was_given() -> None:
    document = json.dumps({**HEAD, "extenders": [{}]})
    found = effective(load(document, gates=Gates.defaults(), registry=IN_TREE_CATALOGUE))
    assert found["extenders"] == [{"httpTimeout": "5s", "urlPrefix": ""}]


printable = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=6)
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | printable,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(printable, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(printable, documents, max_size=3))
def test_what_is_written_is_read_back(document: dict[str, Any]) -> None:
    tree, repeated = read_yaml(as_yaml(document))
    assert plain(tree) == document
    assert not repeated
