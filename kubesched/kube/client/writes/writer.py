"""The write side: bindings, status patches, deletions, and whole objects created, replaced and removed.

When the answer to a write is lost, we do not know whether it was carried out. So the object is read before anything is sent
again:

    POST binding of web-1 to node a      the connection breaks before the answer
    GET web-1                            spec.nodeName is a: it was bound, done
                                         spec.nodeName is empty: send the binding again
                                         spec.nodeName is b: another scheduler was faster, Conflict

The read is repeated until it succeeds, however long the server is away. Taking a binding that was carried out for a failed one
would give its room to another pod. The end of the lease ends such a wait at the latest. An answer that is not the API's, such
as a proxy's error page with status 200, counts as lost. Only writes that may be done twice are repeated without reading.

Writes about one pod go out one after another: a repeated "unschedulable" status must not arrive after the binding. An object
that is replaced is read first, so that fields that we do not know survive.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import chain, repeat
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from kubesched.errors import (
    AlreadyExists,
    AnswerLost,
    Conflict,
    MalformedObject,
    NotFound,
    SchedulerError,
    ServerFault,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from kubesched.kube.api import INFO, Binding, DeleteOptions, ObjectMeta, ObjectReference, Pod, Preconditions, TopLevel, codec
from kubesched.kube.client.connection import STRATEGIC_MERGE_PATCH, Connection
from kubesched.kube.client.informers.resources import collection_path, object_path, version_of
from kubesched.kube.client.timing import SYSTEM_CHANCE, Chance

log = logging.getLogger(__name__)

BIND_ATTEMPTS = 3
UPDATE_ATTEMPTS = 3
PATCH_PAUSES_SECONDS = (0.010, 0.050, 0.250)  # four attempts
PATCH_JITTER = 0.1
LOOKUP_PAUSES_SECONDS = (0.1, 0.5, 2.0, 5.0, 10.0)  # and so on, every ten seconds

T = TypeVar("T", bound=TopLevel)
R = TypeVar("R")


class Named(Protocol):
    """A pod, or a view of one."""

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def uid(self) -> str: ...


class KeyMutex:
    """A mutex for each key, first come, first served. A key takes memory only while it is held or waited for.

    If a waiting task is cancelled, the task behind it still waits for the one before.
    """

    def __init__(self) -> None:
        self._last: dict[str, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncIterator[None]:
        """Hold a key, after all that came before."""
        # Example: A holds the key, B and C wait, and B is cancelled.
        #   A      holds the key; `_last` has C's future by now
        #   B      is cancelled: its future ends when A's does
        #   C      waits for B's future, and so still for A
        before = self._last.get(key)
        mine = self._last[key] = asyncio.get_running_loop().create_future()

        def end(_: object = None) -> None:
            mine.set_result(None)
            if self._last.get(key) is mine:
                del self._last[key]

        try:
            if before is not None:
                await asyncio.wait([before])
            yield
        finally:
            if before is None or before.done():
                end()
            else:
                before.add_done_callback(end)


class Writer:
    """Writes through one connection."""

    def __init__(self, connection: Connection, chance: Chance = SYSTEM_CHANCE) -> None:
        self._connection = connection
        self._clock = connection.clock
        self._chance = chance
        self._pods = KeyMutex()

    async def bind(self, pod: Named, node_name: str) -> None:
        """Create the pod's binding. Return only when the pod is on the node, whatever happened to the answer."""
        async with self._pods.lock(pod.uid):
            await self._bind(pod, node_name)

    async def _bind(self, pod: Named, node_name: str) -> None:
        namespace, name, uid = pod.namespace, pod.name, pod.uid
        path = f"{_pod_path(namespace, name)}/binding"
        body = codec.encode(
            Binding(
                metadata=ObjectMeta(name=name, namespace=namespace, uid=uid),
                target=ObjectReference(kind="Node", name=node_name),
            )
        )
        for attempt in range(1, BIND_ATTEMPTS + 1):
            try:
                if says_bound(await self._connection.request("POST", path, body)):
                    return
                raise AnswerLost(f"POST {path}: the answer is neither a Status of success nor a Binding")
            except (AnswerLost, ServerFault, Conflict) as error:
                # A conflict may be the answer to our own binding, which a proxy sent twice.
                # Not a plain repetition: the first binding may have been carried out, and the server refuses a second one with
                # Conflict.
                assigned = await self._assigned_node(pod)
                if assigned == node_name:
                    return
                if assigned:
                    if isinstance(error, Conflict):
                        raise
                    text = f'Operation cannot be fulfilled on pods/binding "{name}": '
                    text += f'pod {name} is already assigned to node "{assigned}"'
                    raise Conflict(409, "Conflict", text) from error
                # The pod has no node. A lost request is sent again; after an error of the server the attempt fails, and the pod
                # is tried again after its backoff.
                if not isinstance(error, AnswerLost) or attempt == BIND_ATTEMPTS:
                    raise

    async def let_bind(self, pod: Named, node_name: str, act: Callable[[], Awaitable[None]]) -> None:
        """Let an extender bind the pod. If it fails or answers too late, read whether the pod is on the node all the same."""
        async with self._pods.lock(pod.uid):
            self._connection.require_lead(f"binding of pod {pod.namespace}/{pod.name} by an extender")
            try:
                await act()
            except SchedulerError:
                if await self._assigned_node(pod) != node_name:
                    raise

    async def patch_pod_status(self, pod: Named, status: Mapping[str, Any]) -> None:
        """Patch a pod's status with a strategic merge patch of the status object."""
        path = f"{_pod_path(pod.namespace, pod.name)}/status"
        body = codec.encode({"status": status})
        async with self._pods.lock(pod.uid):
            await self._repeat(lambda: self._change("PATCH", path, body, STRATEGIC_MERGE_PATCH))

    async def patch_status(self, obj: TopLevel, status: Mapping[str, Any]) -> None:
        """Patch the status of an object that is no pod with a strategic merge patch of the status object."""
        path, body = object_path(obj, "status"), codec.encode({"status": status})
        await self._repeat(lambda: self._change("PATCH", path, body, STRATEGIC_MERGE_PATCH))

    async def delete_pod(self, pod: Named) -> None:
        """Delete this very pod, with its own grace period; raise `NotFound` if it is gone, replaced or not."""
        await self._delete(_pod_path(pod.namespace, pod.name), _stand_in(pod))

    async def create(self, obj: T) -> T:
        """Create an object and return it as stored."""
        info = INFO[type(obj)]
        path = collection_path(version_of(obj), info.plural, obj.metadata.namespace if info.namespaced else "")
        try:
            body = await self._connection.request("POST", path, codec.encode(obj))
        except (AnswerLost, AlreadyExists) as error:
            found = await self._created_meanwhile(obj, error)
            if found is None:
                raise
            return found
        return codec.decode_as(type(obj), body)

    async def update(self, changed: T, subresource: str = "") -> T:
        """Replace an object; raise `Conflict` with its latest version if it changed meanwhile. Return the new version."""
        # Read first for two reasons: fields that our structs do not have are kept (`overlay`), and an outdated version is
        # refused before anything is written.
        path, version = object_path(changed), changed.metadata.resource_version
        target = f"{path}/{subresource}" if subresource else path
        current = await self._connection.request("GET", path)
        before = _object_in(current, changed, path)
        wanted = (version or before.metadata.resource_version, changed.uid or before.uid)
        if (before.metadata.resource_version, before.uid) != wanted:
            raise _changed_meanwhile(before)
        for _ in range(UPDATE_ATTEMPTS):
            body = codec.encode(codec.overlay(current, changed))
            try:
                return _object_in(await self._connection.request("PUT", target, body), changed, target)
            except (AnswerLost, ServerFault, Conflict) as error:
                # As with a binding, a conflict may be the answer to our own write, and a 500 may come after it was stored.
                doubt = error
            # Three cases: the object is as we wanted it (our write, or an equal one), somebody else changed it, or nothing was
            # written and we may try again.
            current, stored = await self._look_up(path, changed)
            if stored.metadata.resource_version != before.metadata.resource_version:
                if _has_same_content(stored, changed):
                    return stored
                raise _changed_meanwhile(stored) from doubt
            if not isinstance(doubt, AnswerLost):
                break
        raise doubt

    async def delete(self, obj: TopLevel) -> None:
        """Delete this very object."""
        await self._delete(object_path(obj), obj)

    # After a lost answer

    async def _assigned_node(self, pod: Named) -> str:
        """Return the node that the pod is on now, "" for none; raise `NotFound` if it is no longer this pod."""
        found = await self._still_there(_pod_path(pod.namespace, pod.name), _stand_in(pod))
        return found.spec.node_name

    async def _still_there(self, path: str, wanted: T) -> T:
        """Return an object as the server has it; raise `NotFound` if it is no longer this one."""
        _, found = await self._look_up(path, wanted)
        if wanted.uid and found.uid != wanted.uid:
            text = f'{INFO[type(wanted)].plural} "{wanted.name}" not found: the name now belongs to another object'
            raise NotFound(404, "NotFound", text)
        return found

    async def _look_up(self, path: str, wanted: T) -> tuple[bytes, T]:
        """Return an object as the server has it, as bytes and decoded. Repeat until the server answers."""
        for pause in chain(LOOKUP_PAUSES_SECONDS, repeat(LOOKUP_PAUSES_SECONDS[-1])):
            try:
                body = await self._connection.request("GET", path)
                return body, _object_in(body, wanted, path)
            except (Unreachable, ServerFault, TooManyRequests, Unauthorized) as error:
                log.warning("what became of a write to %s is not known: %s; asking again in %g s", path, error, pause)
                await self._clock.sleep(pause)
        raise AssertionError("there is always another pause")

    async def _created_meanwhile(self, obj: T, error: AnswerLost | AlreadyExists) -> T | None:
        """Return the stored object if it is what we wanted to create; None when that cannot be known."""
        if not obj.metadata.name or isinstance(error, AlreadyExists):
            return None
        path = object_path(obj)
        try:
            found = codec.decode_as(type(obj), await self._connection.request("GET", path))
        except NotFound:
            return await self.create(obj)
        if _is_part(codec.to_dict(obj), codec.to_dict(found)):
            return found
        raise AlreadyExists(409, "AlreadyExists", f'{INFO[type(obj)].plural} "{obj.name}" already exists') from error

    async def _delete(self, path: str, obj: TopLevel) -> None:
        body = codec.encode(DeleteOptions(preconditions=Preconditions(uid=obj.uid) if obj.uid else None))
        was_sent = False
        for pause in (*PATCH_PAUSES_SECONDS, None):
            try:
                await self._send_delete(path, body, obj)
                return
            except NotFound:
                if was_sent:
                    return
                raise
            except AnswerLost:
                if pause is None:
                    raise
                was_sent = True
                await self._pause(pause)

    async def _send_delete(self, path: str, body: bytes, obj: TopLevel) -> None:
        try:
            await self._change("DELETE", path, body)
        except Conflict:
            # Mostly the uid is another one, so our object is gone: NotFound. But if it exists and just could not be deleted,
            # there will be no deletion event, so the caller must see the conflict.
            await self._still_there(path, obj)
            raise

    async def _change(self, method: str, path: str, body: bytes, *content_type: str) -> None:
        """Send a write whose answer is not needed, but must be the API's: a proxy may answer 200 too."""
        if not says_done(await self._connection.request(method, path, body, *content_type)):
            raise AnswerLost(f"{method} {path}: the answer is neither a Status of success nor an object")

    async def _repeat(self, send: Callable[[], Awaitable[R]]) -> R:
        """Send a write that may be done twice, up to four times as kube-scheduler does."""
        for pause in PATCH_PAUSES_SECONDS:
            try:
                return await send()
            except (Conflict, Unreachable):
                await self._pause(pause)
            except ServerFault as error:
                if error.status not in (500, 503):
                    raise
                await self._pause(pause)
        return await send()

    async def _pause(self, seconds: float) -> None:
        await self._clock.sleep(seconds * (1.0 + PATCH_JITTER * self._chance.random()))


