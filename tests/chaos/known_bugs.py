"""Bugs that the program had, or could have, put back one at a time: does the simulation find them, and how soon?

In: a name. Out: a program with that bug, for as long as a `with` block lasts. `make chaos BUG=NAME` says how many seeds it
takes. Nothing of this is ever part of the program.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, NamedTuple
from unittest import mock

from chaos.disk import SimulatedLog
from chaos.faults import Fault
from chaos.scene import Scene
from kubesched.embedded.controllers.shared.work_queue import Worker
from kubesched.errors import AnswerLost
from kubesched.kube.api import codec
from kubesched.kube.client.connection import Connection
from kubesched.kube.client.informers import reflector
from kubesched.kube.client.leases.fencing import FencedConnection
from kubesched.kube.client.leases.locks import LeaseLock, Record, _record
from kubesched.kube.client.writes import writer
from kubesched.kube.client.writes.writer import KeyMutex
from kubesched.scheduler.cluster.device_claims import DeviceClaims
from kubesched.scheduler.engine.acting.binding import Binder
from kubesched.scheduler.engine.arrivals.inbox import BindFailed, Bound, Inbox
from kubesched.scheduler.engine.arrivals.intake import Intake
from kubesched.scheduler.framework.plugin import PostFiltered
from kubesched.scheduler.framework.verdicts import SUCCESS
from kubesched.scheduler.plugins import gang_scheduling
from kubesched.scheduler.plugins.default_preemption.plugin import DefaultPreemption
from kubesched.server.app import Scheduler


def _always(scene: Scene, kinds: set[str]) -> bool:
    return True


class KnownBug(NamedTuple):
    """A bug in words, and what puts it back."""

    what: str
    put_back: Callable[[], AbstractContextManager[Any]]
    can_show: Callable[[Scene, set[str]], bool] = _always
    """Whether a scene with these kinds of faults comes near the code in question; the others are counted and not run."""


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


async def _let_bind_blindly(self: writer.Writer, pod: Any, node_name: str, act: Callable[[], Awaitable[None]]) -> None:
    await act()


def _look_once(self: Worker, key: str) -> None:
    """Tries nothing again that the disk refused."""
    reconcile = self._reconcile

    def give_up(key: str) -> float | None:
        with contextlib.suppress(OSError):
            return reconcile(key)
        return None

    with mock.patch.object(self, "_reconcile", give_up):
        _look_at(self, key)


@asynccontextmanager
async def _lock_nothing(self: KeyMutex, key: str) -> AsyncIterator[None]:
    yield


def _fsync_forgotten(self: SimulatedLog) -> None:
    """What is written is written, is it not?"""


_swap, _apply_node, _append, _look_at = Scheduler.swap, Intake._apply_node, SimulatedLog.append, Worker._look_at


async def _swap_with_new_inbox(self: Scheduler, configuration: Any) -> None:
    await _swap(self, configuration)
    assert self.engine is not None
    self.engine.inbox = Inbox()


def _apply_node_quietly(self: Intake, old: Any, new: Any) -> None:
    with mock.patch.object(self._queue, "wake"):
        _apply_node(self, old, new)


def _append_untidily(self: SimulatedLog, record: Any) -> None:
    with mock.patch("kubesched.embedded.storage.write_ahead_log.os.ftruncate"):
        _append(self, record)


def _evict_nobody(self: DefaultPreemption, pod: Any, nodes: Any, state: Any, diagnosis: Any, profile: Any) -> PostFiltered:
    return PostFiltered(SUCCESS)


def _read_as_mine(self: LeaseLock, found: dict[str, Any]) -> Record:
    """Takes every lease for one that has run out."""
    record = _record(found.get("spec") or {}, "leaseTransitions", "lease")
    return replace(record, lease_duration_seconds=0)


BUGS: dict[str, KnownBug] = {
    "pre-bind-exception": KnownBug(
        "an exception in the binding cycle is reported to nobody", lambda: mock.patch.object(Binder, "carry_out", _carry_out)
    ),
    "garbage-200": KnownBug(
        "any 200 counts as a binding",
        lambda: mock.patch.object(writer, "says_bound", lambda body: True),
        lambda scene, kinds: "garbage" in kinds,
    ),
    "silent-watch": KnownBug(
        "a watch may be silent for ever", lambda: mock.patch.object(reflector, "LONGEST_SILENCE_SECONDS", _DAY)
    ),
    "no-fence": KnownBug(
        "the lease is not looked at again before a write",
        lambda: mock.patch.object(FencedConnection, "require_lead", Connection.require_lead),
        lambda scene, kinds: scene.n_schedulers > 1 and "freeze" in kinds,
    ),
    "no-fsync": KnownBug(
        "the log is not synced before a write is acknowledged",
        lambda: mock.patch.object(SimulatedLog, "sync", _fsync_forgotten),
        lambda scene, kinds: "power_loss" in kinds,
    ),
    "half-record": KnownBug(
        "half a record stays in the log after the disk was full",
        lambda: mock.patch.object(SimulatedLog, "append", _append_untidily),
        lambda scene, kinds: "disk_full" in kinds,
    ),
    "lost-answer": KnownBug(
        "a lost answer to a binding counts as success", lambda: mock.patch.object(writer.Writer, "bind", _bind_blindly)
    ),
    "new-inbox": KnownBug(
        "a reload replaces the inbox",
        lambda: mock.patch.object(Scheduler, "swap", _swap_with_new_inbox),
        lambda scene, kinds: "reload" in kinds,
    ),
    "missed-wake-up": KnownBug(
        "a change to a node wakes no pod", lambda: mock.patch.object(Intake, "_apply_node", _apply_node_quietly)
    ),
    "gone-ignored": KnownBug(
        "410 does not lead to a new list", lambda: mock.patch.object(reflector, "is_version_unknown", lambda error: False)
    ),
    "never-evicts": KnownBug(
        "nobody is ever preempted", lambda: mock.patch.object(DefaultPreemption, "post_filter", _evict_nobody)
    ),
    "device-twice": KnownBug(
        "a device is not booked before its claim is written",
        lambda: mock.patch.object(DeviceClaims, "promise", lambda self, claim, pod_uid: None),
    ),
    "any-lease": KnownBug(
        "every lease counts as run out",
        lambda: mock.patch.object(LeaseLock, "_read", _read_as_mine),
        lambda scene, kinds: scene.n_schedulers > 1,
    ),
    "any-deletion": KnownBug(
        "any 200 counts as a deletion",
        lambda: mock.patch.object(writer, "says_done", lambda body: True),
        lambda scene, kinds: "garbage" in kinds,
    ),
    "extender-believed": KnownBug(
        "an extender binds whoever leads, and is believed when it says that it failed",
        lambda: mock.patch.object(writer.Writer, "let_bind", _let_bind_blindly),
        lambda scene, kinds: scene.extender == "binds",
    ),
    "lost-work": KnownBug(
        "what the disk refused a controller is never tried again",
        lambda: mock.patch.object(Worker, "_look_at", _look_once),
        lambda scene, kinds: "disk_full" in kinds,
    ),
    "half-gang": KnownBug(
        "a gang is content with one of its members",
        lambda: mock.patch.object(gang_scheduling, "_needed", lambda group: 1),
        lambda scene, kinds: scene.has_gangs,
    ),
    "late-status": KnownBug(
        "a status that is sent again may arrive after the binding", lambda: mock.patch.object(KeyMutex, "lock", _lock_nothing)
    ),
}


PROVOKED_BY: dict[str, tuple[Fault, ...]] = {
    "pre-bind-exception": (Fault("plugin", 3.0, 25.0, "", 0.5),),
    "garbage-200": (Fault("garbage", 3.0, 25.0, "", 0.3),),
    "silent-watch": (Fault("silence", 10.0),),
    "late-status": (Fault("delay", 3.0, 25.0, "", 0.6),),
    "extender-believed": (Fault("extender", 3.0, 25.0, "", 0.5),),
}
"""Faults that bring a bug to light at once."""
