"""Events: write what happened to a pod as Event objects, without ever making the scheduler wait.

They are written in events.k8s.io/v1, or in core/v1 if the server knows only that. Up to 1000 events wait for a worker; more
are dropped and counted. The same event for the same version of an object becomes a series:

    12:00  FailedScheduling for web-1     created
    12:01  the same                       patched: series.count 2
    12:02  to 12:40, forty times          only counted; patched once after half an hour
    12:46  quiet for six minutes          patched: series.count 42, and the series is forgotten

A write without an answer is repeated up to twelve times. A refused one is dropped, because events are not worth more.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from kubesched.errors import AlreadyExists, ApiError, NotFound, SchedulerError
from kubesched.kube.api import ObjectReference, codec, format_micro_time, format_time
from kubesched.kube.client.connection import STRATEGIC_MERGE_PATCH, Connection
from kubesched.kube.client.informers.resources import collection_path
from kubesched.kube.client.timing import SYSTEM_CHANCE, Chance
from kubesched.kube.client.writes.writer import Named
from kubesched.kube.values import naming

EVENTS_V1 = "events.k8s.io/v1"
CORE_V1 = "v1"
MAX_WAITING = 1000
N_WORKERS = 8
MAX_TRIES = 12
RETRY_SECONDS = 10.0
RETRY_JITTER = 0.25
QUIET_SECONDS = 6 * 60.0  # after which a series ends, and a single event is forgotten
REFRESH_SECONDS = 30 * 60.0
LONGEST_NOTE_BYTES = 1024
LONGEST_INSTANCE = 128
_CUT = " ..."

log = logging.getLogger(__name__)


class Recorder:
    """Records events with one profile, or another part of the program, as the reporting controller."""

    def __init__(self, broadcaster: Broadcaster, controller: str, api_version: str = "") -> None:
        self._broadcaster = broadcaster
        self._controller = controller
        self._instance = f"{controller}-{broadcaster.host}"[:LONGEST_INSTANCE]
        self._api_version = api_version

    def event(self, regarding: Named | ObjectReference, kind: str, reason: str, action: str, note: str) -> None:
        """Record that something happened to a pod, or to what a reference names. Never blocks and never fails."""
        about = regarding if isinstance(regarding, ObjectReference) else _reference(regarding)
        source = _Source(self._controller, self._instance, self._api_version or self._broadcaster.api_version)
        self._broadcaster.take(_Happening(kind, reason, action, truncated(note), about, source))


class Broadcaster:
    """The waiting events, the series and the workers of all recorders."""

    def __init__(
        self,
        connection: Connection,
        *,
        api_version: str = EVENTS_V1,
        host: str = "",
        chance: Chance = SYSTEM_CHANCE,
    ) -> None:
        self.host = host or socket.gethostname()
        self.n_dropped = 0
        self.api_version = api_version
        self._connection, self._clock, self._chance = connection, connection.clock, chance
        self._waiting: asyncio.Queue[_Series] = asyncio.Queue(MAX_WAITING)
        self._series: dict[Any, _Series] = {}
        self._last_nanos = 0

    def recorder(self, controller: str, api_version: str = "") -> Recorder:
        """Return a recorder that reports as `controller`, in the version that the server serves unless one is named."""
        return Recorder(self, controller, api_version)

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(N_WORKERS):
                tasks.create_task(self._work(), name=f"events-{number}")
            tasks.create_task(self._tidy_up(), name="events-series")

    async def drain(self) -> None:
        """Wait until everything recorded so far has been written or dropped."""
        await self._waiting.join()

    def take(self, happening: _Happening) -> None:
        """Begin a series, or count one more in it."""
        now = self._clock.now()
        key = happening.key()
        series = self._series.get(key)
        if series is None:
            series = _Series(happening, self._name(happening.regarding.name, now), now)
        series.last_seen = now
        series.count += 1
        # The first event is created and the second makes it a series. From the third on only the counter moves, so a pod that
        # fails every second costs one write in half an hour.
        if series.count > 2:
            return  # `_tidy_up` writes it
        try:
            self._waiting.put_nowait(series)
        except asyncio.QueueFull:
            self.n_dropped += 1
            if self.n_dropped % MAX_WAITING == 1:
                log.warning("%d events dropped so far: they come faster than they can be written", self.n_dropped)
            return
        # Only now: a series whose first event was dropped has no object that could be patched.
        self._series[key] = series

    async def _work(self) -> None:
        while True:
            series = await self._waiting.get()
            try:
                async with series.writing:  # two workers may have the first and the second event
                    await self._write(series)
            finally:
                self._waiting.task_done()

    async def _tidy_up(self) -> None:
        """Write series down now and then, and forget what has been quiet for long."""
        while True:
            await self._clock.sleep(QUIET_SECONDS)
            await self.tidy()

    async def tidy(self) -> None:
        """Do one round of it."""
        now = self._clock.now()
        for key, series in list(self._series.items()):
            is_over = now - series.last_seen >= QUIET_SECONDS
            if series.count > series.written and (is_over or now - series.written_at >= REFRESH_SECONDS):
                async with series.writing:
                    await self._write(series)
            if is_over:
                self._series.pop(key, None)

    async def _write(self, series: _Series) -> None:
        """Write a series as it stands now, trying again while there is no answer."""
        for _ in range(MAX_TRIES):
            # Read before the write and stored after it: events that are counted meanwhile are still to be written.
            count, last_seen = series.count, series.last_seen
            try:
                if series.written and count > series.written:
                    await self._patch(series, count, last_seen)
                elif not series.written:
                    await self._create(series, count, last_seen)
                series.written, series.written_at = count, self._clock.now()
                return
            except ApiError as error:
                log.warning("event %s for %s was refused: %s", series.name, series.happening.subject, error)
                series.written = max(series.written, 1)  # not tried again; a series may still be patched in
                return
            except SchedulerError as error:
                log.debug("event %s for %s: %s; trying again", series.name, series.happening.subject, error)
                await self._clock.sleep(RETRY_SECONDS * (1.0 + RETRY_JITTER * self._chance.random()))
        log.warning("event %s for %s given up after %d tries", series.name, series.happening.subject, MAX_TRIES)

    async def _create(self, series: _Series, count: int, last_seen: float) -> None:
        try:
            await self._connection.request("POST", series.collection, series.encoded(count, last_seen))
        except AlreadyExists:
            log.debug("event %s is there already: an earlier answer was lost", series.name)
        except NotFound as error:
            # A namespace that is gone is named in the refusal; a version that is not served has nobody to say more.
            if error.details or series.api_version == CORE_V1:
                raise
            if self.api_version != CORE_V1:
                self.api_version = CORE_V1
                log.info("this API server does not serve events in %s; writing them in %s", EVENTS_V1, CORE_V1)
            series.use_version(CORE_V1)
            await self._create(series, count, last_seen)

    async def _patch(self, series: _Series, count: int, last_seen: float) -> None:
        body = codec.encode(series.repetition(count, last_seen))
        try:
            await self._connection.request("PATCH", f"{series.collection}/{series.name}", body, STRATEGIC_MERGE_PATCH)
        except NotFound:
            await self._create(series, count, last_seen)

    def _name(self, subject: str, now: float) -> str:
        # Names are made of the time, as in client-go, and must be unique: two events in one clock tick get two numbers.
        self._last_nanos = max(self._last_nanos + 1, int(now * 1e9))
        name = f"{subject}.{self._last_nanos:x}"
        return name if naming.is_subdomain(name) else str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class _Source:
    controller: str
    instance: str
    api_version: str


@dataclass(frozen=True, slots=True)
class _Happening:
    """What happened to which object, and the reporting controller."""

    kind: str
    reason: str
    action: str
    note: str
    regarding: ObjectReference
    source: _Source

    @property
    def subject(self) -> str:
        return f"{self.regarding.kind.lower()} {self.regarding.namespace}/{self.regarding.name}"

    def key(self) -> tuple[object, ...]:
        """Return a key that is equal for events of one series. The note is part of it only in core/v1."""
        # As in client-go: in events.k8s.io another message about the same version of a pod stays in its series.
        note = self.note if self.source.api_version == CORE_V1 else ""
        return (self.kind, self.action, self.reason, self.source, self.regarding, note)


@dataclass(slots=True)
class _Series:
    """An event with its count. `written` is the count that the server has."""

    happening: _Happening
    name: str
    first_seen: float
    last_seen: float = 0.0
    count: int = 0
    written: int = 0
    written_at: float = 0.0
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def namespace(self) -> str:
        return self.happening.regarding.namespace or "default"

    @property
    def api_version(self) -> str:
        return self.happening.source.api_version

    @property
    def collection(self) -> str:
        return collection_path(self.api_version, "events", self.namespace)

    def use_version(self, api_version: str) -> None:
        """Write it in another API version from now on."""
        happening = self.happening
        self.happening = replace(happening, source=replace(happening.source, api_version=api_version))

    def encoded(self, count: int, last_seen: float) -> bytes:
        """Return the whole Event object as JSON."""
        happening = self.happening
        event: dict[str, Any] = {
            "apiVersion": self.api_version,
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "type": happening.kind,
            "reason": happening.reason,
            "reportingInstance": happening.source.instance,
        }
        if self.api_version == CORE_V1:
            event |= {
                "involvedObject": happening.regarding,
                "message": happening.note,
                "source": {"component": happening.source.controller},
                "firstTimestamp": format_time(self.first_seen),
                "reportingComponent": happening.source.controller,
            }
            event |= self.repetition(count, last_seen)
        else:
            event |= {
                "eventTime": format_micro_time(self.first_seen),
                "regarding": happening.regarding,
                "note": happening.note,
                "action": happening.action,
                "reportingController": happening.source.controller,
            }
            if count > 1:
                event |= self.repetition(count, last_seen)
        return codec.encode(event)

    def repetition(self, count: int, last_seen: float) -> dict[str, Any]:
        """Return the fields that change when it happens again."""
        if self.api_version == CORE_V1:
            return {"count": count, "lastTimestamp": format_time(last_seen)}
        return {"series": {"count": count, "lastObservedTime": format_micro_time(last_seen)}}


def truncated(note: str) -> str:
    """Return a note that the API accepts: at most 1024 bytes, with dots where it was cut."""
    raw = note.encode()
    if len(raw) <= LONGEST_NOTE_BYTES:
        return note
    return raw[: LONGEST_NOTE_BYTES - len(_CUT)].decode(errors="ignore") + _CUT


def _reference(pod: Any) -> ObjectReference:
    whole = getattr(pod, "pod", pod)  # what stands for a pod may carry it
    return ObjectReference(
        kind="Pod",
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        api_version="v1",
        resource_version=whole.metadata.resource_version,
    )
