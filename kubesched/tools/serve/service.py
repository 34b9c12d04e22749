"""The service: whose question goes to which process, in whose turn, until when; the same for HTTP and gRPC.

In: a caller, a call, its body as JSON, a deadline. Out: a reply, or a `Refusal`. Bodies are not looked into here: the process
that keeps the cluster reads them.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from kubesched.tools.serve.metrics import ServeMetrics
from kubesched.tools.serve.solvers import LiveSolver, Nursery, Sessions, Solver, no_session
from kubesched.tools.serve.turns import Turns
from kubesched.tools.serve.wire import INVALID, LATE, UNAVAILABLE, Refusal, Reply

FITS, EXPLAIN, PLACE, WHAT_IF, CHEAPEST_NODES = "fits", "explain", "place", "what-if", "cheapest-nodes"
WATCH = "watch"
CALLS = (FITS, PLACE, WHAT_IF, CHEAPEST_NODES, EXPLAIN)
"""The calls that are answered once, by the names that they have in a path."""
_QUICK = frozenset({FITS, EXPLAIN})
_QUICK_BYTES = 1 << 16
"""A longer body is answered in a fork, whatever it asks."""
_SLOW_FOR_SECONDS = 10.0
_MOST_SLOW = 1024
_MOST_NAME = 253
_IN_FLIGHT = 4
"""Questions that the follower has before it: it is never idle while one waits, and nobody's turn is far away."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What callers may take."""

    most_seconds: float = 30.0
    """A deadline that is further away, or none, becomes this one."""
    most_bytes: int = 64 << 20
    """Of a body."""
    most_waiting: int = 64
    """Questions of one caller."""
    quick_seconds: float = 0.02
    """Of CPU time. A caller whose question took more in the follower is answered in forks for a while."""
    forks: int = 8
    forks_each: int = 2
    fork_bytes: int = 1 << 30
    sessions: int = 16
    sessions_each: int = 4
    session_bytes: int = 1 << 30
    session_idle_seconds: float = 600.0
    watches: int = 1000
    watches_each: int = 100
    watch_every_seconds: float = 0.5


