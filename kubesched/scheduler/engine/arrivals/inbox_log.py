"""The inbox written to a file as JSON lines, while the loop empties it.

The lines are changes of API objects, results of bindings, and the start of leading, each with its time. Nothing else reaches
the engine from outside, so `simulation/replay.py` can repeat its decisions in the same order and at the same times. Arrivals
that are taken out together have the same time, so that a replay decides nothing between them.
"""

from __future__ import annotations

from typing import IO, Any

import msgspec

from kubesched.kube.api import codec
from kubesched.scheduler.engine.arrivals.inbox import Arrival, BindFailed, Bound, Changed, Inbox, LoopCall
from kubesched.scheduler.framework import Clock

_encode = msgspec.json.Encoder().encode


INBOX_LOG_FORMAT = 1
"""Of an inbox log and of a snapshot, in the first line. A release that changes what a line means raises it, and reads the older
ones too. Files from before 1.0 do not say it and are of the first."""


class InboxLog:
    """Writes what is taken out of an inbox."""

    def __init__(self, inbox: Inbox, clock: Clock, file: IO[bytes], *, seed: int = 0, release: str = "") -> None:
        self._inbox = inbox
        self._clock = clock
        self._file = file
        self._emptied, self._at = -1, clock.now()
        self._write({"at": self._at, "format": INBOX_LOG_FORMAT, "seed": seed, **({"release": release} if release else {})})
        inbox.on_arrival = self.note

    def note(self, arrival: Arrival) -> None:
        """Write one arrival. The engine's own calls follow from the others and are left out."""
        # The clock is read once for each `take`: a replay must see these arrivals at one moment, as the engine did.
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
        elif isinstance(arrival, LoopCall) and arrival.begins_lead:
            line["leading"] = True
        else:
            return
        self._write(line)

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(_encode(line) + b"\n")
