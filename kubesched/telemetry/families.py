"""What a family of metrics is, and which of them exist: name, kind, labels, buckets, stability, help.

In: rows (`scheduler_families`, `process_families`) and the settings of the program. Out: the families that are shown.
Names, labels, buckets, stability and help are kube-scheduler's, so that dashboards and alerts go on working. A family with
a gate exists while that gate is on, one of the old write-ups while the legacy switch is on, and one that came or went with a
release in the releases that its row names. A row in `changed_in_1_37` says what is otherwise since 1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

Version = tuple[int, int]
Bounds = tuple[float, ...]

RELEASE: Version = (1, 37)


class Kind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: data, no behaviour."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    stability: str = "ALPHA"
    bounds: Bounds = ()
    gate: str = ""
    is_legacy: bool = False
    deprecated: Version | None = None  # hidden from the release after this one on
    since: Version | None = None  # the first release that has it so; None for all that are emulated
    until: Version | None = None  # the last one

    @property
    def shown_help(self) -> str:
        """Return the help as it is exposed: with the stability, and with the release of its deprecation."""
        old = f" (Deprecated since {self.deprecated[0]}.{self.deprecated[1]}.0)" if self.deprecated else ""
        return f"[{self.stability}]{old} {self.help}"


def exponential(start: float, factor: float, count: int) -> Bounds:
    """Return so many bucket bounds, each the one before times the factor."""
    bounds = [start]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)  # multiplied step by step: the reference's bounds to the last bit
    return tuple(bounds)


def exists(family: Family, release: Version) -> bool:
    """Return whether a release has a family in the words of this row."""
    return (family.since is None or release >= family.since) and (family.until is None or release <= family.until)


def hidden(family: Family, shown_for: str, release: Version = RELEASE) -> bool:
    """Return whether a deprecated family is left out; `shown_for` is --show-hidden-metrics-for-version."""
    # As in Kubernetes: a metric is still shown in the release that deprecates it, and hidden from the next one on. The flag
    # shows it for one release longer.
    if family.deprecated is None or family.deprecated >= release:
        return False
    return shown_for != f"{family.deprecated[0]}.{family.deprecated[1]}"


def selected(
    families: Iterable[Family],
    is_enabled: Callable[[str], bool],
    *,
    is_legacy: bool = False,
    disabled: Iterable[str] = (),
    shown_for: str = "",
    release: Version = RELEASE,
) -> tuple[Family, ...]:
    """Return the families that exist under these settings."""
    # --disabled-metrics wins over everything: a metric that is switched off there is not shown for an older release either.
    left_out = frozenset(disabled)
    return tuple(
        family
        for family in families
        if family.name not in left_out
        and exists(family, release)
        and (not family.gate or is_enabled(family.gate))
        and (is_legacy or not family.is_legacy)
        and not hidden(family, shown_for, release)
    )


STABLE, BETA, ALPHA = "STABLE", "BETA", "ALPHA"


def counter(name: str, labels: str, text: str, stability: str = ALPHA, **rest: Any) -> Family:
    """Return a counter; its labels are separated by spaces."""
    return Family(name, Kind.COUNTER, tuple(labels.split()), text, stability, **rest)


def gauge(name: str, labels: str, text: str, stability: str = ALPHA, **rest: Any) -> Family:
    """Return a gauge."""
    return Family(name, Kind.GAUGE, tuple(labels.split()), text, stability, **rest)


def histogram(name: str, labels: str, bounds: Bounds, text: str, stability: str = ALPHA, **rest: Any) -> Family:
    """Return a histogram with these bounds."""
    return Family(name, Kind.HISTOGRAM, tuple(labels.split()), text, stability, bounds, **rest)


def changed_in_1_37(family: Family, **changes: Any) -> tuple[Family, Family]:
    """Return a family as it is up to 1.36, and as it is from 1.37 on."""
    return replace(family, until=(1, 36)), replace(family, since=(1, 37), **changes)
