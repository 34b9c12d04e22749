"""Memory profiles: who allocated what is still held, by tracemalloc.

Tracing costs time and memory, so it runs only while a request asks for it, and shows what was allocated meanwhile and is still
held: that is how a leak looks. A process that was started with PYTHONTRACEMALLOC is traced from its start, and is shown whole
at once.
"""

from __future__ import annotations

import gc
import threading
import time
import tracemalloc
from collections import Counter

from kubesched.server.web.profiling.stacks import Frame, Profile, _short

FRAMES = 24  # of each allocation's stack
_MOST_TYPES = 30


def profile_heap(seconds: float, stop: threading.Event) -> Profile:
    """Return what was allocated and is still held. Blocks for `seconds`, unless tracing was on already."""
    was_tracing = tracemalloc.is_tracing()
    began = time.monotonic()
    profile = Profile((("objects", "count"), ("inuse_space", "bytes")), period=1, started=time.time())
    if not was_tracing:
        tracemalloc.start(FRAMES)
        stop.wait(seconds)
    try:
        snapshot = tracemalloc.take_snapshot()
    finally:
        if not was_tracing:
            tracemalloc.stop()
    own = tracemalloc.__file__
    for statistic in snapshot.statistics("traceback"):
        frames = statistic.traceback
        if frames[-1].filename == own:
            continue
        stack = tuple(Frame(_short(frame.filename), _short(frame.filename), frame.lineno) for frame in frames)
        profile.add(stack, statistic.count, statistic.size)
    profile.seconds = time.monotonic() - began
    profile.note = "since the process began" if was_tracing else f"allocated within {seconds:g} s and still held"
    return profile


def count_types() -> list[tuple[str, int]]:
    """Return the most frequent types of the objects that the garbage collector tracks."""
    counts = Counter(type(each) for each in gc.get_objects())
    return [(f"{kind.__module__}.{kind.__qualname__}", count) for kind, count in counts.most_common(_MOST_TYPES)]
