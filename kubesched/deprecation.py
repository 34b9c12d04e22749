"""Public functions that are to go: they work as before, warn when they are called, and name what replaces them.

GOVERNANCE.md has the rule. Commands and options say it through click: `deprecated=replacement("--new-name", gone_in="1.3")`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def replacement(use: str, *, gone_in: str) -> str:
    """Return what a warning says of a replacement, and of the release that no longer has the old thing."""
    return f"Use {use}. It will be gone in {gone_in}."


def deprecated(use: str, *, gone_in: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function or method warn at each call; for a class, decorate its `__init__`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__qualname__.removesuffix(".__init__")
        text = f"{name} is deprecated. {replacement(use, gone_in=gone_in)}"

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        return call

    return decorate
