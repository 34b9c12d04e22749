from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.errors import MalformedObject
from kubesched.kube.values.quantity import (
    BINARY_SI,
    DECIMAL_EXPONENT,
    DECIMAL_SI,
    INT64_MAX,
    NANO,
    QuantityError,
    canonical,
    format_quantity,
    mantissa,
    milli_value,
    parse,
    parse_field,
    style_of,
    value,
)

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


@pytest.mark.parametrize("text", [".", "-", "+", "-.", "Ki", "m", "e3"])
def test_no_digits_are_zero(text: str) -> None:
    assert parse(text) == 0
    assert mantissa(text)[0] == 0


@pytest.mark.parametrize(
    "text",
    ["", " ", "K", "1K", "1ki", "1mi", "1e", "1e+", "1x", "1 Gi", "--1", "1.2.3", "1_000", "0x1",
     "1i", "1Mib", "٣", "nan", "inf", "1e1001", "1e99999999999", "9" * 5000],
)  # fmt: skip
def test_what_is_no_quantity_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(text)
    assert caught.value.text == text
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("wrong", [None, True, [], {}])
def test_other_types_are_refused(wrong: object) -> None:
    with pytest.raises((QuantityError, TypeError)):
        parse(wrong)


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("0.0000000001", 1),
        ("1.0000000001", NANO + 1),
        ("-0.0000000001", -1),
        ("0.5n", 1),
        ("1.0000000000", NANO),
    ],
)
def test_finer_than_nano_rounds_away_from_zero(text: str, nano: int) -> None:
    assert parse(text) == nano


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("8Ei", INT64_MAX),
        ("16Ei", INT64_MAX),
        ("-16Ei", -INT64_MAX),
        ("7Ei", 7 * 2**60),
        ("9999999999999999999Ki", INT64_MAX),
    ],
)
def test_binary_values_stop_at_64_bits(text: str, units: int) -> None:
    assert parse(text) == units * NANO


def test_decimal_values_do_not_stop_but_their_integers_do() -> None:
    assert parse("16E") == 16 * 10**18 * NANO
    assert value(parse("16E")) == INT64_MAX
    assert value(parse("-16E")) == -INT64_MAX - 1
    assert milli_value(parse("8Ei")) == INT64_MAX


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0", "0"),
        ("0Gi", "0"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("1536Mi", "1536Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("1.5", "1500m"),
        ("100000m", "100"),
        ("1e3", "1e3"),
        ("1000e3", "1e6"),
        ("1e0", "1"),
        ("12e-1", "1200e-3"),
        ("-2048Ki", "-2Mi"),
        ("-1500m", "-1500m"),
        ("1000E", "1000E"),
        ("0.0000000001", "1n"),
        (5000, "5k"),
    ],
)
def test_canonical_text(text: str | int, written: str) -> None:
    assert canonical(text) == written


def test_styles() -> None:
    assert [style_of(text) for text in ("1", "1m", "1E", "1Ki", "1e3", "1E3", 1.5)] == [
        DECIMAL_SI, DECIMAL_SI, DECIMAL_SI, BINARY_SI, DECIMAL_EXPONENT, DECIMAL_EXPONENT, DECIMAL_SI,
    ]  # fmt: skip


NANOS = st.integers(-(10**40), 10**40)


@given(NANOS, st.sampled_from([DECIMAL_SI, DECIMAL_EXPONENT]))
def test_decimal_text_brings_the_value_back(nano: int, style: str) -> None:
    assert parse(format_quantity(nano, style)) == nano


@given(st.integers(-INT64_MAX, INT64_MAX))
def test_binary_text_brings_the_value_back(units: int) -> None:
    assert parse(format_quantity(units * NANO, BINARY_SI)) == units * NANO


@given(st.integers(-(10**30), 10**30))
def test_binary_text_of_fractions_brings_the_value_back(nano: int) -> None:
    if abs(nano) <= INT64_MAX * NANO:
        assert parse(format_quantity(nano, BINARY_SI)) == nano


@given(
    st.sampled_from(["", "+", "-"]),
    st.text("0123456789", min_size=1, max_size=25),
    st.text("0123456789", max_size=25),
    st.sampled_from([*DECIMAL, "e5", "E-7"]),
)
def test_parse_agrees_with_exact_fractions(sign: str, whole: str, fraction: str, suffix: str) -> None:
    exponent = DECIMAL[suffix] if suffix in DECIMAL else int(suffix[1:])
    exact = Fraction(f"{whole}.{fraction or 0}") * Fraction(10) ** exponent * NANO
    expected = -(-exact.numerator // exact.denominator)
    assert parse(f"{sign}{whole}.{fraction}{suffix}") == (-expected if sign == "-" else expected)


@given(NANOS)
def test_canonical_text_is_stable(nano: int) -> None:
    text = format_quantity(nano)
    assert canonical(text) == text


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    try:
        nano = parse(text)
    except QuantityError:
        return
    assert parse(canonical(text)) == nano or style_of(text) == BINARY_SI


def test_a_field_that_holds_no_quantity_is_named() -> None:
    assert parse_field("2k", "node a", "status.allocatable.cpu") == 2000 * NANO
    with pytest.raises(MalformedObject, match=r"node a: status\.allocatable\.cpu: invalid value 'many': not a quantity"):
        parse_field("many", "node a", "status.allocatable.cpu")
