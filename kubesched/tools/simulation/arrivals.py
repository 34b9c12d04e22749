"""When pods come and how long they run: even steps, or chance. Traces are read by `traces`.

In: what a scenario says, and a seeded source of chance. Out: times in rising order, and running times. How often chance is
asked depends on the scenario alone, never on what the scheduler did, so two configurations meet the same pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from kubesched.solver.node_groups import Seconds
from kubesched.tools.simulation.scenario import FOREVER, Arrivals, Law, seconds


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
