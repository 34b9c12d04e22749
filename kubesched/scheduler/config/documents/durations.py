"""Durations as Go parses and prints them: "15s", "1h2m3.5s", "-5ms".

A `Duration` is an int of nanoseconds within 64 bits.
"""

from __future__ import annotations

import re

from kubesched.errors import ConfigError

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_LIMIT = 1 << 63
_NUMBER = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?")
_UNIT = re.compile(r"[^.0-9]*")


class Duration(int):
    """Nanoseconds."""

    __slots__ = ()

    @classmethod
    def of(cls, *, seconds: float = 0, minutes: float = 0) -> Duration:
        return cls(round((seconds + 60 * minutes) * 1_000_000_000))

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Parse a Go duration: a sign, then numbers with units. Raise ConfigError with Go's text."""
        # The sign is for the whole duration: `-1h30m` is minus ninety minutes.
        body = text[1:] if text[:1] in ("-", "+") else text
        if body == "0":
            return cls(0)
        if not body:
            raise _refused(text)
        total, rest = 0, body
        while rest:
            number = _NUMBER.match(rest)
            # A number may lack its integer part or its fraction, but not both: `.5s` and `5.s` are durations, `.s` is not.
            whole, point, fraction = number.groups() if number else ("", None, None)
            if not whole and not fraction:
                raise _refused(text)
            if int(whole or "0") > _LIMIT:
                raise _refused(text)
            rest = rest[number.end() :] if number else rest
            unit = _UNIT.match(rest)
            name = unit.group() if unit else ""
            if not name:
                raise ConfigError("", f"time: missing unit in duration {_quote(text)}")
            if name not in _UNITS:
                raise ConfigError("", f"time: unknown unit {_quote(name)} in duration {_quote(text)}")
            rest = rest[len(name) :]
            scale = _UNITS[name]
            total += int(whole or "0") * scale
            if point and fraction:
                total += _fraction(fraction, scale)
            # Kept quirk: the smallest duration, -(2**63) ns, can be written, and its positive counterpart cannot.
            if total > _LIMIT or (total == _LIMIT and text[0] != "-"):
                raise _refused(text)
        return cls(-total if text[0] == "-" else total)

    @property
    def seconds(self) -> float:
        return int(self) / 1_000_000_000

    def __str__(self) -> str:
        nanoseconds = abs(int(self))
        sign = "-" if int(self) < 0 else ""
        if nanoseconds == 0:
            return "0s"
        # Below a second the largest unit that gives a number of at least 1: 1.5ms, and not 0.0015s.
        for unit, scale in (("ns", 1), ("µs", 1_000), ("ms", 1_000_000)):
            if nanoseconds < 1_000_000_000 and nanoseconds < scale * 1_000:
                return f"{sign}{_decimal(nanoseconds, scale)}{unit}"
        # From a minute on all smaller units are printed too: `1h0m0s`.
        minutes, rest = divmod(nanoseconds, 60_000_000_000)
        hours, minutes = divmod(minutes, 60)
        seconds = f"{_decimal(rest, 1_000_000_000)}s"
        if hours:
            return f"{sign}{hours}h{minutes}m{seconds}"
        return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"

    __repr__ = __str__


def _fraction(digits: str, scale: int) -> int:
    """Return the value of the digits after the point. Go multiplies floats here, and ignores digits past 63 bits."""
    # The float is part of the result: 0.1 s is 100,000,000 ns, but some long fractions lose their last nanosecond, in Go and
    # here.
    counted = next(digits[:n] for n in range(len(digits), 0, -1) if int(digits[:n]) < _LIMIT)
    return int(int(counted) * (scale / 10.0 ** len(counted)))


def _decimal(amount: int, scale: int) -> str:
    whole, rest = divmod(amount, scale)
    if not rest:
        return str(whole)
    digits = len(str(scale)) - 1
    return f"{whole}.{rest:0{digits}d}".rstrip("0")


def _refused(text: str) -> ConfigError:
    return ConfigError("", f"time: invalid duration {_quote(text)}")


def _quote(text: str) -> str:
    # Go's time package quotes bytes, not characters, so other characters than ASCII become hex.
    parts = []
    for byte in text.encode():
        char = chr(byte)
        if byte >= 0x80 or byte < 0x20:
            parts.append(f"\\x{byte:02x}")
        else:
            parts.append(f"\\{char}" if char in '"\\' else char)
    return f'"{"".join(parts)}"'
