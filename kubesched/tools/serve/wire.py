"""What the service and its solver processes say to each other over Unix sockets: frames of a length and a MessagePack value.

A process of the service (`service.py`) asks; a solver process (`solver_process.py`) answers. Both live on one machine, in one
version of the program, and trust each other: what comes from callers is the `body`, which only the solver process reads.
"""

from __future__ import annotations

import socket
import struct
from asyncio import IncompleteReadError, StreamReader
from typing import TypeVar

import msgspec

from kubesched.errors import SchedulerError

INVALID = "INVALID_ARGUMENT"
UNAUTHENTICATED = "UNAUTHENTICATED"
FORBIDDEN = "PERMISSION_DENIED"
NOT_FOUND = "NOT_FOUND"
EXHAUSTED = "RESOURCE_EXHAUSTED"
LATE = "DEADLINE_EXCEEDED"
UNAVAILABLE = "UNAVAILABLE"
INTERNAL = "INTERNAL"
HTTP_STATUS = {
    INVALID: 400,
    UNAUTHENTICATED: 401,
    FORBIDDEN: 403,
    NOT_FOUND: 404,
    EXHAUSTED: 429,
    LATE: 504,
    UNAVAILABLE: 503,
    INTERNAL: 500,
}
"""The codes of gRPC that we answer with, and what each is in HTTP."""

MOST_FRAME_BYTES = 256 << 20
_LENGTH = struct.Struct(">I")
T = TypeVar("T")


class Refusal(SchedulerError):
    """A question that is not answered, and the code that says why."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class Ask(msgspec.Struct, array_like=True):
    """A question to a solver process."""

    number: int
    call: str
    body: bytes
    seconds: float
    """How long the caller will wait."""
    seen: int = -1
    """A revision of the cluster whose answer the caller has: an unchanged cluster answers with no body."""
    most_bytes: int = 0
    """How much memory a fork for this question may take; 0 for no limit."""


class Reply(msgspec.Struct, array_like=True):
    """The answer: its code is empty and its body a document, or the body is a sentence."""

    number: int
    code: str = ""
    body: bytes = b""
    revision: int = 0
    seconds: float = 0.0
    """How much CPU time it took."""


class Become(msgspec.Struct, array_like=True):
    """The first frame to a new process: what it is to be."""

    path: str
    """Where it takes questions that it answers in a fork of itself."""
    objects: bytes = b""
    """The cluster of a session, as the caller sent it; without it the process follows the live cluster."""
    most_bytes: int = 0
    """How much memory it may take beside what it is born with; 0 for no limit."""


_encode = msgspec.msgpack.Encoder().encode


def frame(value: msgspec.Struct) -> bytes:
    """Return a value as a frame."""
    body = _encode(value)
    return _LENGTH.pack(len(body)) + body


async def read(reader: StreamReader, type_: type[T]) -> T | None:
    """Return the next value of a stream; None at its end."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return msgspec.msgpack.decode(await reader.readexactly(length), type=type_)
    except (IncompleteReadError, ConnectionError):
        return None


def read_blocking(sock: socket.socket, type_: type[T]) -> T | None:
    """Do the same without an event loop."""
    head = _received(sock, _LENGTH.size)
    body = _received(sock, _LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b""
    return msgspec.msgpack.decode(body, type=type_) if body else None


def _received(sock: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count and (chunk := sock.recv(min(count - len(found), 1 << 20))):
        found += chunk
    return bytes(found)
