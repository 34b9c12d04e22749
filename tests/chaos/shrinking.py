"""Shrinking: from a script of faults that fails to one that fails with fewer.

In: a seed, its script, and how to tell that a run fails. Out: a part of the script from which nothing can be taken away.
Halves and quarters go first, single faults last, so that a long script takes few runs.
"""

from __future__ import annotations

from collections.abc import Callable

from chaos.faults import Fault
from chaos.run import run


def shrink(seed: str, script: list[Fault], fails: Callable[[list[Fault]], bool] | None = None) -> list[Fault]:
    """Return the least part of a script that still fails."""
    fails = fails or (lambda part: bool(run(seed, part).violations))
    size = max(len(script) // 2, 1)
    while script:
        for start in range(0, len(script), size):
            rest = script[:start] + script[start + size :]
            if fails(rest):
                script = rest
                break
        else:
            if size == 1:
                break
            size = max(size // 2, 1)
    return script