class Service:
    """Answers callers."""

    def __init__(self, nursery: Nursery, limits: Limits, *, follows: bool = True, is_open: bool = False) -> None:
        self.limits, self.nursery = limits, nursery
        self.is_open = is_open
        """Whether nobody has to say who they are: then every connection is a caller of its own, and sessions are
        everybody's."""
        self.metrics = ServeMetrics()
        self.follows = follows
        """Whether there is a live cluster; without one there are sessions only."""
        self.live = LiveSolver(nursery, self.metrics.restarted)
        self.sessions = Sessions(
            nursery, limits.sessions, limits.sessions_each, limits.session_bytes, limits.session_idle_seconds
        )
        self._quick = Turns(_IN_FLIGHT, _IN_FLIGHT // 2, limits.most_waiting)
        self._forks = Turns(limits.forks, limits.forks_each, limits.most_waiting)
        self._in_sessions = Turns(2 * limits.sessions, 2, limits.most_waiting)
        self._watches = Turns(limits.watches, limits.watches_each, 0, "watches")
        self._slow_until: OrderedDict[str, float] = OrderedDict()
        self.metrics.watch(
            sessions=lambda: len(self.sessions),
            waiting=lambda: self._quick.n_waiting + self._forks.n_waiting,
            ready=lambda: self.is_ready,
        )

    @property
    def is_ready(self) -> bool:
        """Return whether questions about the live cluster are answered."""
        return self.live.is_ready or not self.follows

    async def run(self) -> None:
        """Follow the live cluster and let sessions expire, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.sessions.expire())
            if self.follows:
                tasks.create_task(self.live.run())

    async def ask(
        self, caller: str, call: str, body: bytes, *, session: str = "", seconds: float | None = None, seen: int = -1
    ) -> Reply:
        """Return the answer to a question; raise `Refusal`."""
        began = time.monotonic()
        code = UNAVAILABLE  # of a caller that hung up
        try:
            reply = _answer(await self._asked(caller, call, body, session, self.deadline(seconds), seen))
            code = ""
            return reply
        except Refusal as error:
            code = error.code
            raise
        finally:
            self.metrics.answered(call, code, time.monotonic() - began)

    def deadline(self, seconds: float | None) -> float:
        """Return how long a caller will wait at most."""
        return self.limits.most_seconds if seconds is None else min(max(seconds, 0.0), self.limits.most_seconds)

    async def _asked(self, caller: str, call: str, body: bytes, session: str, seconds: float, seen: int) -> Reply:
        if len(body) > self.limits.most_bytes:
            raise Refusal(INVALID, f"the question has {len(body)} bytes, at most {self.limits.most_bytes} are read")
        solver = self._solver(caller, session)
        is_quick = call in _QUICK and len(body) <= _QUICK_BYTES and not self._is_slow(caller)
        turns = self._forks if not is_quick else self._in_sessions if session else self._quick
        ends = time.monotonic() + seconds
        try:
            async with asyncio.timeout(seconds), contextlib.AsyncExitStack() as held:
                await held.enter_async_context(turns.of(caller))
                left = max(ends - time.monotonic(), 0.001)
                if not is_quick:
                    self.metrics.forked()
                    return await solver.ask_apart(call, body, left, self.limits.fork_bytes)
                reply = await solver.ask(call, body, left, seen)
        except TimeoutError:
            raise Refusal(LATE, f"not answered within {seconds:g} s") from None
        if reply.seconds > self.limits.quick_seconds and not session:
            self._note_slow(caller)
        return reply

    def drop_session(self, caller: str, name: str) -> None:
        """End a session; raise `Refusal` if it is not there."""
        if not self.sessions.drop(self._owner(caller), name):
            raise no_session(name)

    def idle_seconds(self, caller: str, name: str) -> float:
        """Return after how long without a call a session expires."""
        return self.sessions.idle_seconds(self._owner(caller), name)

    def _owner(self, caller: str) -> str:
        return "" if self.is_open else caller

    def _solver(self, caller: str, session: str) -> Solver:
        if session:
            return self.sessions.get(self._owner(caller), session)
        if not self.follows:
            raise Refusal(INVALID, "session: no cluster is followed here, so a question names a session")
        return self.live.get()

    def _is_slow(self, caller: str) -> bool:
        until = self._slow_until.get(caller)
        return until is not None and time.monotonic() < until

    def _note_slow(self, caller: str) -> None:
        self._slow_until[caller] = time.monotonic() + _SLOW_FOR_SECONDS
        self._slow_until.move_to_end(caller)
        if len(self._slow_until) > _MOST_SLOW:
            self._slow_until.popitem(last=False)

    async def watch(
        self, caller: str, body: bytes, session: str = "", *, is_gone: Callable[[], bool] = lambda: False
    ) -> AsyncIterator[Reply]:
        """Yield the answer of `fits`, and again whenever it is another one, until the caller is gone."""
        async with self._watches.of(caller):
            seen, last = -1, b""
            while not is_gone():
                reply = await self.ask(caller, FITS, body, session=session, seen=seen)
                seen = reply.revision
                if reply.body and reply.body != last:
                    last = reply.body
                    yield reply
                await asyncio.sleep(self.limits.watch_every_seconds)

    async def put_session(self, caller: str, name: str, objects: bytes, idle_seconds: float = 0.0) -> Reply:
        """Begin a session."""
        if not 0 < len(name) <= _MOST_NAME:
            raise Refusal(INVALID, f"session: a name has 1 to {_MOST_NAME} characters, found {len(name)}")
        if len(objects) > self.limits.most_bytes:
            raise Refusal(INVALID, f"objects: found {len(objects)} bytes, at most {self.limits.most_bytes} are read")
        try:
            async with asyncio.timeout(self.limits.most_seconds), self._forks.of(caller):
                solver = await self.sessions.put(self._owner(caller), name, objects, idle_seconds)
        except TimeoutError:
            raise Refusal(LATE, f"session {name}: not there within {self.limits.most_seconds:g} s") from None
        return _answer(await solver.ask("sizes", b"", self.limits.most_seconds))

    async def change_session(self, caller: str, name: str, changes: bytes) -> Reply:
        """Apply deltas to a session."""
        if len(changes) > self.limits.most_bytes:
            raise Refusal(INVALID, f"the deltas have {len(changes)} bytes, at most {self.limits.most_bytes} are read")
        async with self._in_sessions.of(caller):
            session = self.sessions.get(self._owner(caller), name)
            return _answer(await session.ask("change", changes, self.limits.most_seconds))


def _answer(reply: Reply) -> Reply:
    """Return a reply that is an answer; raise `Refusal` for one that is not."""
    if reply.code:
        raise Refusal(reply.code, reply.body.decode())
    return reply