def _object_in(body: bytes, wanted: T, path: str) -> T:
    """Return the object in an answer; raise AnswerLost if it is another object, or none."""
    try:
        found = codec.decode_as(type(wanted), body)
    except MalformedObject as error:
        raise AnswerLost(f"{path}: the answer is not the object") from error
    if found.metadata.name != wanted.metadata.name:
        raise AnswerLost(f"{path}: the answer is not the object")
    return found


class _Answer(msgspec.Struct):
    kind: str = ""
    status: Any = None  # a text in a Status, an object elsewhere


_answers = msgspec.json.Decoder(_Answer)


def says_bound(body: bytes) -> bool:
    """Return whether an answer is the API's for a successful binding."""
    answer = _read(body)
    return answer.kind == "Binding" or (answer.kind == "Status" and answer.status == "Success")


def says_done(body: bytes) -> bool:
    """Return whether an answer is the API's for a successful change or deletion: the object, or a Status."""
    answer = _read(body)
    return answer.status == "Success" if answer.kind == "Status" else bool(answer.kind)


def _read(body: bytes) -> _Answer:
    try:
        return _answers.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Answer()


def _stand_in(pod: Named) -> Pod:
    """Return a pod that has the names of another and nothing else."""
    return Pod(metadata=ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid))


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def _changed_meanwhile(latest: TopLevel) -> Conflict:
    info = INFO[type(latest)]
    name = f"{info.plural}.{info.group}" if info.group else info.plural
    conflict = Conflict(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {name} "{latest.name}": the object has been modified; '
        "please apply your changes to the latest version and try again",
    )
    conflict.latest = latest
    return conflict


def _is_part(sent: Any, stored: Any) -> bool:
    """Return whether everything that was sent is in what is stored, which may have defaults besides."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return all(name in stored and _is_part(value, stored[name]) for name, value in sent.items())
    if isinstance(sent, (list, tuple)) and isinstance(stored, (list, tuple)):
        return len(sent) == len(stored) and all(map(_is_part, sent, stored))
    return bool(sent == stored)


def _has_same_content(stored: TopLevel, sent: TopLevel) -> bool:
    """Return whether two versions of an object differ in nothing but what the server adds to metadata."""
    meta, wanted = stored.metadata, sent.metadata
    same = msgspec.structs.replace(
        wanted,
        uid=meta.uid,
        resource_version=meta.resource_version,
        generation=meta.generation,
        creation_timestamp=meta.creation_timestamp,
    )
    return bool(stored == msgspec.structs.replace(sent, metadata=same))
