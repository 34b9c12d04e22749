"""Stacks with weights, the common form of all profiles; and the current stacks of all tasks and threads.

A frame is a function in a file at a line. A stack lists frames from the outermost to the innermost. A profile counts stacks in
one or more units (samples and nanoseconds, objects and bytes).
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, NamedTuple

MOST_FRAMES = 128


class Frame(NamedTuple):
    """A call in progress."""

    function: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.function} ({self.file}:{self.line})"


Stack = tuple[Frame, ...]


@dataclass(slots=True)
class Profile:
    """Weights by stack, one for each unit. The pictures show the last one."""

    units: tuple[tuple[str, str], ...]  # name and unit, as ("cpu", "nanoseconds")
    stacks: dict[Stack, list[int]] = field(default_factory=dict)
    seconds: float = 0.0
    period: int = 0
    started: float = 0.0
    note: str = ""

    def add(self, stack: Stack, *weights: int) -> None:
        """Count a stack."""
        counted = self.stacks.get(stack)
        if counted is None:
            self.stacks[stack] = list(weights)
        else:
            for index, weight in enumerate(weights):
                counted[index] += weight

    @property
    def total(self) -> int:
        """Return the sum of the weights that the pictures show."""
        return sum(weights[-1] for weights in self.stacks.values())


def stack_of(frame: FrameType | None, names: dict[CodeType, str] | None = None) -> Stack:
    """Return the stack of a thread; `names` caches the names of functions between calls."""
    known = {} if names is None else names
    found: list[Frame] = []
    while frame is not None and len(found) < MOST_FRAMES:
        code = frame.f_code
        name = known.get(code)
        if name is None:
            name = known[code] = _name_of(frame)
        found.append(Frame(name, _short(code.co_filename), frame.f_lineno))
        frame = frame.f_back
    return tuple(reversed(found))


def stack_of_awaiting(coroutine: Any) -> Stack:
    """Return the stack of a suspended coroutine: itself, then what it awaits, down to the innermost."""
    found: list[Frame] = []
    for frame in _awaited(coroutine):
        found.append(Frame(_name_of(frame), _short(frame.f_code.co_filename), frame.f_lineno))
    return tuple(found)


def _awaited(coroutine: Any) -> Iterator[FrameType]:
    """Yield the frames of a coroutine and of what it awaits."""
    for _ in range(MOST_FRAMES):
        for prefix in ("cr", "gi", "ag"):
            frame = getattr(coroutine, f"{prefix}_frame", None)
            if frame is not None:
                yield frame
                awaits = "cr_await" if prefix == "cr" else "gi_yieldfrom" if prefix == "gi" else "ag_await"
                coroutine = getattr(coroutine, awaits)
                break
        else:
            return


def _name_of(frame: FrameType) -> str:
    module = frame.f_globals.get("__name__", "?")
    code = frame.f_code
    return f"{module}.{code.co_qualname}"


def _short(file: str) -> str:
    """Return a file name from its package on, the same on every machine."""
    for mark in ("/site-packages/", "/lib/python"):
        _, found, rest = file.rpartition(mark)
        if found:
            return rest if mark == "/site-packages/" else rest.partition("/")[2]
    _, found, rest = file.rpartition("/kubesched/")
    return f"kubesched/{rest}" if found else file.rpartition("/")[2]


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
    """Return all tasks and threads with their stacks."""
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
