"""Fault scripts: what goes wrong, for whom, from when to when. A script is a list of values, drawn from a seed.

In: a scene. Out: a list of `Fault`s, which a run plays, which a failure prints, and from which faults are taken away one
after the other to find the shortest that still fails.

    drop, lose        the connection breaks before the server hears a request, or before the client hears the answer
    twice             the server hears a write twice
    garbage           somebody between answers 200 with a page, or a line of a watch is no JSON
    refuse            409, 429, 500 or 503, with or without Retry-After
    cut, cut_watch    an answer, or a watch, ends in the middle
    slow_reader       a client reads what it is sent piece by piece, seconds apart
    repeat, delay     a part of a watch comes twice; bytes take up to seconds
    silence           connections stay open and carry nothing any more
    partition         nothing passes until it ends; `_in` and `_out`: only in one direction
    crash             the API server is killed between two steps; power_loss: in the middle of a write, with what was not synced
    compact           the API server forgets its past, and watches break: they are told 410; disk_full: it cannot write
    freeze, kill      a scheduler, or all, are stopped for a while; or killed between two steps, whatever they wait for
    clock_jump        a scheduler's wall clock is wrong from now on, or everybody's, each machine's by as much
    node_fails        a kubelet falls silent
    plugin            plugins raise, hang, refuse, and say what is not so
    extender          an extender does the same
    reload            a scheduler finds its configuration changed, now and then to one that cannot be used
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from chaos.scene import FAULTS_BEGIN, Scene

_EXCHANGES = ("drop", "lose", "twice", "garbage", "refuse", "cut", "cut_watch", "repeat", "delay", "slow_reader")
_HOLDING = ("partition", "partition_in", "partition_out", "silence")
_SERVER = ("crash", "power_loss", "compact", "disk_full")
_SCHEDULER = ("freeze", "kill", "clock_jump", "plugin", "extender", "reload")
KINDS = (*_EXCHANGES, *_HOLDING, *_SERVER, *_SCHEDULER, "node_fails")
LEASE_SECONDS = 16.0
"""Half of those who are frozen lose their lease meanwhile, where the scene is long enough."""
_STATUSES = (409, 429, 500, 503)
_LONGEST_SECONDS = {"disk_full": 15.0, "power_loss": 2.0}
_FAULT_EVERY_SECONDS = 5.0


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong."""

    kind: str
    at: float
    seconds: float = 0.0
    whom: str = ""
    """A process by the beginning of its name; everybody for ""."""
    chance: float = 1.0
    """How likely a request, or a pod, suffers; how long a delay is."""
    status: int = 0

    @property
    def end(self) -> float:
        return self.at + self.seconds

    def hits(self, process: str) -> bool:
        """Return whether a process suffers from it."""
        return process.startswith(self.whom)

    def concerns(self, method: str) -> bool:
        """Return whether a request may suffer from it: a conflict is an answer to a write."""
        return self.status != 409 or method != "GET"


def draw(scene: Scene) -> list[Fault]:
    """Return the script of a scene, in order of time."""
    chance = random.Random(f"{scene.seed}/faults")
    # A few kinds, each several times: with all kinds at once, one hides what another would have shown.
    kinds = chance.sample([kind for kind in KINDS if kind != "extender"], chance.randint(1, 3 if scene.seconds < 45.0 else 5))
    kinds += [kind for kind, is_there in (("extender", scene.extender), ("plugin", scene.has_liar)) if is_there]
    script = []
    for _ in range(chance.randint(1, round(scene.seconds / _FAULT_EVERY_SECONDS))):
        kind = chance.choice(kinds)
        at = round(chance.uniform(FAULTS_BEGIN, scene.seconds - 3.0), 3)
        longest = min(_LONGEST_SECONDS.get(kind, 60.0), scene.seconds - at)
        one = f"scheduler-{chance.randrange(scene.n_schedulers)}."
        whom = one if chance.random() < (0.75 if kind in _SCHEDULER else 0.6) else ""
        status = chance.choice(_STATUSES) if kind == "refuse" else 0
        shortest = min(LEASE_SECONDS, longest) if kind == "freeze" and chance.random() < 0.5 else 0.5
        seconds = round(chance.uniform(shortest, longest), 3)
        script.append(Fault(kind, at, seconds, whom, round(chance.uniform(0.05, 0.6), 3), status))
    return sorted(script, key=lambda fault: fault.at)
