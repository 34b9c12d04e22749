"""What everybody is doing right now: all asyncio tasks and all threads with their stacks."""

from __future__ import annotations

import asyncio
import sys
import threading

from kubesched.server.web.profiling.stacks import Profile, Stack, stack_of, stack_of_awaiting


def profile_tasks() -> Profile:
    """Return how many tasks and threads are where."""
    profile = Profile((("goroutine", "count"),), period=1)
    for _, stack in _everybody():
        profile.add(stack, 1)
    return profile


def dump_tasks() -> str:
    """Return every task and thread by name, the innermost call first."""
    parts = []
    for title, stack in _everybody():
        lines = "".join(f"\t{frame}\n" for frame in reversed(stack)) or "\t(no stack)\n"
        parts.append(f"{title}:\n{lines}")
    return "\n".join(parts)


def _everybody() -> list[tuple[str, Stack]]:
    found: list[tuple[str, Stack]] = []
    current = asyncio.current_task()
    for task in sorted(asyncio.all_tasks(), key=lambda each: each.get_name()):
        state = "running" if task is current else "done" if task.done() else "waiting"
        found.append((f"task {task.get_name()} [{state}]", stack_of_awaiting(task.get_coro())))
    frames = sys._current_frames()
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        kind = ", daemon" if thread.daemon else ""
        found.append((f"thread {thread.name} [{thread.ident}{kind}]", stack_of(frame)))
    return found
