"""Semantic versions in CEL: `semver("1.2.3")`, compared by the rules of semver.org; build metadata does not count."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import total_ordering
from typing import Any, ClassVar

from kubesched.kube.cel.values import UINT_MAX, EvaluationError, no_overload

_NUMBER = r"(0|[1-9][0-9]*)"
_PART = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SYNTAX = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_PART}(?:\.{_PART})*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?", re.ASCII
)


@total_ordering
class Semver:
    """A version."""

    cel_name: ClassVar[str] = "kubernetes.Semver"
    __slots__ = ("_key", "major", "minor", "patch")

    def __init__(self, major: int, minor: int, patch: int, pre: tuple[str, ...] = ()) -> None:
        self.major, self.minor, self.patch = major, minor, patch
        # A version without a pre-release stands after all that have one; numbers stand before words.
        parts = tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in pre)
        self._key = major, minor, patch, not pre, parts

    @staticmethod
    def parse(text: str, normalize: bool = False) -> Semver:
        """Read a version; `normalize` also takes "v1", "1.2" and "01.2.3"."""
        found = _SYNTAX.fullmatch(_normalized(text) if normalize else text)
        if found is None:
            raise EvaluationError(f'"{text}" is not a semantic version')
        pre = tuple(found[4].split(".")) if found[4] else ()
        for part in (*found.groups()[:3], *pre):
            if part.isdecimal() and (len(part) > 20 or int(part) > UINT_MAX):
                raise EvaluationError(f'strconv.ParseUint: parsing "{part}": value out of range')
        return Semver(int(found[1]), int(found[2]), int(found[3]), pre)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __lt__(self, other: Semver) -> bool:
        return self._key < other._key


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    if len(parts) < 3:
        if any(mark in parts[-1] for mark in "+-"):
            raise EvaluationError(f'"{text}" is not a semantic version: a short one has no pre-release or build')
        parts += ["0"] * (3 - len(parts))
    return ".".join(re.sub(r"^0+(?=[0-9])", "", part) for part in parts)


def _make(text: Any, normalize: Any = False) -> Semver:
    if not isinstance(text, str) or not isinstance(normalize, bool):
        raise no_overload("semver", text, normalize)
    return Semver.parse(text, normalize)


def _is_semver(text: Any, normalize: Any = False) -> bool:
    if not isinstance(text, str) or not isinstance(normalize, bool):
        raise no_overload("isSemver", text, normalize)
    try:
        Semver.parse(text, normalize)
    except EvaluationError:
        return False
    return True


def _versus(name: str, compare: Callable[[Semver, Semver], Any]) -> Callable[[Semver, Any], Any]:
    def answer(version: Semver, other: Any) -> Any:
        if not isinstance(other, Semver):
            raise no_overload(name, version, other)
        return compare(version, other)

    return answer


GLOBALS: dict[str, Callable[..., Any]] = {"semver": _make, "isSemver": _is_semver}

MEMBERS: dict[str, Callable[..., Any]] = {
    "major": lambda version: version.major,
    "minor": lambda version: version.minor,
    "patch": lambda version: version.patch,
    "isGreaterThan": _versus("isGreaterThan", lambda version, other: version > other),
    "isLessThan": _versus("isLessThan", lambda version, other: version < other),
    "compareTo": _versus("compareTo", lambda version, other: (version > other) - (version < other)),
}
"""What can be asked of a version."""
