"""Processes that share one virtual event loop, and can be stopped, continued and killed like real ones.

In: coroutines, each started in the name of a process. Out: their callbacks, in order, in virtual time. Whatever a process
starts belongs to it too, because tasks and timers inherit the context in which they are made. A frozen process runs
nothing, while time goes on, as after SIGSTOP. A killed one never runs again, not even its `finally`, as after SIGKILL.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import random
from collections.abc import Callable, Coroutine
from typing import Any

from kubesched.tools.simulation.clock import EPOCH, VirtualLoop

MOST_STEPS = 100_000
"""Thirty times what half a minute of a small cluster takes."""

_KNOCKED = object()
_current: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


def current_process() -> Process:
    """Return the process whose code is running."""
    process = _current.get()
    assert process is not None
    return process


class TooBusy(Exception):
    """More happens than can be needed."""


class Process:
    """One of the processes."""

    def __init__(self, loop: ProcessLoop, name: str, seed: str) -> None:
        self.name = name
        self.chance = random.Random(f"{seed}/{name}")
        self.is_dead = False
        self.clock_offset = 0.0
        """Seconds by which this process's wall clock is wrong."""
        self.sabotage: Callable[[str], bool] = lambda kind: False
        """Whether a plugin, or an extender, of this process does harm now."""
        self._steps_left: int | None = None
        self._stop: Callable[[], None] = lambda: None
        self.waited_seconds = 0.0
        """How long the thread that has just run would have waited for others."""
        self._loop = loop
        self.context = contextvars.copy_context()
        self.context.run(_current.set, self)
        self.is_free = True
        """Whether its callbacks run without a question: it is neither dead nor frozen nor about to be."""
        self._is_frozen = False
        self._held: list[asyncio.Handle] = []
        self._graveyard: list[Any] = []
        loop.processes.append(self)

    def start(self, coroutine: Coroutine[Any, Any, Any], name: str = "") -> asyncio.Task[Any]:
        """Run a coroutine as this process."""
        task = self._loop.create_task(coroutine, name=name or self.name, context=self.context)
        self._graveyard.append(task)
        return task

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function as this process, now."""
        return self.context.run(function, *args)

    def freeze(self) -> None:
        """Run nothing until `thaw`."""
        self._is_frozen, self.is_free = True, False

    def thaw(self) -> None:
        """Go on, with everything that has become due meanwhile."""
        self._is_frozen = False
        self.is_free = not self.is_dead and self._steps_left is None
        held, self._held = self._held, []
        self._loop.resume(held)

    def stop_in(self, n_steps: int, stop: Callable[[], None]) -> None:
        """Call `stop`, which kills or freezes, in the place of one of the next steps: in the middle of whatever is done just
        then. A moment by the clock would mostly find everybody idle."""
        self._steps_left, self._stop, self.is_free = n_steps, stop, False

    def kill(self) -> None:
        """End without a word."""
        self.is_dead, self.is_free = True, False
        self._held.clear()

    def may_run(self, handle: asyncio.Handle) -> bool:
        """Return whether a callback may run now; one that may not is kept, unless the process is dead."""
        if self.is_dead:
            # Whoever waits in there may not learn that nobody will ever call: unwinding would run its `finally`.
            self._graveyard.append(handle)
            return False
        if self._is_frozen:
            self._held.append(handle)
            return False
        if self._steps_left is not None:
            self._steps_left -= 1
            if self._steps_left < 0:
                self._steps_left = None
                self.is_free = not self._is_frozen
                self._loop.outside.run(self._stop)
                return self.may_run(handle)
        return True

    # The clock that this process is handed

    def now(self) -> float:
        """Return what its wall clock shows."""
        return EPOCH + self._loop.time() + self.clock_offset

    def monotonic(self) -> float:
        """Return seconds that never go backwards."""
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Run `callback` once, `delay_seconds` from now."""
        return self._loop.call_later(delay_seconds, callback, context=self.context)


