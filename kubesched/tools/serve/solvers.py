"""The solver processes as the service sees them: started, asked, and replaced when they end.

In: questions with a deadline. Out: replies, or a `Refusal`: too late, or nobody there. The live cluster is followed by one
process, and when that ends another one is started; a session that ends is gone, because only its caller can send it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kubesched.tools.serve.solver_process import Opening, start_nursery
from kubesched.tools.serve.wire import EXHAUSTED, LATE, NOT_FOUND, UNAVAILABLE, Ask, Become, Refusal, Reply, frame, read

log = logging.getLogger(__name__)

_PAUSES_SECONDS = (0.1, 1.0, 5.0, 30.0)
"""Before the follower is started again; the longest from the fourth time on."""
_BACKLOG = 128


class Nursery:
    """Where solver processes come from. To be made before the first thread, and before grpc is imported."""

    def __init__(self, opening: Opening) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kubesched-", ignore_cleanup_errors=True)  # for its owner alone
        self._path = f"{self._folder.name}/nursery"
        self._numbers = itertools.count()
        ours, theirs = os.pipe()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._path)
            listener.listen(_BACKLOG)
            self._lifeline = theirs
            self.pid = start_nursery(opening, listener, ours, theirs)
        os.close(ours)

    async def solver(self, objects: bytes = b"", most_bytes: int = 0) -> Solver:
        """Start a process for a session's cluster, or, without objects, one that follows the live one."""
        path = f"{self._folder.name}/{next(self._numbers)}"
        reader, writer = await asyncio.open_unix_connection(self._path)
        writer.write(frame(Become(path, objects, most_bytes)))
        await writer.drain()
        return Solver(path, reader, writer)

    def close(self) -> None:
        """End it, and all its forks."""
        os.close(self._lifeline)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self._folder.cleanup()


