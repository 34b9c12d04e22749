"""Bugs that the program had, or could have, put back one at a time: does the simulation find them, and how soon?

In: a name. Out: a program with that bug, for as long as a `with` block lasts. `make chaos BUG=NAME` says how many seeds it
takes. Nothing of this is ever part of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest import mock

from chaos.disk import SimulatedLog
from chaos.faults import Fault
from kubesched.api import codec
from kubesched.app import Scheduler
from kubesched.client import reflector, writer
from kubesched.client.connection import Connection
from kubesched.client.fencing import FencedConnection
from kubesched.client.locks import LeaseLock, Record, _record
from kubesched.engine.binding import Binder
from kubesched.engine.inbox import BindFailed, Bound, Inbox
from kubesched.engine.intake import Intake
from kubesched.errors import AnswerLost

Bug = Callable[[], AbstractContextManager[Any]]
_DAY = 86_400.0


async def _carry_out(self: Binder, binding: Any) -> None:
    status = await self._bind_or_say_why(binding)
    self._inbox.post(Bound(binding) if status.is_success else BindFailed(binding, status))


async def _bind_blindly(self: writer.Writer, pod: Any, node_name: str) -> None:
    path = f"{writer._pod_path(pod.namespace, pod.name)}/binding"
    meta = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": {"kind": "Node", "name": node_name}}
    try:
        await self._connection.request("POST", path, codec.encode(body))
    except AnswerLost:
        return  # it will have arrived


def _fsync_forgotten(self: SimulatedLog) -> None:
    """What is written is written, is it not?"""


_swap, _apply_node, _append = Scheduler.swap, Intake._apply_node, SimulatedLog.append


async def _swap_with_new_inbox(self: Scheduler, configuration: Any) -> None:
    await _swap(self, configuration)
    assert self.engine is not None
    self.engine.inbox = Inbox()


def _apply_node_quietly(self: Intake, old: Any, new: Any) -> None:
    with mock.patch.object(self._queue, "wake"):
        _apply_node(self, old, new)


def _append_untidily(self: SimulatedLog, record: Any) -> None:
    with mock.patch("kubesched.apiserver.write_ahead_log.os.ftruncate"):
        _append(self, record)


def _read_as_mine(self: LeaseLock, found: dict[str, Any]) -> Record:
    """Takes every lease for one that has run out."""
    record = _record(found.get("spec") or {}, "leaseTransitions", "lease")
    return replace(record, lease_duration_seconds=0)


BUGS: dict[str, Bug] = {
    "pre-bind-exception": lambda: mock.patch.object(Binder, "carry_out", _carry_out),
    "garbage-200": lambda: mock.patch.object(writer, "says_bound", lambda body: True),
    "silent-watch": lambda: mock.patch.object(reflector, "LONGEST_SILENCE_SECONDS", _DAY),
    "no-fence": lambda: mock.patch.object(FencedConnection, "_timed", Connection._timed),
    "no-fsync": lambda: mock.patch.object(SimulatedLog, "sync", _fsync_forgotten),
    "half-record": lambda: mock.patch.object(SimulatedLog, "append", _append_untidily),
    "lost-answer": lambda: mock.patch.object(writer.Writer, "bind", _bind_blindly),
    "new-inbox": lambda: mock.patch.object(Scheduler, "swap", _swap_with_new_inbox),
    "missed-wake-up": lambda: mock.patch.object(Intake, "_apply_node", _apply_node_quietly),
    "gone-ignored": lambda: mock.patch.object(reflector, "is_version_unknown", lambda error: False),
    "any-lease": lambda: mock.patch.object(LeaseLock, "_read", _read_as_mine),
}


PROVOKED_BY: dict[str, tuple[Fault, ...]] = {
    "pre-bind-exception": (Fault("plugin", 3.0, 60.0, "", 0.5),),
    "garbage-200": (Fault("garbage", 3.0, 60.0, "", 0.3),),
    "silent-watch": (Fault("silence", 60.0),),
}
"""Faults that bring a bug to light at once."""
