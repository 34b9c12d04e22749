"""When pods come and how long they run: even steps, chance, or a trace.

In: what a scenario says, and a seeded source of chance. Out: times in rising order, and running times. How often chance is
asked depends on the scenario alone, never on what the scheduler did, so two configurations meet the same pods.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from kubesched.api import quantity
from kubesched.api.requests import is_scalar_name
from kubesched.errors import ConfigError
from kubesched.simulator.scenarios.scenario import FOREVER, Arrivals, Law, Seconds, seconds

_COLUMNS = ("time", "name", "namespace", "cpu", "memory", "duration", "priority")


def times(arrivals: Arrivals, chance: Random) -> Iterator[float]:
    """Yield when the pods come (or, with replicas, the groups of them); endless if nothing says when to stop."""
    if arrivals.at is not None:
        given = arrivals.at if isinstance(arrivals.at, tuple) else (arrivals.at,)
        yield from sorted(time for at in given for time in _burst(seconds(at), arrivals, chance))
        return
    end = seconds(arrivals.end) if arrivals.end is not None else None
    at, n = seconds(arrivals.start), 0
    while True:
        if arrivals.rate is not None:
            at += chance.expovariate(arrivals.rate)
        if (end is not None and at >= end) or (arrivals.count is not None and n >= arrivals.count):
            return
        n += 1
        yield from _burst(at, arrivals, chance)
        at += seconds(arrivals.every)


def _burst(at: float, arrivals: Arrivals, chance: Random) -> list[float]:
    """Return the times of those that come together, or nearly."""
    within = seconds(arrivals.within)
    return sorted(at + chance.uniform(0.0, within) for _ in range(arrivals.size)) if within else [at] * arrivals.size


def running_time(runs: Seconds | Law, chance: Random) -> Callable[[], float | None]:
    """Return a function that says how long the next pod runs; None is forever."""
    if isinstance(runs, Law):
        if runs.uniform is not None:
            low, high = seconds(runs.uniform[0]), seconds(runs.uniform[1])
            return lambda: chance.uniform(low, high)
        mean = seconds(runs.exponential)
        return lambda: chance.expovariate(1.0 / mean) if mean else 0.0
    if runs == FOREVER:
        return lambda: None
    fixed = seconds(runs)
    return lambda: fixed


@dataclass(frozen=True, slots=True)
class Traced:
    """One pod of a trace."""

    time: float
    name: str
    namespace: str
    duration: float | None
    """None is forever."""
    priority: int | None
    requests: dict[str, str] = field(default_factory=dict)


def read_trace(file: Path) -> list[Traced]:
    """Return the pods of a CSV file with a header, or of a file with a JSON object a line, in the order of their times."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(file), f"cannot be read: {error}") from error
    if file.suffix == ".csv":
        rows: Iterator[tuple[int, Any]] = enumerate(csv.DictReader(text.splitlines()), 2)
    else:
        rows = ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())
    found = []
    for number, row in rows:
        where = f"{file}, line {number}"
        try:
            found.append(_traced(row if isinstance(row, dict) else msgspec.json.decode(row, type=dict[str, Any]), number))
        except ConfigError as error:
            raise ConfigError(f"{where}: {error.path}", error.detail) from error
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise ConfigError(where, str(error)) from error
    return sorted(found, key=lambda traced: traced.time)


def _traced(row: dict[str, Any], number: int) -> Traced:
    given = {name: value for name, value in row.items() if value not in (None, "")}
    asked = {name: str(value) for name, value in given.items() if name in ("cpu", "memory") or is_scalar_name(name)}
    for name in given:
        if name not in _COLUMNS and name not in asked:
            raise ConfigError(str(name), f"unknown column: expected one of {', '.join(_COLUMNS)}, or a resource's name")
    for name, amount in asked.items():
        try:
            quantity.parse(amount)
        except quantity.QuantityError as error:
            raise ConfigError(name, f"{amount!r} is no quantity") from error
    if "time" not in given:
        raise ConfigError("time", "missing")
    priority = given.get("priority")
    try:
        importance = int(priority) if priority is not None else None
    except ValueError as error:
        raise ConfigError("priority", f"{priority!r} is no whole number") from error
    return Traced(
        _time(given["time"], "time"),
        str(given.get("name", f"line-{number}")),
        str(given.get("namespace", "")),
        _time(given["duration"], "duration") if "duration" in given else None,
        importance,
        asked,
    )


def _time(value: Any, column: str) -> float:
    """Return a time that may be written as a bare number, which a CSV file holds as text."""
    try:
        return seconds(float(value), column)
    except (TypeError, ValueError):
        return seconds(value, column)