class Solver:
    """One solver process."""

    def __init__(self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._path, self._reader, self._writer = path, reader, writer
        self._open: dict[int, asyncio.Future[Reply]] = {}
        self._numbers = itertools.count(1)
        self.revision = 0
        self.ended = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    async def ready(self) -> None:
        """Wait until it has its cluster; raise `Refusal` for one that it cannot have."""
        first = await read(self._reader, Reply)
        if first is None:
            self.close()
            raise Refusal(EXHAUSTED, "the process ended before it had read its cluster")
        if first.code:
            self.close()
            raise Refusal(first.code, first.body.decode())
        self.revision = first.revision
        self._reading = asyncio.create_task(self._read())

    async def ask(self, call: str, body: bytes, seconds: float, seen: int = -1) -> Reply:
        """Ask the process itself; the answer comes after those to all questions before it."""
        number = next(self._numbers)
        if self.ended.is_set():
            raise _gone()
        answer = self._open[number] = asyncio.get_running_loop().create_future()
        self._writer.write(frame(Ask(number, call, body, seconds, seen)))
        try:
            return await asyncio.wait_for(answer, seconds)
        except TimeoutError:
            raise _late(seconds) from None
        finally:
            self._open.pop(number, None)

    async def ask_apart(self, call: str, body: bytes, seconds: float, most_bytes: int) -> Reply:
        """Ask a fork of the process, made for this question."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(seconds + 1.0):
                reader, writer = await asyncio.open_unix_connection(self._path)
                try:
                    writer.write(frame(Ask(0, call, body, seconds, most_bytes=most_bytes)))
                    reply = await read(reader, Reply)
                finally:
                    writer.close()
        except TimeoutError:
            raise _late(seconds) from None
        except OSError:
            raise _gone() from None
        if reply is None:  # it was killed
            if time.monotonic() - began >= seconds:
                raise _late(seconds)
            raise Refusal(EXHAUSTED, "the process for this question ended before it had an answer")
        return reply

    def close(self) -> None:
        """Hang up, by which the process ends."""
        self._writer.close()
        self._end()
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self) -> None:
        while (reply := await read(self._reader, Reply)) is not None:
            self.revision = reply.revision
            waiting = self._open.get(reply.number)
            if waiting is not None and not waiting.done():
                waiting.set_result(reply)
        self._end()

    def _end(self) -> None:
        self.ended.set()
        Path(self._path).unlink(missing_ok=True)
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_exception(_gone())


class LiveSolver:
    """The process that follows the live cluster, whichever it is now."""

    def __init__(self, nursery: Nursery, restarted: Callable[[], None]) -> None:
        self._nursery, self._restarted = nursery, restarted
        self._solver: Solver | None = None

    @property
    def is_ready(self) -> bool:
        """Return whether the first lists are in."""
        return self._solver is not None

    def get(self) -> Solver:
        """Return the process; raise `Refusal` if there is none just now."""
        if self._solver is None:
            raise Refusal(UNAVAILABLE, "the cluster has not been read yet")
        return self._solver

    async def run(self) -> None:
        """Keep one running until cancelled."""
        solver: Solver | None = None
        attempt = 0
        while True:
            began = time.monotonic()
            try:
                solver = await self._nursery.solver()
                await solver.ready()
                self._solver = solver
                await solver.ended.wait()
                log.error("the process that follows the cluster has ended; starting another one")
            except Refusal as error:
                log.error("the cluster cannot be followed: %s", error)
            finally:
                self._solver = None
                if solver is not None:
                    solver.close()
            self._restarted()
            attempt = 0 if time.monotonic() - began > _PAUSES_SECONDS[-1] else attempt + 1
            await asyncio.sleep(_PAUSES_SECONDS[min(attempt, len(_PAUSES_SECONDS) - 1)])


@dataclass(slots=True)
class _Session:
    solver: Solver
    idle_seconds: float
    used: float


class Sessions:
    """Clusters that callers described, each in a process of its own, by caller and name."""

    def __init__(self, nursery: Nursery, most: int, most_each: int, most_bytes: int, longest_idle_seconds: float) -> None:
        self._nursery = nursery
        self._most, self._most_each, self._most_bytes = most, most_each, most_bytes
        self.longest_idle_seconds = longest_idle_seconds
        self._of: dict[tuple[str, str], _Session] = {}
        self._starting = 0

    def __len__(self) -> int:
        return len(self._of) + self._starting

    async def put(self, caller: str, name: str, objects: bytes, idle_seconds: float) -> Solver:
        """Begin a session of an owner; one of the same name ends when the new one is there."""
        n_own = sum(owner == caller for owner, _ in self._of)
        is_new = (caller, name) not in self._of
        if is_new and n_own >= self._most_each:
            raise Refusal(EXHAUSTED, f"session {name}: you have {n_own} sessions, and may have {self._most_each}")
        if is_new and len(self) >= self._most:
            raise Refusal(EXHAUSTED, f"session {name}: there are {len(self)} sessions, and may be {self._most}")
        self._starting += 1
        try:
            solver = await self._nursery.solver(objects, self._most_bytes)
            try:
                await solver.ready()
            except BaseException:
                solver.close()
                raise
        finally:
            self._starting -= 1
        self.drop(caller, name)
        idle = min(idle_seconds or self.longest_idle_seconds, self.longest_idle_seconds)
        self._of[caller, name] = _Session(solver, idle, time.monotonic())
        return solver

    def get(self, caller: str, name: str) -> Solver:
        """Return the process of a session, whose time begins anew; raise `Refusal` for one that is not there."""
        session = self._of.get((caller, name))
        if session is None or session.solver.ended.is_set():
            self.drop(caller, name)
            raise no_session(name)
        session.used = time.monotonic()
        return session.solver

    def idle_seconds(self, caller: str, name: str) -> float:
        """Return after how long without a call a session expires."""
        return self._of[caller, name].idle_seconds

    def drop(self, caller: str, name: str) -> bool:
        """End a session; return whether it was there."""
        session = self._of.pop((caller, name), None)
        if session is not None:
            session.solver.close()
        return session is not None

    async def expire(self) -> None:
        """End sessions whose time is over, until cancelled."""
        while True:
            await asyncio.sleep(1.0)
            now = time.monotonic()
            for key, session in list(self._of.items()):
                if now - session.used > session.idle_seconds or session.solver.ended.is_set():
                    self.drop(*key)


def no_session(name: str) -> Refusal:
    """Return what is said of a session that is not there."""
    return Refusal(NOT_FOUND, f"session {name}: it has expired, or was never begun by you")


def _gone() -> Refusal:
    return Refusal(UNAVAILABLE, "the solver process has ended; ask again")


def _late(seconds: float) -> Refusal:
    return Refusal(LATE, f"not answered within {seconds:g} s")
