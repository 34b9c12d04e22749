"""Scenes: how large, how long and of which kind the world of a seed is.

In: a seed. Out: a `Scene`. Most are short and small: a bug that needs two replicas and a fault shows itself in half a minute of
cluster life as well as in an hour, and many short histories see more than a few long ones for the same time. A few are
long, for what needs leases that run out one after the other.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

FAULTS_BEGIN = 2.0
_LENGTHS = {15.0: 6, 20.0: 8, 30.0: 4, 45.0: 1, 90.0: 0.5}


@dataclass(frozen=True)
class Scene:
    """What a world is made of."""

    seed: str
    n_schedulers: int = 2
    seconds: float = 90.0
    """When the last fault ends; users stop a little earlier."""
    extender: str = ""
    """What schedulers ask an extender: nothing, to look, or to look and to bind."""
    has_gangs: bool = False
    has_liar: bool = False
    """Whether a plugin may raise, and say what is not so, while nodes are filtered and scored."""
    largest_skew: float = 0.0
    """By how many seconds the wall clocks of machines may be wrong from the beginning."""


def scene_of(seed: str) -> Scene:
    """Return the scene of a seed."""
    chance = random.Random(f"{seed}/scene")
    return Scene(
        seed,
        n_schedulers=chance.choices((1, 2, 3), (4, 5, 1))[0],
        seconds=chance.choices(list(_LENGTHS), list(_LENGTHS.values()))[0],
        extender=chance.choices(("", "looks", "binds"), (8, 1, 1))[0],
        has_gangs=chance.random() < 0.25,
        has_liar=chance.random() < 0.15,
        largest_skew=chance.choice((0.0, 0.0, 2.0, 600.0)),
    )
