"""Documents: JSON and YAML as trees, and the parsers' own error texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.errors import ConfigError
from kubesched.scheduler.config.documents.reading import Number, Object, compact, is_json, read_json
from kubesched.scheduler.config.documents.wire import plain
from kubesched.scheduler.config.documents.yamltext import read_yaml

JSON_ERRORS = [
    ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
    ('{"a" 1}', "invalid character '1' after object key"),
    ('{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
    ("{", "unexpected end of JSON input"),
    ('{"a":tru}', "invalid character '}' in literal true (expecting 'e')"),
    ('{"a":[1 2]}', "invalid character '2' after array element"),
    ('{"a":-}', "invalid character '}' in numeric literal"),
    ('{"a":1.}', "invalid character '}' after decimal point in numeric literal"),
    ('{"a":1e}', "invalid character '}' in exponent of numeric literal"),
    ('{"a":"\\x"}', "invalid character 'x' in string escape code"),
    ('{"a":"\\u12G4"}', "invalid character 'G' in \\u hexadecimal character escape"),
    ('{"a":"\n"}', "invalid character '\\n' in string literal"),
    ('{"a":1} x', "invalid character 'x' after top-level value"),
    ("{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
    ('{"a":}', "invalid character '}' looking for beginning of value"),
    ('{"a":1\\', "invalid character '\\\\' after object key:value pair"),
    ('{"a"é', "invalid character 'Ã' after object key"),
    ('{"a":-', "invalid character ' ' in numeric literal"),
    ('{"a":1.', "invalid character ' ' after decimal point in numeric literal"),
    ('{"a":1e', "invalid character ' ' in exponent of numeric literal"),
    ('{"a":tr', "invalid character ' ' in literal true (expecting 'u')"),
    ('{"a":"\\', "invalid character ' ' in string escape code"),
    ('{"a":"x', "unexpected end of JSON input"),
]


@pytest.mark.parametrize(("text", "error"), JSON_ERRORS)
def test_broken_json_is_refused_in_gos_words(text: str, error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_json(text)
    assert str(caught.value) == error


def test_order_repetition_and_digits_survive() -> None:
    tree = read_json('{"b": 1.50, "a": [true, null, "x"], "b": -0}')
    assert tree == Object((("b", Number("1.50")), ("a", [True, None, "x"]), ("b", Number("-0"))))
    assert compact(tree) == '{"b":1.50,"a":[true,null,"x"],"b":-0}'


documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(documents)
def test_json_means_what_the_standard_reader_says(document: Any) -> None:
    assert plain(read_json(json.dumps(document))) == document


@pytest.mark.parametrize(
    ("text", "expected"), [("{}", True), (" \n{", True), ("apiVersion: v1", False), ("[]", False), ("", False)]
)
def test_only_a_brace_makes_it_json(text: str, expected: bool) -> None:
    assert is_json(text) is expected


SCALARS: list[tuple[str, Any]] = [
    ("yes", True),
    ("on", True),
    ("y", True),
    ("No", False),
    ("off", False),
    ("true", True),
    ("~", None),
    ("", None),
    ("null", None),
    ("'yes'", "yes"),
    ('"5"', "5"),
    ("!!str 5", "5"),
    ("!!str y", "y"),
    ("5", 5),
    ("+5", 5),
    ("-5", -5),
    ("1_000", 1000),
    ("0x1F", 31),
    ("0b101", 5),
    ("0o17", 15),
    ("017", 15),
    ("1.5", 1.5),
    ("1e3", 1000),
    (".5", 0.5),
    ("15s", "15s"),
    ("1.2.3", "1.2.3"),
    ("2001-02-03", "2001-02-03"),
    ("2001-13-03", "2001-13-03"),
    ("2001-02-03T04:05:06Z", "2001-02-03T04:05:06Z"),
    ("1e400", "1e400"),
    (".1_0", ".1_0"),
    ("!mine 5", "5"),
    ("!!int 5", 5),
    ("089", 89),
    ("text", "text"),
    ("|\n  two\n  lines\n", "two\nlines\n"),
]


@pytest.mark.parametrize(("text", "expected"), SCALARS, ids=[repr(case[0]) for case in SCALARS])
def test_yaml_scalars_mean_what_the_references_library_says(text: str, expected: Any) -> None:
    tree, repeated = read_yaml(f"key: {text}")
    assert plain(tree) == {"key": expected}
    assert type(plain(tree)["key"]) is type(expected)
    assert repeated == []


def test_yaml_keys_are_sorted_strings() -> None:
    tree, _ = read_yaml("b: 1\na: 2\n3: x\ntrue: z\n")
    assert tree == Object((("3", "x"), ("a", Number("2")), ("b", Number("1")), ("true", "z")))


def test_merge_keys_bring_in_what_is_not_there() -> None:
    tree, _ = read_yaml("base: &base {b: 1, c: 1}\nuse: {<<: *base, c: 2}\n")
    assert plain(tree)["use"] == {"b": 1, "c": 2}


def test_repeated_yaml_keys_are_reported_with_their_line() -> None:
    tree, repeated = read_yaml("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n")
    assert plain(tree) == {"a": 3, "b": {"c": 2}}
    assert repeated == ['line 4: key "c" already set in map', 'line 5: key "a" already set in map']


def test_only_the_first_document_counts() -> None:
    assert read_yaml("a: 1\n---\nb: 2\n")[0] == Object((("a", Number("1")),))


LONG_NUMBERS = [
    ("18446744073709551615", "18446744073709551615"),
    ("18446744073709551616", "18446744073709552000"),
    ("-9223372036854775809", "-9223372036854776000"),
    ("1e20", "100000000000000000000"),
    ("1e21", "1e+21"),
    ("1.5e-7", "1.5e-7"),
    ("1.5e-12", "1.5e-12"),
    ("0.000001", "0.000001"),
    ("-0.0", "-0"),
    ("1.50", "1.5"),
]


@pytest.mark.parametrize(("text", "digits"), LONG_NUMBERS)
def test_a_yaml_number_gets_the_digits_that_gos_json_would_write(text: str, digits: str) -> None:
    assert read_yaml(f"key: {text}")[0] == Object((("key", Number(digits)),))


YAML_ERRORS = [
    ("a: &x 1\nb: *y", "yaml: unknown anchor 'y' referenced"),
    ("~: x", 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "x"'),
    ("~: 5", "unsupported map key of type: %!s(<nil>), key: <nil>, value: 5"),
    ("~:", "unsupported map key of type: %!s(<nil>), key: <nil>, value: interface {}(nil)"),
    ("a: b: c", "yaml: mapping values are not allowed in this context"),
    ("x: 1\na: b: c", "yaml: line 2: mapping values are not allowed in this context"),
    ("x:\n  - a\n b: c", "yaml: line 2: did not find expected key"),
    ("a: \x01", "yaml: control characters are not allowed"),
    ("a: .nan", "json: unsupported value: NaN"),
    ("a: {<<: 5}", "yaml: map merge requires map or sequence of maps as the value"),
]


@pytest.mark.parametrize(("text", "error"), YAML_ERRORS)
def test_broken_yaml_is_refused(text: str, error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_yaml(text)
    assert str(caught.value) == error
