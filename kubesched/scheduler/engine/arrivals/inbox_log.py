"""The inbox written to a file, line by line, as it is emptied.

In: arrivals. Out: JSON lines: what changed in the API, what became of bindings, since when we lead, and when. That is all
that ever reaches the engine from outside, so `simulation/replay.py` can make it decide again, in the same order, at the
same times. What is taken out together has one time, so that nothing is decided in between when it is played.
"""

from __future__ import annotations

from typing import IO, Any

import msgspec

from kubesched.kube.api import codec
from kubesched.scheduler.engine.arrivals.inbox import Arrival, BindFailed, Bound, Changed, Inbox
from kubesched.scheduler.framework import Clock

_encode = msgspec.json.Encoder().encode


class InboxLog:
    """Writes down what is taken out of an inbox."""

    def __init__(self, inbox: Inbox, clock: Clock, file: IO[bytes], *, seed: int = 0, release: str = "") -> None:
        self._inbox = inbox
        self._clock = clock
        self._file = file
        self._emptied, self._at = -1, clock.now()
        self._write({"at": self._at, "seed": seed, **({"release": release} if release else {})})
        inbox.on_arrival = self.note

    def note(self, arrival: Arrival) -> None:
        """Write down one arrival; the engine's own calls follow from the others and are left out."""
        if self._inbox.n_emptied != self._emptied:
            self._emptied, self._at = self._inbox.n_emptied, self._clock.now()
        line: dict[str, Any] = {"at": self._at}
        if isinstance(arrival, Changed):
            line["kind"] = arrival.kind
            if arrival.new is not None:
                line["object"] = codec.to_dict(arrival.new)
            else:
                meta = arrival.old.metadata if arrival.old is not None else None
                line["gone"] = {"name": meta.name, "namespace": meta.namespace} if meta is not None else {}
        elif isinstance(arrival, Bound):
            line |= {"bound": arrival.binding.booked.uid, "node": arrival.binding.node_name}
        elif isinstance(arrival, BindFailed):
            line |= {"unbound": arrival.binding.booked.uid, "why": arrival.status.message}
        elif arrival.begins_lead:
            line["leading"] = True
        else:
            return
        self._write(line)

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(_encode(line) + b"\n")
