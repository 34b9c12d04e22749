"""Events for people: what happened to a pod, told to the API server without ever making the scheduler wait.

In: `event(...)` from anywhere in the event loop. Out: Events in events.k8s.io/v1, or in core/v1 for servers that know
only that. A thousand may wait; more are dropped. The same thing happening again to the same version of an object
becomes a series: the second time is written, later ones are counted and written every half hour, or once it has been
quiet for six minutes. A write that gets no answer is tried again; one that is refused is dropped: events are not
worth more.
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
    """Records under the name of one profile, or of one other part of the program."""

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
    """The queue, the series and the workers behind all recorders."""

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
        self._waiting: asyncio.Queue[_Story] = asyncio.Queue(MAX_WAITING)
        self._stories: dict[Any, _Story] = {}
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
        """Tell a new story, or count on an old one."""
        now = self._clock.now()
        key = happening.key()
        story = self._stories.get(key)
        if story is None:
            story = _Story(happening, self._name(happening.regarding.name, now), now)
        story.last_seen = now
        story.count += 1
        if story.count > 2:
            return  # `_tidy_up` writes it down
        try:
            self._waiting.put_nowait(story)
        except asyncio.QueueFull:
            self.n_dropped += 1
            if self.n_dropped % MAX_WAITING == 1:
                log.warning("%d events dropped so far: they come faster than they can be written", self.n_dropped)
            return
        self._stories[key] = story

    async def _work(self) -> None:
        while True:
            story = await self._waiting.get()
            try:
                async with story.writing:  # the first and the second time may meet in two workers
                    await self._write(story)
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
        for key, story in list(self._stories.items()):
            is_over = now - story.last_seen >= QUIET_SECONDS
            if story.count > story.written and (is_over or now - story.written_at >= REFRESH_SECONDS):
                async with story.writing:
                    await self._write(story)
            if is_over:
                self._stories.pop(key, None)

    async def _write(self, story: _Story) -> None:
        """Write a story as it stands now, trying again while there is no answer."""
        for _ in range(MAX_TRIES):
            count, last_seen = story.count, story.last_seen
            try:
                if story.written and count > story.written:
                    await self._patch(story, count, last_seen)
                elif not story.written:
                    await self._create(story, count, last_seen)
                story.written, story.written_at = count, self._clock.now()
                return
            except ApiError as error:
                log.warning("event %s for %s was refused: %s", story.name, story.happening.subject, error)
                story.written = max(story.written, 1)  # not tried again; a series may still be patched in
                return
            except SchedulerError as error:
                log.debug("event %s for %s: %s; trying again", story.name, story.happening.subject, error)
                await self._clock.sleep(RETRY_SECONDS * (1.0 + RETRY_JITTER * self._chance.random()))
        log.warning("event %s for %s given up after %d tries", story.name, story.happening.subject, MAX_TRIES)

    async def _create(self, story: _Story, count: int, last_seen: float) -> None:
        try:
            await self._connection.request("POST", story.collection, story.encoded(count, last_seen))
        except AlreadyExists:
            log.debug("event %s is there already: an earlier answer was lost", story.name)
        except NotFound as error:
            # A namespace that is gone is named in the refusal; a version that is not served has nobody to say more.
            if error.details or story.api_version == CORE_V1:
                raise
            if self.api_version != CORE_V1:
                self.api_version = CORE_V1
                log.info("this API server does not serve events in %s; writing them in %s", EVENTS_V1, CORE_V1)
            story.use_version(CORE_V1)
            await self._create(story, count, last_seen)

    async def _patch(self, story: _Story, count: int, last_seen: float) -> None:
        body = codec.encode(story.repetition(count, last_seen))
        try:
            await self._connection.request("PATCH", f"{story.collection}/{story.name}", body, STRATEGIC_MERGE_PATCH)
        except NotFound:
            await self._create(story, count, last_seen)

    def _name(self, subject: str, now: float) -> str:
        self._last_nanos = max(self._last_nanos + 1, int(now * 1e9))
        name = f"{subject}.{self._last_nanos:x}"
        return str(uuid.uuid4()) if naming.subdomain_complaints(name) else name


@dataclass(frozen=True, slots=True)
class _Source:
    controller: str
    instance: str
    api_version: str


@dataclass(frozen=True, slots=True)
class _Happening:
    """What happened, to whom, by whose report."""

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
        """Return what makes two happenings the same. The note is part of it only in core/v1, which has no series."""
        note = self.note if self.source.api_version == CORE_V1 else ""
        return (self.kind, self.action, self.reason, self.source, self.regarding, note)


@dataclass(slots=True)
class _Story:
    """A happening, and how often it happened. `written` is the count that the server knows."""

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
        """Return the whole event as the server takes it."""
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
        """Return the part that changes when it happens again."""
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
