"""`format` in CEL: a template's clauses filled with values, as cel-go's strings library of version 2 does it.

Doubles look as in American English, and their scientific form is not the computer's: 1.5e3 is "1.500000×10⁰³".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from kubesched.kube.cel.times import Duration, Timestamp
from kubesched.kube.cel.values import CelType, EvaluationError, type_name
from kubesched.kube.values import go_quote

_CLAUSE = re.compile(r"%(?:(%)|(?:\.([0-9]*))?(.?))", re.DOTALL)
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_NOT_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_DEFAULT_PRECISION = 6

_TAKES = {
    "s": (
        (list, dict, bool, int, float, str, bytes, Timestamp, Duration, CelType, type(None)),
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
    ),
    "d": ((int,), "decimal clause can only be used on integers"),
    "f": ((float, str), "fixed-point clause can only be used on doubles"),
    "e": ((float, str), "scientific clause can only be used on doubles"),
    "b": ((int, bool), "only integers and bools can be formatted as binary"),
    "o": ((int,), "octal clause can only be used on integers"),
    "x": ((int, str, bytes), "only integers, byte buffers, and strings can be formatted as hex"),
}


def clauses(template: str) -> Iterator[tuple[re.Match[str], str, int | None]]:
    """Yield each clause with its letter ("%" for a percent sign) and its precision; fail on one that is none."""
    for found in _CLAUSE.finditer(template):
        letter, digits = found[1] or found[3], found[2]
        if digits == "":
            text = "error while parsing precision: error while converting precision to integer"
            raise EvaluationError(f'could not parse formatting clause: {text}: strconv.Atoi: parsing "": invalid syntax')
        if letter == "":
            raise EvaluationError("unexpected end of string")
        if letter not in "%X" and letter not in _TAKES:
            raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')
        yield found, letter, None if digits is None else int(digits[:18])


def complaint(letter: str, value: Any) -> str | None:
    """Return what is wrong with a value for a clause; None if nothing is, as far as its type tells."""
    kinds, text = _TAKES[letter.lower()]
    is_right = isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)
    return None if is_right else f"{text}, was given {type_name(value)}"


def fill(template: str, values: Sequence[Any]) -> str:
    """Return the template with its clauses filled in order."""
    parts, end, used = [], 0, 0
    for found, letter, precision in clauses(template):
        parts.append(template[end : found.start()])
        end = found.end()
        if letter == "%":
            parts.append("%")
            continue
        if used >= len(values):
            raise EvaluationError(f"index {used} out of range")
        wrong = complaint(letter, values[used])
        if wrong is not None:
            raise EvaluationError(f"error during formatting: {wrong}")
        parts.append(_filled(letter, precision, values[used]))
        used += 1
    return "".join([*parts, template[end:]])


def _filled(letter: str, precision: int | None, value: Any) -> str:
    if letter == "s":
        return as_text(value)
    if letter in "fe":
        return _double(letter, _DEFAULT_PRECISION if precision is None else precision, value)
    if letter in "xX" and isinstance(value, (str, bytes)):
        digits = (value.encode() if isinstance(value, str) else value).hex()
        return digits if letter == "x" else digits.upper()
    return format(int(value), letter)


def _double(letter: str, precision: int, value: Any) -> str:
    if isinstance(value, str):
        if value not in _NOT_NUMBERS:
            raise EvaluationError(f"error during formatting: {_TAKES[letter][1]}, was given string")
        value = _NOT_NUMBERS[value]
    if math.isnan(value) or math.isinf(value):
        text = "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
        return text if letter == "f" else text.rjust(precision)
    if letter == "f":
        return f"{value:,.{precision}f}"
    digits, exponent = f"{value or 0.0:.{_DEFAULT_PRECISION}e}".split("e")
    power = f"{int(exponent):03}" if int(exponent) < 0 else f"{int(exponent):02}"
    # The reference takes the precision for a width.
    return f"{digits}×10{power.translate(_RAISED)}".rjust(precision)


def as_text(value: Any) -> str:
    """Return how `%s` shows a value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if value is None:
        return "null"
    if isinstance(value, float):
        if math.isinf(value) or math.isnan(value):
            return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
        return _shortest(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{key}:{item}" for key, item in sorted((_literal(k), _literal(v)) for k, v in value.items())) + "}"
        )
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    return str(getattr(value, "name", value))


def _literal(value: Any) -> str:
    """Return how a value looks inside a list or a map."""
    if isinstance(value, (str, bytes)):
        return ("b" if isinstance(value, bytes) else "") + go_quote(as_text(value))
    if isinstance(value, float):
        return f"{value:.{_DEFAULT_PRECISION}f}" if math.isfinite(value) else f'"{as_text(value)}"'
    if not isinstance(value, _TAKES["s"][0]):
        raise EvaluationError(f"error during formatting: no formatting function for {type_name(value)}")
    if isinstance(value, (Timestamp, Duration)):
        return f'{"timestamp" if isinstance(value, Timestamp) else "duration"}("{value}")'
    return as_text(value)


def _shortest(value: float) -> str:
    """Return the shortest digits that mean this double, as Go's %g writes them: with an exponent from 1e6 on."""
    exact = Decimal(repr(value)).normalize()
    power = exact.adjusted() if exact else 0
    if -4 <= power < 6:
        return f"{exact:f}"
    sign, digits, _ = exact.as_tuple()
    first, *rest = map(str, digits)
    fraction = "." + "".join(rest) if rest else ""
    return f"{'-' * sign}{first}{fraction}e{'-' if power < 0 else '+'}{abs(power):02}"