class _Handle(asyncio.TimerHandle):
    """What asyncio's own handles do when nobody debugs, for callbacks and timers: there are thousands of them a run."""

    __slots__ = ("process",)

    def __init__(
        self, callback: Any, args: Any, loop: ProcessLoop, context: contextvars.Context | None, when: float = 0.0
    ) -> None:
        self._context = context = contextvars.copy_context() if context is None else context
        self._loop, self._callback, self._args = loop, callback, args
        self._cancelled, self._repr, self._source_traceback = False, None, None
        self._when, self._scheduled = when, True
        self.process = context.get(_current)

    def cancel(self) -> None:
        self._cancelled, self._callback, self._args = True, None, None


class ProcessLoop(VirtualLoop):
    """A virtual loop that asks a callback's process before it runs it. Connections go through `network`, threads are none."""

    def __init__(self) -> None:
        super().__init__()
        self.network: Any = None
        self.processes: list[Process] = []
        self.is_over = False
        """Whether the run has ended: nothing is started any more."""
        self.outside = contextvars.copy_context()
        """The context of the world itself, which belongs to no process."""
        self._timers: list[tuple[float, int, _Handle]] = []
        self._n_timers = self._n_steps = 0

    def call_soon(self, callback: Any, *args: Any, context: contextvars.Context | None = None) -> asyncio.Handle:
        """Queue a callback of the calling process."""
        handle = _Handle(callback, args, self, context)
        if not self.is_over:
            self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon
    """There are no threads."""

    def call_later(
        self, delay: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Arm a timer of the calling process."""
        return self.call_at(self._virtual_seconds + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Arm a timer of the calling process. Of two for the same moment the first comes first."""
        handle = _Handle(callback, args, self, context, when)
        self._n_timers += 1
        heapq.heappush(self._timers, (when, self._n_timers, handle))
        return handle

    def _run_once(self) -> None:
        """Run what is due; let time pass to the next timer when nothing is. No socket and no thread is ever waited for."""
        ready, timers = self._ready, self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not ready and not self._stopping:
            if not timers:
                raise RuntimeError("everything waits for something that will never happen")
            self._virtual_seconds = max(self._virtual_seconds, timers[0][0])
        while timers and timers[0][0] <= self._virtual_seconds:
            ready.append(heapq.heappop(timers)[2])
        self._n_steps += len(ready)
        if self._n_steps > MOST_STEPS:
            raise TooBusy(f"{MOST_STEPS} steps in {self._virtual_seconds:.0f} seconds: somebody goes in circles")
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                process = handle.process
                if process is None or process.is_free or process.may_run(handle):
                    handle._run()

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Run a function at once, and let its caller know after as long as it says to have waited for others."""
        process, future = current_process(), self.create_future()
        process.waited_seconds = 0.0
        try:
            result, error = func(*args), None
        except Exception as raised:
            result, error = None, raised

        def tell() -> None:
            if not future.cancelled():
                future.set_result(result) if error is None else future.set_exception(error)

        self.call_later(process.waited_seconds, tell)
        return future

    def end(self) -> None:
        """Forget everything that was to happen: nothing of it is of interest any more, nor what it says about that."""
        self.is_over = True
        self.set_exception_handler(lambda _, context: None)
        for process in self.processes:
            process.kill()
        self._ready.clear()
        self._timers.clear()
        self.processes.clear()
        self.close()

    def resume(self, handles: list[asyncio.Handle]) -> None:
        """Queue callbacks again that were held back; those that were cancelled meanwhile the loop leaves out itself."""
        self._ready.extend(handles)

    async def knock(self, *args: Any, **kwargs: Any) -> object:
        """Knock at the server, and return what stands for a socket: opening a real one for every connection costs time."""
        await self.network.dial(_current.get())
        return _KNOCKED

    async def create_connection(self, protocol_factory: Any, *args: Any, sock: Any = None, **kwargs: Any) -> Any:
        """Connect the calling process with the server."""
        process = _current.get()
        if sock is not _KNOCKED:
            await self.network.dial(process)
        return self.network.connect(process, protocol_factory)
