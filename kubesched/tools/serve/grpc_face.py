"""The service over gRPC: the calls of `protos/solver.proto`, and Cluster Autoscaler's expander.

In: messages whose pods and nodes are JSON as bytes. Out: messages with the answer as JSON, and beside it what most callers
branch on. Callers show a bearer token in the metadata `authorization`, and are let in by the path that the call has over HTTP.
Client certificates are not asked for: grpcio can only demand them of everybody or of nobody.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import grpc
import msgspec
from aiohttp import web
from multidict import CIMultiDict

from kubesched.errors import SchedulerError
from kubesched.server.web import ANONYMOUS, DelegatedAccess, NotAuthentic, Pair
from kubesched.solver.node_groups import NodeGroup
from kubesched.tools.serve.descriptors import Message, protocol
from kubesched.tools.serve.expander import Expander
from kubesched.tools.serve.http_face import ROOT, path_of
from kubesched.tools.serve.questions import (
    Addition,
    CheapestQuestion,
    ObjectName,
    Offer,
    PlaceQuestion,
    PodQuestion,
    WhatIfQuestion,
)
from kubesched.tools.serve.service import CHEAPEST_NODES, EXPLAIN, FITS, PLACE, WATCH, WHAT_IF, Service
from kubesched.tools.serve.wire import FORBIDDEN, INTERNAL, UNAUTHENTICATED, Refusal, Reply

SOLVER, EXPANDER = "kubesched.v1.Solver", "grpcplugin.Expander"
BEST_OPTIONS = f"/{EXPANDER}/BestOptions"
MOST_STREAMS = 256
"""Calls under way on one connection."""
_encode = msgspec.json.Encoder().encode
_raw = msgspec.Raw


class _Fits(msgspec.Struct):
    """What is read of an answer for the fields beside it."""

    node: str
    message: str


class _Counts(msgspec.Struct):
    placed: int
    pending: int


class _Placed(msgspec.Struct):
    summary: _Counts


class _Cheapest(msgspec.Struct, rename="camel"):
    counts: dict[str, int]
    price_per_hour: float
    unplaced: list[str]


class _Sizes(msgspec.Struct):
    nodes: int
    pods: int


@dataclass(frozen=True, slots=True)
class _Shown:
    """What of a gRPC call the doors look at: its metadata stand for headers."""

    headers: CIMultiDict[str]
    transport: None = None


class GrpcFace:
    """Turns messages into questions and replies into messages."""

    def __init__(self, service: Service, expander: Expander | None, access: DelegatedAccess | None) -> None:
        self._service, self._expander, self._access = service, expander, access
        self._messages = protocol("solver").messages

    def handlers(self) -> list[grpc.GenericRpcHandler]:
        """Return what a server of grpc is given."""
        calls: dict[str, Callable[[Any, grpc.aio.ServicerContext], Any]] = {
            "Fits": self._doing(FITS, self._fits),
            "Place": self._doing(PLACE, self._place),
            "WhatIf": self._doing(WHAT_IF, self._what_if),
            "CheapestNodes": self._doing(CHEAPEST_NODES, self._cheapest),
            "Explain": self._doing(EXPLAIN, self._explain),
            "Watch": self._watch,
            "PutSession": self._doing("sessions", self._put_session),
            "ChangeSession": self._doing("sessions", self._change_session),
            "DeleteSession": self._doing("sessions", self._delete_session),
        }
        found = [_handler(SOLVER, "solver", calls)]
        if self._expander is not None:
            found.append(_handler(EXPANDER, "expander", {"BestOptions": self._best_options}))
        return found

    # The calls

    async def _fits(self, caller: str, asked: Message, seconds: float | None) -> Message:
        return self._fits_answer(
            await self._ask(caller, FITS, PodQuestion(_raw(asked.pod), asked.nodes), asked.session, seconds)
        )

    async def _explain(self, caller: str, asked: Message, seconds: float | None) -> Message:
        reply = await self._ask(caller, EXPLAIN, PodQuestion(_raw(asked.pod)), asked.session, seconds)
        return self._messages["ExplainAnswer"](json=reply.body, revision=reply.revision)

    async def _place(self, caller: str, asked: Message, seconds: float | None) -> Message:
        question = PlaceQuestion([_raw(pod) for pod in asked.pods], asked.preempt)
        return self._place_answer(await self._ask(caller, PLACE, question, asked.session, seconds))

    async def _what_if(self, caller: str, asked: Message, seconds: float | None) -> Message:
        question = WhatIfQuestion(
            [_raw(pod) for pod in asked.pods],
            asked.preempt,
            [Addition(_raw(each.template), each.count) for each in asked.add_nodes],
            list(asked.drain),
            list(asked.delete),
        )
        return self._place_answer(await self._ask(caller, WHAT_IF, question, asked.session, seconds))

    async def _cheapest(self, caller: str, asked: Message, seconds: float | None) -> Message:
        offers = [Offer(each.name, _raw(each.node), each.price, each.max) for each in asked.templates]
        question = CheapestQuestion([_raw(pod) for pod in asked.pods], offers)
        reply = await self._ask(caller, CHEAPEST_NODES, question, asked.session, seconds)
        found, count = msgspec.json.decode(reply.body, type=_Cheapest), self._messages["NodeCount"]
        return self._messages["CheapestNodesAnswer"](
            nodes=[count(template=name, count=n) for name, n in found.counts.items()],
            price=found.price_per_hour,
            unplaced=len(found.unplaced),
            json=reply.body,
            revision=reply.revision,
        )

    async def _put_session(self, caller: str, asked: Message, seconds: float | None) -> Message:
        objects = _encode([_raw(each) for each in asked.objects])
        reply = await self._service.put_session(caller, asked.session, objects, asked.idle_seconds)
        return self._session_answer(caller, asked.session, reply)

    async def _change_session(self, caller: str, asked: Message, seconds: float | None) -> Message:
        remove = [ObjectName(each.kind, each.name, each.namespace) for each in asked.remove]
        changes = _encode({"put": [_raw(each) for each in asked.put], "remove": remove})
        return self._session_answer(caller, asked.session, await self._service.change_session(caller, asked.session, changes))

    async def _delete_session(self, caller: str, asked: Message, seconds: float | None) -> Message:
        self._service.drop_session(caller, asked.session)
        return self._messages["SessionAnswer"](session=asked.session)

    async def _watch(self, asked: Message, context: grpc.aio.ServicerContext) -> Any:
        try:
            caller = await self._let_in(context, path_of(WATCH))
            async for reply in self._service.watch(caller, _encode(PodQuestion(_raw(asked.pod), asked.nodes)), asked.session):
                yield self._fits_answer(reply)
        except Refusal as error:
            await context.abort(grpc.StatusCode[error.code], str(error))

    async def _best_options(self, asked: Message, context: grpc.aio.ServicerContext) -> Message:
        assert self._expander is not None
        try:
            caller = await self._let_in(context, BEST_OPTIONS)
            return await self._expander.best_options(caller, asked, context.time_remaining())
        except Refusal as error:
            await context.abort(grpc.StatusCode[error.code], str(error))

    # What they share

    async def _ask(self, caller: str, call: str, question: msgspec.Struct, session: str, seconds: float | None) -> Reply:
        return await self._service.ask(caller, call, _encode(question), session=session, seconds=seconds)

    def _doing(
        self, call: str, do: Callable[[str, Message, float | None], Awaitable[Message]]
    ) -> Callable[[Message, grpc.aio.ServicerContext], Awaitable[Message]]:
        async def handle(asked: Message, context: grpc.aio.ServicerContext) -> Message:
            try:
                path = path_of(call) if call != "sessions" else f"{ROOT}/sessions/{asked.session}"
                return await do(await self._let_in(context, path), asked, context.time_remaining())
            except Refusal as error:
                await context.abort(grpc.StatusCode[error.code], str(error))

        return handle

    async def _let_in(self, context: grpc.aio.ServicerContext, path: str) -> str:
        """Return who calls; raise `Refusal` if nobody may know, or this one may not call."""
        if self._access is None:
            return str(context.peer())
        headers = CIMultiDict((key, str(value)) for key, value in context.invocation_metadata() or ())
        try:
            user = await self._access.authenticator.authenticate(cast(web.BaseRequest, _Shown(headers)))
        except NotAuthentic as error:
            raise Refusal(UNAUTHENTICATED, "the credentials do not hold") from error
        try:
            decision = await self._access.authorizer.decide(user, "post", path)
        except SchedulerError as error:
            raise Refusal(INTERNAL, f"the API server could not be asked who may: {error}") from error
        if decision.is_allowed:
            return user.name
        if user.name == ANONYMOUS.name:
            raise Refusal(UNAUTHENTICATED, "metadata authorization: a bearer token is needed")
        raise Refusal(FORBIDDEN, f'User "{user.name}" cannot post path "{path}": {decision.reason}'.removesuffix(": "))

    def _fits_answer(self, reply: Reply) -> Message:
        found = msgspec.json.decode(reply.body, type=_Fits)
        return self._messages["FitsAnswer"](
            fits=bool(found.node), node=found.node, message=found.message, json=reply.body, revision=reply.revision
        )

    def _place_answer(self, reply: Reply) -> Message:
        found = msgspec.json.decode(reply.body, type=_Placed).summary
        return self._messages["PlaceAnswer"](
            placed=found.placed, unplaced=found.pending, json=reply.body, revision=reply.revision
        )

    def _session_answer(self, caller: str, name: str, reply: Reply) -> Message:
        found = msgspec.json.decode(reply.body, type=_Sizes)
        idle = int(self._service.idle_seconds(caller, name))
        return self._messages["SessionAnswer"](session=name, nodes=found.nodes, pods=found.pods, idle_seconds=idle)


class GrpcServer:
    """The port of gRPC. With node groups, it is Cluster Autoscaler's expander too."""

    def __init__(
        self,
        service: Service,
        access: DelegatedAccess | None,
        address: str,
        certificate: Callable[[], Pair | None],
        *,
        node_groups: Sequence[NodeGroup] | None = None,
    ) -> None:
        expander = Expander(service, node_groups) if node_groups is not None else None
        options = [
            ("grpc.max_receive_message_length", service.limits.most_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_concurrent_streams", MOST_STREAMS),
            ("grpc.so_reuseport", 0),
        ]
        self._server = grpc.aio.server(options=options)
        self._server.add_generic_rpc_handlers(GrpcFace(service, expander, access).handlers())
        served = _Certificates(certificate)
        try:
            if served.first is None:
                self.port = self._server.add_insecure_port(address)
            else:
                self.port = self._server.add_secure_port(address, served.credentials())
        except RuntimeError as error:
            raise SchedulerError(f"failed to listen on {address} for gRPC") from error

    async def start(self) -> None:
        """Listen."""
        await self._server.start()

    async def stop(self, grace_seconds: float) -> None:
        """Take no more calls, and let those under way end."""
        await self._server.stop(grace_seconds)


class _Certificates:
    """The certificate that HTTP serves, for gRPC; a renewed one from the next connection on."""

    def __init__(self, certificate: Callable[[], Pair | None]) -> None:
        self._read = certificate
        self.first = self._last = certificate()
        self._looked = time.monotonic()

    def credentials(self) -> grpc.ServerCredentials:
        """Return what a server of grpc takes."""
        assert self.first is not None
        return grpc.dynamic_ssl_server_credentials(_configuration(self.first), self._changed)

    def _changed(self) -> Any:
        pair = self._read()
        if pair is None or pair == self._last:
            return None
        self._last = pair
        return _configuration(pair)


def _configuration(pair: Pair) -> Any:
    return grpc.ssl_server_certificate_configuration([(pair.key, pair.certificate)])


def _handler(service: str, file: str, calls: dict[str, Callable[..., Any]]) -> grpc.GenericRpcHandler:
    handlers = {}
    for name, method in protocol(file).services[service].items():
        make = grpc.unary_stream_rpc_method_handler if method.is_stream else grpc.unary_unary_rpc_method_handler
        serializer = method.answer.SerializeToString
        handlers[name] = make(calls[name], method.request.FromString, serializer)
    return grpc.method_handlers_generic_handler(service, handlers)
