"""A reflector keeps a copy of one resource, and tells a sink of every change to it, in order, for as long as the program runs.

It calls `deliver(kind, old, new)` for each change (no old: added, no new: gone), and `synced(kind)` once, when everything that
was there at the start has been delivered.

    list -> watch -> (the stream ends, or is silent for 200 s) watch again from the last version -> (410 Gone) list again

List: a stream of initial events if the server knows that, and pages otherwise. Both are consistent reads, so a list is never
older than what was already seen.

Relist: the server no longer has the changes since our version. Example: at version 100 we have web-1 and web-2. The new list,
at version 500, has web-2 (unchanged) and web-3. First web-1 is delivered as deleted, with the last object that we had of it;
then web-3 is delivered as added. web-2 has the same resourceVersion, so nothing is delivered. An object with another uid under
a known name is another object: a deletion and an addition.

Watch recovery: after a lost connection we first ask how far the server is. It may have been restored from a backup, and be at
version 80 after our 100. A watch from 100 would then be silent for long, while we believe in objects that are gone. So we list.

After a failure, in `run`:

    the stream ended after some time, or brought events   watch again at once, from the last version
    it ended at once, or nothing could be sent            watch again after a backoff of 0.8 s to 30 s
    410 Gone, or our version is unknown                   list again, after the backoff
    400, 403 or 422 for a streaming list                  list in pages from now on
    404                                                   look which version the server has, then list

A resource that the server does not serve, or does not let us list, is left out with a warning that says what will not work.
The program starts without it, unless nothing can be decided without it. It is tried again at least once a minute, in the
version that the server has by then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Protocol
from urllib.parse import quote

from kubesched.errors import ApiError, BadRequest, Forbidden, Gone, Invalid, NotFound, SchedulerError, Unreachable
from kubesched.kube.api import ObjectMeta, Pod
from kubesched.kube.client.api_errors import advice, is_version_unknown, refusal_of
from kubesched.kube.client.connection import Connection
from kubesched.kube.client.informers.decoding import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, Decoder, Event, garbage_kept
from kubesched.kube.client.informers.deduplication import Deduplicator
from kubesched.kube.client.informers.discovery import discover
from kubesched.kube.client.informers.resources import Watched
from kubesched.kube.client.timing import SYSTEM_CHANCE, Backoff, Chance, LogThrottle
from kubesched.kube.client.transport import Stream

PAGE_SIZE = 2000  # about 8 MB and 30 ms of decoding, so nothing else has to wait long
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
SHORTEST_WATCH_SECONDS = 300.0  # a watch asks for a life of one to two times this
LONGEST_INITIAL_SILENCE_SECONDS = 10.0
LONGEST_SILENCE_SECONDS = 200.0
"""We ask for bookmarks, and API servers have one every minute. kube-apiserver keeps those back that say nothing newer than
where a watch began: if its kind never changes the first comes after two minutes or three. TCP notices a host that is gone."""
VERY_SHORT_WATCH_SECONDS = 1.0
PATIENCE_WITH_REFUSAL_SECONDS = 2.0  # a server that has just started may not have loaded its roles
LARGEST_LINE_BYTES = 64 << 20  # API servers store objects of 1.5 MiB, unless etcd was told otherwise

log = logging.getLogger(__name__)


class Sink(Protocol):
    """Receives the changes."""

    def deliver(self, kind: str, old: Any | None, new: Any | None) -> None:
        """Take one change. Calls come in order and never overlap."""

    def synced(self, kind: str) -> None:
        """Note that the whole first list has been delivered."""


class Reflector:
    """Follows one resource."""

    def __init__(
        self,
        connection: Connection,
        watched: Watched,
        sink: Sink,
        *,
        api_version: str | None = "",
        streams: bool = True,
        page_size: int = PAGE_SIZE,
        chance: Chance = SYSTEM_CHANCE,
        warn: Callable[[str], None] = log.warning,
    ) -> None:
        """Follow a resource in one API version, by default the first that we know. None: the server does not serve it yet."""
        self.kind = watched.kind
        self.objects: dict[str, Any] = {}
        self.is_relisting = False
        """Whether the changes being delivered come from a relist, so that their real order is unknown."""
        self.is_left_out = False
        """Whether it is not served or may not be listed. The program does not wait for its first list then."""
        self._synced, self._settled = asyncio.Event(), asyncio.Event()
        self._refused_at: float | None = None
        self._warn = warn
        self._connection, self._watched, self._sink = connection, watched, sink
        self._clock, self._chance = connection.clock, chance
        self._log_throttle = LogThrottle(connection.clock)
        self.plural, self._is_served = watched.plural, api_version is not None
        self._use(api_version or watched.api_versions[0])
        self._selector = f"&fieldSelector={quote(watched.field_selector, safe='')}" if watched.field_selector else ""
        self._streams = streams
        self._page_size = page_size
        self._deduplicator = Deduplicator() if watched.type is Pod else None
        self._version = ""  # of the last thing we saw; empty: list first
        self._has_progressed = False
        self._was_cut_off = False

    @property
    def trouble(self) -> str:
        """Return why we cannot follow, in one line; empty while we can."""
        return self._log_throttle.current

    @property
    def version(self) -> str:
        """Return the resourceVersion that was last seen; empty before the first list."""
        return self._version

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Wait until the first list has been delivered, or the resource is left out."""
        await self._settled.wait()

    async def run(self) -> None:
        """Follow the resource until cancelled."""
        backoff = Backoff(self._clock, self._chance)
        while True:
            began = self._clock.monotonic()
            self._has_progressed = False
            try:
                if not self._is_served:
                    await self._choose_version()
                await self._follow()
                # A watch normally ends after its lifetime, without an error. One that ends at once, again and again, would
                # become a busy loop, so it counts as a failure.
                if self._has_progressed or self._clock.monotonic() - began > VERY_SHORT_WATCH_SECONDS:
                    continue
                self._complain(f"the server ended the watch of {self._watched.plural} at once")
            except (Invalid, BadRequest, Forbidden) as error:
                if self._streams and not self._version:
                    self._streams = False  # this server, or our role, knows lists only in one piece or in pages
                    continue
                self._refused(error)
                self._version = ""
            except NotFound as error:
                self._is_served, self._version = False, ""
                self._refused(error)
            except ApiError as error:
                if is_version_unknown(error):
                    log.info("%s: %s; listing again", self._watched.plural, error)
                    self._version = ""
                else:
                    self._complain(advice(error))
                    # In addition to the backoff below: the server has named the time, and more load would not help it.
                    await self._clock.sleep(error.retry_after or 0.0)
            except Unreachable as error:
                self._was_cut_off = True
                if self._has_progressed:
                    log.debug("%s: %s; going on from version %s", self._watched.plural, error, self._version)
                    continue
                self._complain(advice(error))
            except SchedulerError as error:  # credentials that cannot be loaded any more, a line without an end
                self._complain(advice(error))
            await backoff.pause()

    async def _choose_version(self) -> None:
        """Find out in which version the resource is served by now; raise NotFound if it is in none."""
        watched = self._watched
        found = (await discover(self._connection, watched.api_versions)).version_of(watched)
        if found is None:
            raise NotFound(404, "NotFound", f"the server does not serve them in {' or '.join(watched.api_versions)}")
        self._use(found)
        self._is_served = True

    def _use(self, api_version: str) -> None:
        self.api_version, self._path = api_version, self._watched.path(api_version)
        self._decoder = Decoder(self._watched, api_version)

    # List and watch

    async def _follow(self) -> None:
        """List if we must, then watch until the stream ends."""
        if self._version and self._was_cut_off:
            await self._check_history()
        if self._version:
            await self._watch(f"&resourceVersion={self._version}")
        elif self._streams:
            await self._watch("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", is_list=True)
        else:
            await self._list()
            await self._watch(f"&resourceVersion={self._version}")

    async def _check_history(self) -> None:
        """After a lost connection, make sure that the server's version is not older than ours (see the head of this file)."""
        body = await self._connection.request("GET", f"{self._path}?limit=1")
        found = self._decoder.page(body).metadata.resource_version
        self._was_cut_off = False
        # A list of one object is cheap, and its resourceVersion is that of the whole store, so it can be compared with ours.
        if _is_older(found, self._version):
            raise Gone(410, "Expired", f"the server went back from version {self._version} to {found}")

    async def _list(self) -> None:
        """Read all pages, and deliver how they differ from our copy."""
        # A first list is delivered page by page, so that the scheduler works while the next page is on its way. A relist must
        # be complete first: only then is it known what is gone.
        is_first = not self.objects
        found: dict[str, Any] = {}
        token = ""
        while True:
            more = f"&continue={quote(token, safe='')}" if token else ""
            path = f"{self._path}?limit={self._page_size}{more}{self._selector}"
            try:
                body = await self._connection.request("GET", path)
            except Gone:
                if not token:
                    raise
                # The list took so long that the server has dropped its version: begin again, and keep what was delivered.
                is_first, found, token = False, {}, ""
                continue
            with garbage_kept():
                page = self._decoder.page(body)
                if is_first:
                    self._add_all(page.items)
                else:
                    found.update((obj.key, self._known(obj)) for obj in page.items)
            token = page.metadata.continue_
            if not token:
                break
        if not is_first:
            with garbage_kept():
                self._replace(found)
        self._listed(page.metadata.resource_version)

    async def _watch(self, query: str, *, is_list: bool = False) -> None:
        """Take events until the stream ends. With `is_list` the stream begins with all objects as ADDED events.

        A first list is delivered while it arrives. A relist is gathered first, because deletions must be delivered before
        additions: the pod that frees a node's CPU before the pod that uses it.
        """
        # Random, as in client-go, so that the watches of all clients do not end, and begin again, at the same moment.
        lifetime = int(SHORTEST_WATCH_SECONDS * (1.0 + self._chance.random()))
        path = f"{self._path}?watch=true&allowWatchBookmarks=true&timeoutSeconds={lifetime}{query}{self._selector}"
        gathered: dict[str, Any] | None = {} if is_list and self.objects else None
        loop = asyncio.get_running_loop()
        async with self._connection.stream(path, longest_silence=LONGEST_SILENCE_SECONDS) as stream:
            if not is_list:
                self._recovered()
            try:
                async with asyncio.timeout(LONGEST_SILENCE_SECONDS) as silence:
                    async for data in self._whole_lines(stream, is_list):
                        if data.isspace():
                            continue
                        # Both an event and a bookmark prove that the stream lives. A proxy may keep a connection open whose
                        # server is long gone.
                        silence.reschedule(loop.time() + LONGEST_SILENCE_SECONDS)
                        with garbage_kept():
                            # One iterator for both: what follows the end of the initial events in the same data is taken as
                            # ordinary events.
                            events = iter(self._decoder.lines(data))
                            if is_list:
                                is_list = not self._take_initial(events, gathered)
                            self._take(events)
            except TimeoutError as error:
                problem = f"neither an event nor a bookmark for {LONGEST_SILENCE_SECONDS:g} s"
                raise Unreachable(f"{self._path}: the watch is dead: {problem}; watching anew") from error

    async def _whole_lines(self, stream: Stream, is_list: bool) -> AsyncIterator[bytes]:
        """Yield what has arrived up to its last line end. An unfinished line at the end of the stream is dropped."""
        rest: list[bytes] = []
        n_bytes = 0
        while True:
            if is_list and not self._version:
                chunk = await self._first_events(stream)
            else:
                chunk = await stream.read()
            if not chunk:
                return
            # Events are lines, but pieces end anywhere. Whole lines are decoded in one call, the rest waits for its end. `rest`
            # is a list, so that a long line is joined once and not at each piece.
            end = chunk.rfind(b"\n") + 1
            if not end:
                rest.append(chunk)
                n_bytes += len(chunk)
                if n_bytes > LARGEST_LINE_BYTES:
                    raise SchedulerError(f"{self._path}: a line of the watch is larger than {LARGEST_LINE_BYTES >> 20} MiB")
                continue
            yield b"".join((*rest, chunk[:end])) if rest else chunk[:end] if end < len(chunk) else chunk
            rest = [chunk[end:]] if end < len(chunk) else []
            n_bytes = len(chunk) - end

    async def _first_events(self, stream: Stream) -> bytes:
        """Read a part of a streaming list. If the server is silent for 10 s it does not support them: list in pages from now
        on."""
        try:
            async with asyncio.timeout(LONGEST_INITIAL_SILENCE_SECONDS):
                return await stream.read()
        except TimeoutError as error:
            self._streams = False
            raise Unreachable(f"{self._path}: the streaming list does not end; listing in pages instead") from error

    # Events and objects

    def _take_initial(self, events: Iterable[Event], gathered: dict[str, Any] | None) -> bool:
        """Take events of a streaming list; return whether its end was among them. Events after the end stay in `events`."""
        for event in events:
            verb, obj = event.verb, event.object
            if verb == BOOKMARK:
                if obj.metadata.annotations.get(INITIAL_EVENTS_END) == "true":
                    if gathered is not None:
                        self._replace(gathered)
                    self._listed(obj.metadata.resource_version)
                    return True
            elif verb == ERROR:
                raise refusal_of(obj, f"list of {self._watched.plural}")
            elif gathered is None:
                self._apply(None if verb == DELETED else obj, obj.key)
            elif verb == DELETED:
                gathered.pop(obj.key, None)
            else:
                gathered[obj.key] = self._known(obj)
        return False

    def _take(self, events: Iterable[Event]) -> None:
        """Take events of a watch."""
        for event in events:
            verb, obj = event.verb, event.object
            if verb == ERROR:
                raise refusal_of(obj, f"watch of {self._watched.plural}")
            version = obj.metadata.resource_version
            is_repeated = _is_older(version, self._version) or version == self._version
            if is_repeated and not self._has_progressed and version != self._version:
                # The first event of the watch is older than its start: the server was restored from a backup.
                raise Gone(410, "Expired", f"the server went back from version {self._version} to {version}")
            if not is_repeated:
                self._version = version
            if verb == DELETED:
                known = self.objects.get(obj.key)
                # A late deletion of an older object of this name must not delete its successor.
                if known is not None and known.metadata.uid == obj.metadata.uid:
                    self._apply(None, obj.key)
            elif verb in (ADDED, MODIFIED) and not is_repeated:  # a proxy may send things twice
                self._apply(obj, obj.key)
            self._has_progressed = True

    def _apply(self, new: Any | None, key: str) -> None:
        """Replace what we have under a name, and deliver the change."""
        objects, deliver = self.objects, self._sink.deliver
        old = objects.get(key)
        if new is None:
            if old is not None:
                del objects[key]
                deliver(self.kind, old, None)
            return
        if self._deduplicator is not None:
            self._deduplicator.settle(new, old)
        if old is None:
            objects[key] = new
            deliver(self.kind, None, new)
            return
        before: ObjectMeta = old.metadata
        after: ObjectMeta = new.metadata
        # Two changes and not one: the deletion frees the old pod's room, and the addition queues the new pod with counters of
        # its own.
        if before.uid != after.uid:
            del objects[key]
            deliver(self.kind, old, None)
            objects[key] = new
            deliver(self.kind, None, new)
        elif before.resource_version != after.resource_version or _versions_differ(old, new):
            objects[key] = new
            deliver(self.kind, old, new)

    def _add_all(self, items: list[Any]) -> None:
        """Take in the objects of a first list; nearly all of them are new."""
        objects, kind, deliver, deduplicator = self.objects, self.kind, self._sink.deliver, self._deduplicator
        for obj in items:
            key = obj.key
            if key in objects:
                self._apply(obj, key)
                continue
            if deduplicator is not None:
                deduplicator.settle(obj, None)
            objects[key] = obj
            deliver(kind, None, obj)

    def _known(self, obj: Any) -> Any:
        """Return the object that we already have if it is the same version. Otherwise a relist would hold a second copy of the
        whole cluster, and Python does not return that memory to the system."""
        known = self.objects.get(obj.key)
        if known is None:
            return obj
        before: ObjectMeta = known.metadata
        after: ObjectMeta = obj.metadata
        is_same = before.resource_version == after.resource_version and before.uid == after.uid
        return known if is_same and not _versions_differ(known, obj) else obj

    def _replace(self, found: dict[str, Any]) -> None:
        """Deliver how a relist differs from our copy: deletions first, then changes and additions in the list's order."""
        self.is_relisting = True
        try:
            # With the last object that we had: plugins and the store need its node and its requests, and the server does not
            # have it any more.
            for key in [key for key in self.objects if key not in found]:
                self._apply(None, key)
            for key, obj in found.items():
                if self.objects.get(key) is not obj:
                    self._apply(obj, key)
        finally:
            self.is_relisting = False

    def _listed(self, version: str) -> None:
        self._version = version
        self._has_progressed = True
        self._recovered()
        if not self._synced.is_set():
            self._synced.set()
            self._settled.set()
            log.debug("%s: %d objects listed at version %s", self._watched.plural, len(self.objects), version)
            self._sink.synced(self.kind)

    def _refused(self, error: ApiError) -> None:
        """Log that the resource is not served or forbidden. Leave it out if it was never listed and this has lasted two
        seconds."""
        # Once listed, a refusal is not final: somebody changed a role. Our copy stays, and grows old, until it is listed again.
        if self._watched.is_indispensable or self.is_synced:
            self._complain(advice(error))
            return
        now = self._clock.monotonic()
        if self._refused_at is None:
            self._refused_at = now
        is_certain = not self._is_served or now - self._refused_at >= PATIENCE_WITH_REFUSAL_SECONDS
        if is_certain and not self.is_left_out:
            self.is_left_out = True
            self._settled.set()
            text = self._watched.left_out(advice(error) if isinstance(error, Forbidden) else str(error))
            self._log_throttle.is_worth_saying(text)
            self._warn(text)

    # Log lines

    def _complain(self, text: str) -> None:
        if self._log_throttle.is_worth_saying(text):
            log.warning("cannot follow %s: %s; trying again", self._watched.plural, text)

    def _recovered(self) -> None:
        self.is_left_out, self._refused_at = False, None
        if self._log_throttle.settle():
            log.info("following %s again", self._watched.plural)


def _versions_differ(old: Any, new: Any) -> bool:
    """Return whether an object came in another API version than before: it is written back in the one that it came in."""
    return getattr(old, "api_version", "") != getattr(new, "api_version", "")


def _is_older(version: str, last: str) -> bool:
    """Return whether a version comes before another, as far as versions can be compared."""
    return version.isdecimal() and last.isdecimal() and int(version) < int(last)
