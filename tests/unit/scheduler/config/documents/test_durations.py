"""Durations: read and printed as Go does, and refused in its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.errors import ConfigError
from kubesched.scheduler.config.documents.durations import Duration

PRINTED = [
    ("0", 0, "0s"),
    ("0s", 0, "0s"),
    ("15s", 15_000_000_000, "15s"),
    ("10m0s", 600_000_000_000, "10m0s"),
    ("1h", 3_600_000_000_000, "1h0m0s"),
    ("1.5h", 5_400_000_000_000, "1h30m0s"),
    ("90s", 90_000_000_000, "1m30s"),
    ("-5s", -5_000_000_000, "-5s"),
    ("+5s", 5_000_000_000, "5s"),
    ("1500ms", 1_500_000_000, "1.5s"),
    ("1ms", 1_000_000, "1ms"),
    ("1500us", 1_500_000, "1.5ms"),
    ("3µs", 3_000, "3µs"),
    ("7ns", 7, "7ns"),
    (".5s", 500_000_000, "500ms"),
    ("2h45m30.25s", 9_930_250_000_000, "2h45m30.25s"),
    ("0.1ns", 0, "0s"),
    ("0.99999999999999999999s", 1_000_000_000, "1s"),  # digits past 63 bits do not count, and floats round
    ("0.3333333333333333333h", 1_200_000_000_000, "20m0s"),
]


@pytest.mark.parametrize(("text", "nanoseconds", "printed"), PRINTED, ids=[case[0] for case in PRINTED])
def test_a_duration_is_read_and_printed(text: str, nanoseconds: int, printed: str) -> None:
    assert Duration.parse(text) == nanoseconds
    assert str(Duration.parse(text)) == printed


REFUSED = [
    ("", 'time: invalid duration ""'),
    ("soon", 'time: invalid duration "soon"'),
    ("-", 'time: invalid duration "-"'),
    (".s", 'time: invalid duration ".s"'),
    ("5", 'time: missing unit in duration "5"'),
    ("5 s", 'time: unknown unit " s" in duration "5 s"'),
    ("5d", 'time: unknown unit "d" in duration "5d"'),
    ("1h5", 'time: missing unit in duration "1h5"'),
    ("9999999h", 'time: invalid duration "9999999h"'),
    ("99999999999999999999", 'time: invalid duration "99999999999999999999"'),
    ("5秒", 'time: unknown unit "\\xe7\\xa7\\x92" in duration "5\\xe7\\xa7\\x92"'),
]


@pytest.mark.parametrize(("text", "error"), REFUSED, ids=[case[0] or "empty" for case in REFUSED])
def test_nonsense_is_refused_in_gos_words(text: str, error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Duration.parse(text)
    assert str(caught.value) == error


@given(st.integers(min_value=-(2**63) + 1, max_value=2**63 - 1))
def test_what_is_printed_reads_back(nanoseconds: int) -> None:
    assert Duration.parse(str(Duration(nanoseconds))) == nanoseconds
