"""Sampling: a thread that looks at the stacks of the others many times a second.

CPU: each thread's own clock says how much time it used since the last look, and its stack gets that time. Stalls: the event
loop is asked to answer; while it is late, the stack of its thread is what blocks it. Timeline: the stack of the loop over
time. The sampler needs the interpreter lock, so a C call that holds it is seen when it ends, and its time goes to that line.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from types import CodeType

from kubesched.server.web.profiling.stacks import Frame, Profile, Stack, stack_of

HERTZ = 100  # looks a second, as in Go
STALL_SECONDS = 0.01
STALLS_HERTZ, TIMELINE_HERTZ = 200, 1000


def sample_cpu(seconds: float, stop: threading.Event, hertz: int = HERTZ) -> Profile:
    """Return where processor time went. Blocks: run it on a thread of its own."""
    units = (("samples", "count"), ("cpu", "nanoseconds"))
    profile = Profile(units, period=1_000_000_000 // hertz, started=time.time())
    names: dict[CodeType, str] = {}
    used: dict[int, int] = {}
    me = threading.get_ident()
    began = time.monotonic()
    for ident in sys._current_frames():
        used[ident] = _thread_nanoseconds(ident)
    while (left := began + seconds - time.monotonic()) > 0 and not stop.wait(min(1 / hertz, left)):
        for ident, frame in sys._current_frames().items():
            if ident == me:
                continue
            now = _thread_nanoseconds(ident)
            spent = now - used.get(ident, now)
            used[ident] = now
            if spent > 0:
                profile.add(stack_of(frame, names), 1, spent)
    profile.seconds = time.monotonic() - began
    return profile


def sample_stalls(seconds: float, loop: asyncio.AbstractEventLoop, ident: int, stop: threading.Event) -> Profile:
    """Return what kept the event loop from answering for more than ten milliseconds. Blocks."""
    units = (("stalls", "count"), ("delay", "nanoseconds"))
    profile = Profile(units, period=1_000_000_000 // STALLS_HERTZ, started=time.time())
    names: dict[CodeType, str] = {}
    began = last = time.monotonic()
    answered = threading.Event()
    answered.set()
    asked_at = began
    while (left := began + seconds - time.monotonic()) > 0 and not stop.wait(min(1 / STALLS_HERTZ, left)):
        now = time.monotonic()
        if answered.is_set():
            answered.clear()
            asked_at = now
            loop.call_soon_threadsafe(answered.set)
        elif now - asked_at > STALL_SECONDS:
            frame = sys._current_frames().get(ident)
            if frame is not None:
                profile.add(stack_of(frame, names), 1, int((now - last) * 1e9))
        last = now
    profile.seconds = time.monotonic() - began
    return profile


def sample_timeline(seconds: float, ident: int, stop: threading.Event) -> list[tuple[float, Stack]]:
    """Return each new stack of a thread, with the second at which it was first seen. Blocks."""
    names: dict[CodeType, str] = {}
    seen: list[tuple[float, Stack]] = []
    began = time.monotonic()
    while (left := began + seconds - time.monotonic()) > 0 and not stop.wait(min(1 / TIMELINE_HERTZ, left)):
        frame = sys._current_frames().get(ident)
        stack = tuple(Frame(each.function, each.file, 0) for each in stack_of(frame, names))
        if not seen or seen[-1][1] != stack:
            seen.append((time.monotonic() - began, stack))
    seen.append((time.monotonic() - began, ()))
    return seen


def _thread_nanoseconds(ident: int) -> int:
    """Return how much processor time a thread has used so far; 0 if it has just ended."""
    try:
        return time.clock_gettime_ns(time.pthread_getcpuclockid(ident))
    except OSError:
        return 0
