"""The network: connections in memory between client processes and the API server, and everything that befalls them.

In: bytes that aiohttp and the write pool believe to write to sockets, and faults that say what is wrong, when and for whom.
Out: the same bytes on the other side after a delay, or fewer, or others, or none. The real HTTP code runs on both sides.
A client has one request under way on a connection and writes it in one piece, so a write on that side is a request.
A connection's chance comes from its client and number: what happens to one does not change the luck of another.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from chaos.faults import Fault

if TYPE_CHECKING:
    from chaos.processes import Process, ProcessLoop

SHORTEST_SECONDS, LONGEST_SECONDS = 0.0002, 0.002
HIGH_WATER_BYTES, SLOW_HIGH_WATER_BYTES = 1 << 16, 1 << 11
_REQUEST = re.compile(rb"(GET|POST|PUT|PATCH|DELETE) (\S+) HTTP/1\.1\r\n")
_PAGE = b"<html><body>Welcome to the captive portal</body></html>"
_STATUSES = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}


class Network:
    """All connections of a run."""

    def __init__(self, loop: ProcessLoop, seed: str, note: Callable[[str], None]) -> None:
        self._loop = loop
        self._seed = seed
        self.note = note
        self._faults: list[Fault] = []
        self._active: dict[str, list[Fault]] = {}
        self._active_until = 0.0
        self.on_request: Callable[[Process, str, str, bytes], None] = lambda process, method, path, data: None
        """Told of every request in the moment in which its bytes leave the client."""
        self._server: Process | None = None
        self._accept: Callable[[], asyncio.Protocol] | None = None
        self._links: dict[Link, None] = {}
        self._counts: dict[str, int] = {}

    def serve(self, server: Process, accept: Callable[[], asyncio.Protocol]) -> None:
        """Let a server process be reachable."""
        self._server, self._accept = server, accept

    def lose(self, process: Process) -> None:
        """Cut all connections of a process that is gone."""
        if process is self._server:
            self._server = self._accept = None
        for link in list(self._links):
            if process in (link.client.process, link.server.process):
                link.reset()

    def suffer(self, faults: list[Fault]) -> None:
        """Let these faults happen, each in its time."""
        self._faults, self._active_until = faults, 0.0

    def active(self, client: str, *kinds: str) -> Iterable[Fault]:
        """Return the faults of these kinds that a client suffers now."""
        now = self._loop.time()
        if now >= self._active_until:
            self._note_active(now)
        found = self._active
        if not found:  # asked of every piece of data
            return ()
        return [fault for kind in kinds if kind in found for fault in found[kind] if fault.hits(client)]

    def _note_active(self, now: float) -> None:
        """Sort out which faults last just now, and until when that is so."""
        self._active = {}
        for fault in self._faults:
            if fault.at <= now < fault.end:
                self._active.setdefault(fault.kind, []).append(fault)
        turns = (at for fault in self._faults for at in (fault.at, fault.end) if at > now)
        self._active_until = min(turns, default=math.inf)

    def held_until(self, client: str, *kinds: str) -> float:
        """Return when bytes may pass that such faults hold back; 0 when none does."""
        return max((fault.end for fault in self.active(client, *kinds)), default=0.0)

    async def dial(self, process: Process) -> None:
        """Wait until the server takes the connection; raise as a system does when it does not."""
        until = self.held_until(process.name, "partition", "partition_out", "partition_in")
        if until:
            await asyncio.sleep(until - self._loop.time())
        await asyncio.sleep(SHORTEST_SECONDS)
        if self._server is None:
            raise ConnectionRefusedError(111, "Connection refused")

    def connect(self, process: Process, factory: Callable[[], asyncio.Protocol]) -> tuple[asyncio.Transport, Any]:
        """Join a client and the server."""
        if self._server is None or self._accept is None:
            raise ConnectionRefusedError(111, "Connection refused")
        number = self._counts[process.name] = self._counts.get(process.name, 0) + 1
        link = Link(self, self._loop, process, self._server, random.Random(f"{self._seed}/{process.name}/{number}"))
        self._links[link] = None
        link.server.adopt(self._server.call(self._accept))
        protocol = factory()
        link.client.adopt(protocol)
        return link.client, protocol

    def forget(self, link: Link) -> None:
        """Take notice that a connection is over."""
        self._links.pop(link, None)

    def silence(self, fault: Fault) -> None:
        """Let the connections that clients have now stay open and carry nothing any more."""
        for link in self._links:
            if fault.hits(link.client.process.name):
                link.is_black_hole = True

    def cut(self, fault: Fault) -> None:
        """Break the connections that clients have now."""
        for link in list(self._links):
            if fault.hits(link.client.process.name):
                link.reset()

    def writes_under_way(self, client: str) -> list[str]:
        """Return what a process has asked to be changed, by method and path, and has not been answered."""
        return [link.asked for link in self._links if link.client.process.name == client and link.is_asking]

    def n_links_of(self, client: str) -> int:
        """Return how many connections a process has."""
        return sum(1 for link in self._links if link.client.process.name == client)


class Link:
    """One connection."""

    def __init__(self, network: Network, loop: ProcessLoop, client: Process, server: Process, chance: random.Random) -> None:
        self._network, self._loop, self._chance = network, loop, chance
        self.client = End(self, loop, client)
        self.server = End(self, loop, server)
        self.client.peer, self.server.peer = self.server, self.client
        self.is_black_hole = False
        self._fate = ""
        self.asked = ""
        """The last request, by method and path."""
        self.is_asking = False
        """Whether that is a write which nobody has answered yet."""
        self._is_watch = False

    def carry(self, sender: End, data: bytes) -> None:
        """Take bytes to the other side, as far as the faults of the moment let them."""
        if sender is self.client:
            self._carry_request(data)
        else:
            self._carry_answer(data)

    def _carry_request(self, data: bytes) -> None:
        network, client = self._network, self.client.process
        found = _REQUEST.match(data)
        if found is None:
            self._pass(self.server, data, "partition", "partition_out")
            return
        method, path = found[1].decode(), found[2].decode()
        self.asked, self._fate, self._is_watch = f"{method} {path.partition('?')[0]}", "", "watch=true" in path
        self.is_asking = method != "GET"
        network.on_request(client, method, path, data)
        for fault in network.active(client.name, "drop", "lose", "twice", "garbage", "refuse", "cut"):
            if self._chance.random() >= fault.chance or not fault.concerns(method):
                continue
            self._note(fault.kind)
            if fault.kind == "drop":
                self.reset()
                return
            if fault.kind == "twice" and method != "GET":
                self._twin(data)
            elif fault.kind == "refuse":
                self._answer(_refusal(fault.status, self._chance))
                return
            elif fault.kind == "garbage" and "watch=true" not in path and self._chance.random() < 0.5:
                self._answer(_reply(200, _PAGE, "text/html"))  # whoever answers did not pass it on
                return
            elif fault.kind in ("lose", "garbage", "cut"):
                self._fate = fault.kind
            break
        self._pass(self.server, data, "partition", "partition_out")

    def _carry_answer(self, data: bytes) -> None:
        network, client, self.is_asking = self._network, self.client.process, False
        if self._fate == "lose":
            self.reset()
            return
        if self._fate == "garbage" and data.startswith(b"HTTP/1.1 2") and b"chunked" not in data[:400]:
            self._fate = "swallow"
            self._answer(_reply(200, _PAGE, "text/html"))
            return
        if self._fate == "swallow":
            return
        if self._fate == "garbage" and b'{"type"' in data:
            data = data.replace(b'{"type"', b'}"type"', 1)
            self._fate = ""
        if self._fate == "cut":
            self._pass(self.client, data[: self._chance.randrange(len(data))], "partition", "partition_in")
            self._loop.call_later(LONGEST_SECONDS * 2, self.reset)
            self._fate = "swallow"
            return
        if self._is_watch and not data.startswith(b"HTTP/1.1"):
            for fault in network.active(client.name, "cut_watch", "repeat"):
                if self._chance.random() >= fault.chance:
                    continue
                self._note(fault.kind)
                if fault.kind == "repeat" and data.endswith(b"\r\n") and not data.startswith(b"0\r\n"):
                    data += data
                elif fault.kind == "cut_watch":
                    self._fate = "cut"
                    self._carry_answer(data)
                    return
        self._pass(self.client, data, "partition", "partition_in")

    def _pass(self, receiver: End, data: bytes, *held_by: str) -> None:
        if self.is_black_hole:
            return
        network, name = self._network, self.client.process.name
        when = max(self._loop.time(), network.held_until(name, *held_by))
        when += SHORTEST_SECONDS + self._chance.random() * (LONGEST_SECONDS - SHORTEST_SECONDS)
        for fault in network.active(name, "delay"):
            when += self._chance.random() * fault.chance * 10.0
        receiver.expect(when, data)

    def _answer(self, data: bytes) -> None:
        self.is_asking = False
        self._pass(self.client, data, "partition", "partition_in")

    def _twin(self, data: bytes) -> None:
        """Let the server hear the request on a second connection whose answer nobody reads."""
        network = self._network
        if network._server is not None and network._accept is not None:
            twin = Link(network, self._loop, self.client.process, network._server, random.Random(self._chance.random()))
            network._links[twin] = None
            twin.server.adopt(network._server.call(network._accept))
            twin.client.adopt(asyncio.Protocol())
            twin._pass(twin.server, data)
            self._loop.call_later(5.0, twin.reset)

    @property
    def is_slow(self) -> bool:
        """Return whether the client reads slowly just now."""
        return bool(self._network.active(self.client.process.name, "slow_reader"))

    def pause(self) -> float:
        """Return how long a slow reader looks out of the window."""
        return self._chance.uniform(0.1, 3.0)

    def _note(self, kind: str) -> None:
        self._network.note(f"net {self.client.process.name} {kind} {self.asked}")

    def reset(self) -> None:
        """Break the connection, for both sides to see."""
        self._network.forget(self)
        for end in (self.client, self.server):
            end.lose(ConnectionResetError(104, "Connection reset by peer"))

    def closed_by(self, end: End) -> None:
        """Let the other side learn, a little later, that this one has closed."""
        self._network.forget(self)
        if not self.is_black_hole:
            end.peer.expect_end(self._loop.time() + LONGEST_SECONDS)


class End(asyncio.Transport):
    """One side of a connection, as a transport."""

    peer: End

    def __init__(self, link: Link, loop: ProcessLoop, process: Process) -> None:
        super().__init__()
        self.process = process
        self._link, self._loop = link, loop
        self._protocol: Any = None
        self._is_closing = self._is_lost = False
        self._is_paused = self._holds_writer = self._naps = self._has_other_closed = False
        self._arrives = 0.0
        self._waiting: list[bytes] = []
        self._n_waiting = 0

    def adopt(self, protocol: Any) -> None:
        """Begin."""
        self._protocol = protocol
        self.process.call(protocol.connection_made, self)

    # What a protocol does with its transport

    def write(self, data: Any) -> None:
        if data and not self._is_closing and not self.process.is_dead:
            self._link.carry(self, bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        if not self._is_closing and not self.process.is_dead:
            self._is_closing = True
            self._link.closed_by(self)
            self._call_soon(self._end, None)

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return self._is_closing

    def can_write_eof(self) -> bool:
        return False

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"socket": _NoSocket(), "peername": ("127.0.0.1", 1)}.get(name, default)

    def get_write_buffer_size(self) -> int:
        return self.peer._n_waiting

    def set_write_buffer_limits(self, high: Any = None, low: Any = None) -> None:
        pass

    def is_reading(self) -> bool:
        return not self._is_paused

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        if self._is_paused:  # aiohttp resumes after every piece, paused or not
            self._is_paused = False
            self._call_soon(self._hand_over)

    # What the network does

    def expect(self, when: float, data: bytes) -> None:
        """Receive bytes later, after everything that was sent before."""
        self._arrives = max(when, self._arrives + 1e-6)
        self._n_waiting += len(data)
        is_full = self._n_waiting > HIGH_WATER_BYTES or (self._n_waiting > SLOW_HIGH_WATER_BYTES and self._link.is_slow)
        if is_full and not self._holds_writer:
            self._holds_writer = True
            self.peer.process.call(self.peer._protocol.pause_writing)
        self._loop.call_at(self._arrives, self._receive, data, context=self.process.context)

    def expect_end(self, when: float) -> None:
        """Learn that the other side has closed, after everything that it sent before."""
        self._arrives = max(when, self._arrives + 1e-6)
        self._loop.call_at(self._arrives, self._other_closed, context=self.process.context)

    def lose(self, error: Exception) -> None:
        """Learn at once that the connection is broken."""
        if not self._is_closing:
            self._is_closing = True
            self._call_soon(self._end, error)

    def _receive(self, data: bytes) -> None:
        self._waiting.append(data)
        if not self._naps and self is self._link.client and self._link.is_slow:
            self._naps = True
            self._loop.call_later(self._link.pause(), self._wake, context=self.process.context)
        self._hand_over()

    def _wake(self) -> None:
        self._naps = False
        self._hand_over()

    def _hand_over(self) -> None:
        if self._naps:
            return
        while self._waiting and not self._is_paused and not self._is_closing:
            data = self._waiting.pop(0)
            self._n_waiting -= len(data)
            self._protocol.data_received(data)
        if self._holds_writer and self._n_waiting <= HIGH_WATER_BYTES // 4:
            self._holds_writer = False
            if not self.peer._is_closing and not self.peer.process.is_dead:
                self.peer._call_soon(self.peer._protocol.resume_writing)
        if self._has_other_closed and not self._waiting:
            self._other_closed()

    def _other_closed(self) -> None:
        self._has_other_closed = True
        if not self._is_closing and not self._waiting:  # what was sent before is read first
            self._protocol.eof_received()
            self._is_closing = True
            self._end(None)

    def _end(self, error: Exception | None) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._protocol.connection_lost(error)

    def _call_soon(self, callback: Callable[..., Any], *args: Any) -> None:
        self._loop.call_soon(callback, *args, context=self.process.context)


class _NoSocket:
    """Takes the options that sockets take."""

    family = -1

    def setsockopt(self, *args: Any) -> None:
        """Do nothing."""


def _reply(status: int, body: bytes, kind: str, more: str = "") -> bytes:
    head = f"HTTP/1.1 {status} Whatever\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


def _refusal(status: int, chance: random.Random) -> bytes:
    reason = _STATUSES[status]
    body = f'{{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"{reason}","message":"by chance","code":{status}}}'
    retry = "Retry-After: 1\r\n" if status in (429, 503) and chance.random() < 0.5 else ""
    return _reply(status, body.encode(), "application/json", retry)
