"""Lengths of time on the command line: one way to write them for all commands."""

from __future__ import annotations

import click
import pytest

from kubesched.cli.options import Seconds

TIMES = [("90", 90.0), ("1.5", 1.5), ("90s", 90.0), ("10m", 600.0), ("1h30m", 5400.0), ("250ms", 0.25)]
REFUSED = [
    (Seconds(), "soon", "'soon' is no length of time: expected seconds, or text such as 90s, 10m or 1h30m"),
    (Seconds(), "0", "0 is too short"),
    (Seconds(), "-3s", "-3s is too short"),
    (Seconds(), "nan", "nan is too short"),
    (Seconds(), "inf", "inf is too long"),
    (Seconds(1.0), "0.5s", "0.5s is too short: at least 1 s"),
    (Seconds(0, 60), "2m", "2m is too long: at most 60 s"),
]


@pytest.mark.parametrize(("text", "seconds"), TIMES)
def test_a_number_is_seconds_and_go_durations_are_read(text: str, seconds: float) -> None:
    assert Seconds().convert(text, None, None) == seconds


@pytest.mark.parametrize(("kind", "text", "message"), REFUSED)
def test_what_is_out_of_range_is_refused(kind: Seconds, text: str, message: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        kind.convert(text, None, None)
    assert refused.value.message == message


def test_zero_is_a_length_where_it_is_allowed() -> None:
    assert Seconds(0).convert("0", None, None) == 0.0
