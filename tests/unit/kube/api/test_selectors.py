from __future__ import annotations

import pytest

from kubesched.kube.api.meta import LabelSelector, LabelSelectorRequirement
from kubesched.kube.api.selectors import (
    EVERYTHING,
    NOTHING,
    Requirement,
    SelectorError,
    compile_selector,
    parse_int64,
    selector_from_map,
)

NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def expression(key: str, operator: str, *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=(LabelSelectorRequirement(key=key, operator=operator, values=values),))


def test_an_absent_selector_is_nothing_and_an_empty_one_everything() -> None:
    assert compile_selector(None) is NOTHING
    assert compile_selector(LabelSelector()) is EVERYTHING
    assert (NOTHING.is_nothing, NOTHING.is_everything) == (True, False)
    assert (EVERYTHING.is_nothing, EVERYTHING.is_everything) == (False, True)
    for labels in ({}, {"a": "b"}):
        assert not NOTHING.matches(labels)
        assert EVERYTHING.matches(labels)


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (expression("k", "Gt", "1"), '"Gt" is not a valid label selector operator'),
        (expression("k", "", "1"), '"" is not a valid label selector operator'),
        (expression("k", "In"), "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"),
        (
            LabelSelector(match_expressions=(LabelSelectorRequirement(key="k", operator="In"),)),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            expression("k", "NotIn"),
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            expression("k", "Exists", "a", "b"),
            'values: Invalid value: ["a","b"]: values set must be empty for exists and does not exist',
        ),
        (expression("a b", "Exists"), f'key: Invalid value: "a b": {NAME_RULE}'),
        (expression("", "Exists"), f'key: Invalid value: "": name part must be non-empty; {NAME_RULE}'),
        (
            expression("x/y/z", "Exists"),
            f'key: Invalid value: "x/y/z": a valid label key {NAME_RULE[10:]} with an optional DNS subdomain prefix '
            "and '/' (e.g. 'example.com/MyName')",
        ),
        (expression("/y", "Exists"), 'key: Invalid value: "/y": prefix part must be non-empty'),
        (
            expression("x" * 64, "Exists"),
            f'key: Invalid value: "{"x" * 64}": name part must be no more than 63 bytes',
        ),
        (expression("k", "\x01<"), '"\\x01<" is not a valid label selector operator'),
        (
            expression("k", "Exists", "a", "<"),
            '[values: Invalid value: ["a","\\u003c"]: values set must be empty for exists and does not exist, '
            f'values[1][k]: Invalid value: "<": {VALUE_RULE}]',
        ),
        (expression("k", "In", "\x01"), f'values[0][k]: Invalid value: "\\x01": {VALUE_RULE}'),
        (expression("k", "In", "ok", "a b"), f'values[1][k]: Invalid value: "a b": {VALUE_RULE}'),
        (
            expression("k", "In", "x" * 64),
            f'values[0][k]: Invalid value: "{"x" * 64}": must be no more than 63 bytes',
        ),
        (LabelSelector(match_labels={"k": "-"}), f'values[0][k]: Invalid value: "-": {VALUE_RULE}'),
        (
            expression("a b", "In"),
            f"[key: Invalid value: \"a b\": {NAME_RULE}, values: Invalid value: []: for 'in', 'notin' operators, "
            "values set can't be empty]",
        ),
    ],
)
def test_broken_selectors_are_refused_in_the_reference_s_words(selector: LabelSelector, text: str) -> None:
    with pytest.raises(SelectorError) as caught:
        compile_selector(selector)
    assert str(caught.value) == text


@pytest.mark.parametrize("key", ["Example.com/a", "a_b/c", "-a", "a-", "ex ample/c", f"{'a' * 254}/c"])
def test_bad_keys(key: str) -> None:
    with pytest.raises(SelectorError):
        compile_selector(expression(key, "Exists"))


def test_a_plain_map_is_never_checked() -> None:
    assert selector_from_map({}) is EVERYTHING
    odd = selector_from_map({"a b": "c d"})
    assert odd.matches({"a b": "c d"})
    assert not odd.matches({})


def test_narrowing_adds_a_requirement() -> None:
    narrowed = compile_selector(LabelSelector(match_labels={"app": "web"})).with_equal("version", "2")
    assert narrowed.matches({"app": "web", "version": "2"})
    assert not narrowed.matches({"app": "web", "version": "1"})
    assert not narrowed.matches({"version": "2"})
    assert EVERYTHING.with_equal("a", "b").matches({"a": "b"})
    assert not EVERYTHING.with_equal("a", "b").is_everything
    assert NOTHING.with_equal("a", "b") is NOTHING


def test_selectors_are_values() -> None:
    one = compile_selector(LabelSelector(match_labels={"a": "1", "b": "2"}))
    two = compile_selector(LabelSelector(match_labels={"b": "2", "a": "1"}))
    assert one == two
    assert len({one, two}) == 1


def test_text() -> None:
    selector = LabelSelector(
        match_labels={"app": "web"},
        match_expressions=(
            LabelSelectorRequirement(key="tier", operator="In", values=("b", "a")),
            LabelSelectorRequirement(key="zone", operator="NotIn", values=("z",)),
            LabelSelectorRequirement(key="gpu", operator="Exists"),
            LabelSelectorRequirement(key="old", operator="DoesNotExist"),
        ),
    )
    assert str(compile_selector(selector)) == "app=web,tier in (a,b),zone notin (z),gpu,!old"
    assert str(Requirement("n", "Gt", ("3",))) == "n>3"
    assert str(Requirement("n", "Lt", ("3",))) == "n<3"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("+7", 7),
        ("-7", -7),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
        ("", None),
        (" 1", None),
        ("1 ", None),
        ("1_0", None),
        ("1.0", None),
        ("0x1", None),
        ("٣", None),
        ("9" * 5000, None),
    ],
)
def test_integers_of_64_bits(text: str, number: int | None) -> None:
    assert parse_int64(text) == number
