"""/debug/pprof: the profiles by HTTP.

    /debug/pprof/                      what there is
    /debug/pprof/profile?seconds=30    processor time     /debug/pprof/heap?seconds=10    memory
    /debug/pprof/goroutine?debug=2     tasks and threads  /debug/pprof/block?seconds=10   what held the event loop up
    /debug/pprof/trace?seconds=1       a timeline         /debug/pprof/cmdline            how we were started
    /debug/pprof/symbol                no names of addresses: there are none

`format` is svg (what a browser gets), pprof (what others get), collapsed or text; `debug=1` is text as well.
Measuring runs on a thread of its own, one at a time, and ends when the request does.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from aiohttp import web

from kubesched.server.web.profiling import memory, rendering, sampling
from kubesched.server.web.profiling.stacks import Profile, dump_tasks, profile_tasks
from kubesched.server.web.responses import NO_SNIFF, plain

ROOT = "/debug/pprof"
MOST_SECONDS = 600.0  # of one measurement
FORMATS = ("svg", "pprof", "collapsed", "text")
Result = TypeVar("Result")
Page = Callable[[web.Request], Awaitable[web.StreamResponse]]

_INDEX = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{root}/</title></head>
<body style="font-family: monospace">
<h1>{root}/</h1>
<p>Add <code>&amp;format=svg</code>, <code>pprof</code>, <code>collapsed</code> or <code>text</code>.
<code>go tool pprof</code> reads the pprof format.</p>
<table>
{rows}
</table>
</body></html>
"""


class ProfilingPages:
    """The pages. `has_contention` is enableContentionProfiling."""

    def __init__(self, *, has_contention: bool = True) -> None:
        self._measuring = asyncio.Lock()
        self._pages: dict[str, tuple[Page, str, str]] = {
            "profile": (self._cpu, "?seconds=10", "where processor time goes"),
            "heap": (self._heap, "?seconds=10", "what is allocated meanwhile and still held"),
            "goroutine": (self._tasks, "?debug=2", "what every task and thread is doing"),
            "trace": (self._trace, "?seconds=1", "the event loop's calls over time, for Perfetto or chrome://tracing"),
            "cmdline": (self._cmdline, "", "how this process was started"),
            "symbol": (self._symbol, "", "names of addresses: none, as profiles carry their names"),
        }
        if has_contention:
            self._pages["block"] = (self._stalls, "?seconds=10", "what held the event loop up for more than 10 ms")

    async def index(self, _: web.Request) -> web.Response:
        """List the profiles."""
        rows = [
            f'<tr><td><a href="{ROOT}/{name}{query}">{name}</a></td><td>{text}</td></tr>'
            for name, (_, query, text) in sorted(self._pages.items())
        ]
        page = _INDEX.format(root=ROOT, rows="\n".join(rows))
        return web.Response(text=page, content_type="text/html", charset="utf-8", headers=NO_SNIFF)

    async def page(self, request: web.Request) -> web.StreamResponse:
        """Answer with one profile."""
        found = self._pages.get(request.match_info["profile"])
        if found is None:
            return plain("Unknown profile", 404)
        wanted = request.query.get("format", "")
        if wanted and wanted not in FORMATS:
            return plain(f'format "{wanted}" is none of {", ".join(FORMATS)}', 400)
        return await found[0](request)

    async def _cpu(self, request: web.Request) -> web.StreamResponse:
        return await self._profiled(request, 30.0, "CPU time", sampling.sample_cpu)

    async def _heap(self, request: web.Request) -> web.StreamResponse:
        """Answer with memory; the text also counts objects by type."""
        answer = await self._profiled(request, 10.0, "Memory", memory.profile_heap)
        if isinstance(answer, web.Response) and answer.content_type == "text/plain" and answer.status == 200:
            counted = "".join(f"{count:>10}  {name}\n" for name, count in memory.count_types())
            answer.text = f"{answer.text}\nobjects by type:\n{counted}"
        return answer

    async def _stalls(self, request: web.Request) -> web.StreamResponse:
        """Answer with what kept the event loop busy."""
        loop, ident = asyncio.get_running_loop(), threading.get_ident()

        def measure(seconds: float, stop: threading.Event) -> Profile:
            return sampling.sample_stalls(seconds, loop, ident, stop)

        return await self._profiled(request, 10.0, "Event loop held up", measure)

    async def _tasks(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("debug") == "2":
            return plain(dump_tasks())
        return _shown(request, profile_tasks(), "Tasks and threads")

    async def _trace(self, request: web.Request) -> web.StreamResponse:
        """Answer with a timeline, as a file for Perfetto."""
        seconds = _seconds(request, 1.0)
        if isinstance(seconds, web.Response):
            return seconds
        ident = threading.get_ident()
        seen = await self._measure(lambda stop: sampling.sample_timeline(seconds, ident, stop))
        if isinstance(seen, web.Response):
            return seen
        headers = {**NO_SNIFF, "Content-Disposition": 'attachment; filename="trace.json"'}
        return web.Response(text=rendering.trace_events(seen), content_type="application/json", headers=headers)

    async def _cmdline(self, _: web.Request) -> web.StreamResponse:
        return plain("\x00".join(sys.orig_argv))

    async def _symbol(self, _: web.Request) -> web.StreamResponse:
        return plain("num_symbols: 0\n")  # all that pprof reads before it asks further

    async def _profiled(
        self, request: web.Request, default: float, title: str, measure: Callable[[float, threading.Event], Profile]
    ) -> web.StreamResponse:
        """Measure for the time that the request asks for, and answer with the profile."""
        seconds = _seconds(request, default)
        if isinstance(seconds, web.Response):
            return seconds
        profile = await self._measure(partial(measure, seconds))
        return profile if isinstance(profile, web.Response) else _shown(request, profile, title)

    async def _measure(self, measure: Callable[[threading.Event], Result]) -> Result | web.Response:
        """Measure on a thread. Only one measurement runs at a time, as in Go; it ends when the request does."""
        if self._measuring.locked():
            return plain("Could not enable profiling: profiling already in use", 500)
        stop = threading.Event()
        async with self._measuring:
            try:
                return await asyncio.to_thread(measure, stop)
            finally:
                stop.set()


def _seconds(request: web.Request, default: float) -> float | web.Response:
    """Return how long to measure, or the refusal of a wrong number."""
    text = request.query.get("seconds", "")
    try:
        seconds = float(text) if text else default
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= MOST_SECONDS:
        return plain(f'seconds "{text}" is no number between 0 and {MOST_SECONDS:g}', 400)
    return seconds


def _shown(request: web.Request, profile: Profile, title: str) -> web.Response:
    """Return a profile in the wanted form; without one a browser gets a picture, `go tool pprof` its own format."""
    wanted = request.query.get("format", "")
    if not wanted:
        is_browser = "text/html" in request.headers.get("Accept", "")
        wanted = "text" if request.query.get("debug", "0") != "0" else "svg" if is_browser else "pprof"
    if wanted == "svg":
        graph = rendering.flame_graph(profile, title)
        return web.Response(text=graph, content_type="image/svg+xml", charset="utf-8", headers=NO_SNIFF)
    if wanted == "pprof":
        headers = {**NO_SNIFF, "Content-Disposition": 'attachment; filename="profile"'}
        return web.Response(body=rendering.pprof(profile), content_type="application/octet-stream", headers=headers)
    return plain(rendering.collapsed(profile) if wanted == "collapsed" else rendering.table(profile))
