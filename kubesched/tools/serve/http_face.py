"""The service over HTTP: a body of JSON in, the library's answer as JSON out.

    POST /v1/fits, place, what-if, cheapest-nodes, explain      the answer
    POST /v1/watch                                              answers of `fits`, one a line, whenever there is another
    PUT, PATCH, DELETE /v1/sessions/{name}                      a cluster of the caller's own

`?session=NAME` asks a session, `?timeoutSeconds=2` says how long the caller waits. What is refused has the status of its code
and `{"error", "code"}`. The doors (who asks, and who may) are those of the scheduler's port.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web

from kubesched.server.web import USER
from kubesched.server.web.responses import NO_SNIFF
from kubesched.tools.serve.service import CALLS, WATCH, Service
from kubesched.tools.serve.wire import EXHAUSTED, HTTP_STATUS, INVALID, Refusal, Reply

ROOT = "/v1"
REVISION = "Kubesched-Revision"
_JSON = "application/json"


class _Put(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    objects: msgspec.Raw
    idle_seconds: float = 0.0


def path_of(call: str) -> str:
    """Return the path of a call, by which callers are let in, whatever protocol they speak."""
    return f"{ROOT}/{call}"


def routes(service: Service) -> list[web.RouteDef]:
    """Return the routes."""

    def caller_of(request: web.Request) -> str:
        if not service.is_open or request.transport is None:
            return request[USER].name
        return "{}:{}".format(*request.transport.get_extra_info("peername"))

    def asking(call: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def ask(request: web.Request) -> Reply:
            body = await _body(request, service.limits.most_bytes)
            session = request.query.get("session", "")
            return await service.ask(caller_of(request), call, body, session=session, seconds=_seconds(request))

        return _answering(ask)

    async def put(request: web.Request) -> Reply:
        body = await _body(request, service.limits.most_bytes)
        try:
            asked = msgspec.json.decode(body, type=_Put)
        except msgspec.DecodeError as error:
            raise Refusal(INVALID, str(error)) from error
        return await service.put_session(caller_of(request), _name(request), bytes(asked.objects), asked.idle_seconds)

    async def change(request: web.Request) -> Reply:
        body = await _body(request, service.limits.most_bytes)
        return await service.change_session(caller_of(request), _name(request), body)

    async def delete(request: web.Request) -> Reply:
        service.drop_session(caller_of(request), _name(request))
        return Reply(0, body=msgspec.json.encode({"session": _name(request)}))

    async def watch(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={**NO_SNIFF, "Content-Type": "application/x-ndjson", "Cache-Control": "no-store"})

        def is_gone() -> bool:
            # As long as the answer stays the same nothing is written, and only a write would fail.
            return request.transport is None or request.transport.is_closing()

        try:
            body = await _body(request, service.limits.most_bytes)
            async for reply in service.watch(caller_of(request), body, request.query.get("session", ""), is_gone=is_gone):
                if not answer.prepared:
                    await answer.prepare(request)
                await answer.write(reply.body + b"\n")
        except ConnectionError:
            pass
        except Refusal as error:
            if not answer.prepared:
                return refused(error)
            await answer.write(_refusal_body(error) + b"\n")
        return answer

    session = f"{ROOT}/sessions/{{name}}"
    return [
        *(web.post(path_of(call), asking(call)) for call in CALLS),
        web.post(path_of(WATCH), watch),
        web.put(session, _answering(put)),
        web.patch(session, _answering(change)),
        web.delete(session, _answering(delete)),
    ]


def refused(error: Refusal) -> web.Response:
    """Return a refusal with the status of its code."""
    headers = dict(NO_SNIFF)
    if error.code == EXHAUSTED:
        headers["Retry-After"] = "1"
    return web.Response(body=_refusal_body(error), status=HTTP_STATUS[error.code], content_type=_JSON, headers=headers)


def _refusal_body(error: Refusal) -> bytes:
    return msgspec.json.encode({"error": str(error), "code": error.code})


def _answering(ask: Callable[[web.Request], Awaitable[Reply]]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            reply = await ask(request)
        except Refusal as error:
            return refused(error)
        headers = {**NO_SNIFF, REVISION: str(reply.revision), "Cache-Control": "no-store"}
        return web.Response(body=reply.body, content_type=_JSON, headers=headers)

    return answer


async def _body(request: web.Request, most: int) -> bytes:
    """Return the body; raise `Refusal` for one that is too long before it is in memory. What a form of a web page can send is
    refused, also where nobody has to say who asks."""
    if request.content_type != _JSON:
        raise Refusal(INVALID, f"the content type is {request.content_type}, expected {_JSON}")
    body = bytearray()
    async for chunk in request.content.iter_chunked(1 << 16):
        body += chunk
        if len(body) > most:
            raise Refusal(INVALID, f"the body is longer than {most} bytes")
    return bytes(body)


def _name(request: web.Request) -> str:
    return request.match_info["name"]


def _seconds(request: web.Request) -> float | None:
    given = request.query.get("timeoutSeconds")
    if given is None:
        return None
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise Refusal(INVALID, f"timeoutSeconds: {given!r} is not a number above 0")
    return seconds
