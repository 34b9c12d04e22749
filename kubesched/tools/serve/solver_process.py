"""A process that answers questions about one cluster: the live one, which it follows, or that of a session.

    nursery --fork--> follower of the live cluster --fork--> one question
            --fork--> session                      --fork--> one question

The nursery is forked off before the service starts a thread or opens a port, with everything imported; it only forks. The other
processes are forks of it, so they start in milliseconds and share its memory until they write to it. A question that takes a
moment (`Fits`, of most pods) is answered where the cluster is kept. One that may take long is answered in a fork, which has the
cluster as it was at that instant, copied on write: it may be killed at its deadline, may not take more memory than it is
granted, and keeps nobody waiting. None of these processes has a thread or an open port.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, Protocol

from kubesched.errors import SchedulerError
from kubesched.scheduler.engine import await_the_list, spare_the_collector
from kubesched.tools.serve.wire import EXHAUSTED, INTERNAL, INVALID, Ask, Become, Reply, frame, read, read_blocking

log = logging.getLogger(__name__)

LONGEST_INLINE_SECONDS = 5
"""A question that blocks the follower for longer ends it; the service starts another one."""
_GRACE_SECONDS = 0.05
_MOST_FILES = 1 << 20
_NICENESS = 5
"""How far forks stand back behind the process that follows the cluster."""


class Answering(Protocol):
    """A cluster that can be asked."""

    @property
    def revision(self) -> int:
        """Return how many changes it has seen."""
        ...

    def answer(self, call: str, body: bytes) -> bytes:
        """Return the answer as JSON; raise Refusal or SchedulerError."""
        ...


class Opening(Protocol):
    """Makes clusters; runs in the process that is to keep the cluster."""

    def session(self, objects: bytes) -> Answering:
        """Return a cluster of objects that a caller sent."""
        ...

    async def follow(self, ready: Callable[[Answering], Awaitable[None]]) -> None:
        """Follow the live cluster until cancelled; `ready` is called when the first lists are in."""
        ...


def start_nursery(opening: Opening, listener: socket.socket, lifeline: int, other_end: int) -> int:
    """Fork the nursery off and return its process id. It ends when the other end of the lifeline is closed."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.close(other_end)
        _nurse(opening, listener, lifeline)
    finally:
        os._exit(0)


def _nurse(opening: Opening, listener: socket.socket, lifeline: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the service says when it is over
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    while lifeline not in (ready := select.select([listener.fileno(), lifeline], [], [])[0]):
        if ready:
            sock, _ = listener.accept()
            if not os.fork():
                listener.close()
                os.close(lifeline)
                _be(opening, sock)
            sock.close()
    # The service cannot do this if it was killed.
    shutil.rmtree(Path(listener.getsockname()).parent, ignore_errors=True)


def _be(opening: Opening, sock: socket.socket) -> NoReturn:
    """Be what the first frame says, until the service hangs up."""
    try:
        if (asked := read_blocking(sock, Become)) is not None:
            _bound_memory(asked.most_bytes)
            asyncio.run(SolverProcess(opening, sock).run(asked))
    except MemoryError:
        sock.setblocking(True)
        sock.sendall(frame(Reply(0, EXHAUSTED, b"the cluster of this session does not fit into the memory that it may take")))
    except (SchedulerError, OSError) as error:
        with suppress(OSError):
            sock.setblocking(True)
            sock.sendall(frame(_refused(0, error)))
    except Exception:
        log.exception("a solver process broke")
    finally:
        sys.stderr.flush()
        os._exit(0)


class SolverProcess:
    """Keeps one cluster and answers the service."""

    def __init__(self, opening: Opening, sock: socket.socket) -> None:
        self._opening, self._sock = opening, sock

    async def run(self, asked: Become) -> None:
        """Answer until the service hangs up."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(asked.path)
        listener.listen(128)
        listener.setblocking(False)
        try:
            await_the_list()
            if asked.objects:
                await self._answer_with(self._opening.session(asked.objects), listener)
            else:
                await self._opening.follow(lambda cluster: self._answer_with(cluster, listener))
        finally:
            os.unlink(asked.path)

    async def _answer_with(self, cluster: Answering, listener: socket.socket) -> None:
        spare_the_collector()
        forking = asyncio.create_task(self._fork_for_each(cluster, listener))
        reader, writer = await asyncio.open_unix_connection(sock=self._sock)
        writer.write(frame(Reply(0, revision=cluster.revision)))  # it is ready
        while (question := await read(reader, Ask)) is not None:
            signal.setitimer(signal.ITIMER_REAL, LONGEST_INLINE_SECONDS)
            writer.write(frame(answered(cluster, question)))
            signal.setitimer(signal.ITIMER_REAL, 0)
            await asyncio.sleep(0)  # the watches have their turn between two questions
        forking.cancel()
        os._exit(0)  # the service hung up

    async def _fork_for_each(self, cluster: Answering, listener: socket.socket) -> None:
        """Answer every question that comes over a connection of its own in a fork."""
        loop = asyncio.get_running_loop()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            sock, _ = await loop.sock_accept(listener)
            if not os.fork():
                _answer_one(cluster, sock)
            sock.close()


def _answer_one(cluster: Answering, sock: socket.socket) -> NoReturn:
    """Answer one question and end. The kernel ends it at its deadline, wherever it is: nobody has to notice."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, LONGEST_INLINE_SECONDS)
        for first, last in ((3, sock.fileno()), (sock.fileno() + 1, _MOST_FILES)):
            os.closerange(first, last)  # the connections of its parent, which must not seem open when that has ended
        sock.setblocking(True)
        gc.freeze()  # what is there already is not looked at again, which would copy it
        os.nice(_NICENESS)
        if (question := read_blocking(sock, Ask)) is not None:
            signal.setitimer(signal.ITIMER_REAL, question.seconds + _GRACE_SECONDS)
            _bound_memory(question.most_bytes)
            sock.sendall(frame(answered(cluster, question)))
    finally:
        os._exit(0)


def answered(cluster: Answering, question: Ask) -> Reply:
    """Return the reply to a question; whatever a caller sends, there is one."""
    began = time.thread_time()  # not the clock: on a busy machine every question would seem to be a slow one
    revision = cluster.revision
    if question.seen == revision:
        return Reply(question.number, revision=revision)
    try:
        reply = Reply(question.number, "", cluster.answer(question.call, question.body))
    except MemoryError:
        reply = Reply(question.number, EXHAUSTED, b"the question takes more memory than it is granted")
    except (SchedulerError, RecursionError) as error:
        reply = _refused(question.number, error)
    except Exception:
        log.exception("%s broke", question.call)
        reply = Reply(question.number, INTERNAL, b"the question broke the solver; its log says how")
    reply.revision, reply.seconds = revision, time.thread_time() - began
    return reply


def _refused(number: int, error: Exception) -> Reply:
    if isinstance(error, RecursionError):
        return Reply(number, INVALID, b"the question is nested too deeply")
    return Reply(number, getattr(error, "code", INVALID), str(error).encode())


def _bound_memory(most_bytes: int) -> None:
    """Let this process take so many bytes more than it has."""
    if most_bytes:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])  # data and stack
        limit = pages * resource.getpagesize() + most_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
