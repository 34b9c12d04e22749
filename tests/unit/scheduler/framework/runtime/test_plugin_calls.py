"""Calls of plugins that somebody waits for."""

from __future__ import annotations

import asyncio
import gc
import warnings

from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.runtime.plugin_calls import PluginCalls


def test_a_call_that_never_began_because_its_loop_was_dropped_is_dropped_without_a_word() -> None:
    async def answer() -> None:
        raise AssertionError("nobody runs this")

    calls, loop = object.__new__(PluginCalls), asyncio.new_event_loop()
    waiting = calls._await("PreBind", object.__new__(Plugin), answer)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio._set_running_loop(loop)
        try:
            waiting.send(None)
        finally:
            asyncio._set_running_loop(None)
        loop.close()
        waiting.close()
        del waiting, loop
        gc.collect()
    assert [str(one.message) for one in told if "never awaited" in str(one.message)] == []
