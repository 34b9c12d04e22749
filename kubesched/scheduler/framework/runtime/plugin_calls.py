"""How plugins are called: every call is timed, and ends in an answer or in a `PluginError` that names the plugin.

In: a plugin, one of its methods, arguments. Out: the checked answer. `call` times a single plugin, `reported` a whole extension
point. If nothing observes the profile, no clock is read. A coroutine of a plugin runs in a task of its own, so that the plugin
cannot cancel ours. The three classes with the extension points are built on this one.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

from kubesched.errors import PluginError
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.runtime.blame import blamed, misanswered, raised
from kubesched.scheduler.framework.verdicts import SUCCESS, Code, Status

FollowUp = Callable[[], Awaitable[None]]

PointObserver = Callable[[str, str, str, float], None]
"""(extension point, plugin or "" for the whole point, status code's text, seconds)"""

CANCEL_SECONDS = 5.0
"""How long a cancelled plugin may take to end."""

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound="PluginCalls")


def reported(
    point: str, status_text: Callable[[Any], str] = lambda answer: SUCCESS.code.text
) -> Callable[[Callable[Concatenate[C, P], R]], Callable[Concatenate[C, P], R]]:
    """Decorate a method that runs a whole extension point: its duration and its status are reported to the observer."""

    def around(run: Callable[Concatenate[C, P], R]) -> Callable[Concatenate[C, P], R]:
        @functools.wraps(run)
        def run_reported(self: C, /, *args: P.args, **kwargs: P.kwargs) -> R:
            observe = self.observe
            if observe is None:
                return run(self, *args, **kwargs)
            # ERROR until the answer is there: a point that raises is reported with that status.
            started, text = time.perf_counter(), Code.ERROR.text
            try:
                answer = run(self, *args, **kwargs)
                text = status_text(answer)
                return answer
            finally:
                observe(point, "", text, time.perf_counter() - started)

        return run_reported

    return around


class PluginCalls:
    """The plugins of a profile by extension point, and how they are called."""

    def __init__(self, points: Mapping[str, Sequence[tuple[Plugin, int]]]) -> None:
        self.points = {point: tuple(entries) for point, entries in points.items()}
        self.observe: PointObserver | None = None

    def _at(self, point: str) -> tuple[Plugin, ...]:
        return tuple(plugin for plugin, _ in self.points.get(point, ()))

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """Return every plugin once, in the order of its first appearance."""
        return tuple(dict.fromkeys(plugin for entries in self.points.values() for plugin, _ in entries))

    @contextmanager
    def unobserved(self) -> Iterator[None]:
        """Report nothing during a `with` block: metrics are about real attempts only."""
        observe, self.observe = self.observe, None
        try:
            yield
        finally:
            self.observe = observe

    def report(self, point: str, status: Status, started: float) -> None:
        """Report a whole extension point. `started` is from `time.perf_counter`."""
        if self.observe is not None:
            self.observe(point, "", status.code.text, time.perf_counter() - started)

    def _call_all(self, point: str, calls: Sequence[tuple[Plugin, Callable[..., None]]], *args: Any) -> None:
        """Call plugins that cannot refuse. If some raise, all are called, and then the first error is raised."""
        # Used for Unreserve and PostBind. If one of them is not called, what it holds (a volume, a device) is held until a
        # restart.
        broken: PluginError | None = None
        for plugin, function in calls:
            try:
                self.call(point, plugin, function, *args)
            except PluginError as error:
                broken = broken or error
        if broken is not None:
            raise broken

    async def _await(self, point: str, plugin: Plugin, function: Callable[..., Any], *args: Any) -> Status | None:
        """Wait for a plugin's coroutine, in a task of its own.

        A plugin may cancel its task or refuse to be cancelled. In a task of its own that does not reach ours, so a cancellation
        that arrives here always comes from us. Then the plugin has CANCEL_SECONDS to end.
        """
        # What may happen, and what the caller sees:
        #   the plugin returns or raises        its status, or a PluginError (`_answer`)
        #   the plugin cancels its own task     PluginError: `task.cancelled()` although nobody cancelled us
        #   we are cancelled (preempted, stop)  CancelledError, after the plugin had its time to clean up
        #   the plugin ignores the cancellation CancelledError too; the task is left running and the log names it
        answer = self._answer(point, plugin, function, *args)
        task = asyncio.ensure_future(answer)
        try:
            await asyncio.wait([task])
        except GeneratorExit:  # the loop was dropped, perhaps before the task had its first turn
            answer.close()
            raise
        except asyncio.CancelledError as cancelled:
            task.cancel(*cancelled.args)
            await asyncio.wait([task], timeout=CANCEL_SECONDS)
            if not task.done():
                log.error("plugin %s goes on at %s of pod %s although it was called off", plugin.name, point, _pod_in(args))
            raise
        # `asyncio.wait` does not raise what the task raised, so the two kinds of cancellation stay apart.
        if task.cancelled():
            raise raised(plugin.name, point, "CancelledError", _pod_in(args))
        error = task.exception()
        if isinstance(error, GeneratorExit):
            raise blamed(error, plugin.name, point, _pod_in(args)) from error
        return task.result()

    async def _answer(self, point: str, plugin: Plugin, function: Callable[..., Any], *args: Any) -> Status | None:
        started = time.perf_counter()
        try:
            answer = await function(*args)
        except (asyncio.CancelledError, GeneratorExit):
            raise  # perhaps ours: whoever waits for the task knows
        except BaseException as error:  # somebody else's code may raise anything, and a SystemExit would end the process
            raise blamed(error, plugin.name, point, _pod_in(args)) from error
        status = _status(point, plugin, answer, args)
        if self.observe is not None:
            self.observe(point, plugin.name, (status or SUCCESS).code.text, time.perf_counter() - started)
        return status

    def _ask(self, point: str, plugin: Plugin, function: Callable[..., Any], *args: Any) -> Status | None:
        """Call a plugin at a point where it answers with a status, or with nothing for success."""
        return _status(point, plugin, self.call(point, plugin, function, *args), args)

    def call(self, point: str, plugin: Plugin, function: Callable[..., Any], *args: Any) -> Any:
        """Call a plugin. Whatever it raises becomes a PluginError that names it."""
        observe = self.observe
        try:
            if observe is None:
                return function(*args)
            started = time.perf_counter()
            answer = function(*args)
        except PluginError:
            raise  # another plugin's, which this one asked
        except BaseException as error:  # somebody else's code may raise anything, and a SystemExit would end the process
            raise blamed(error, plugin.name, point, _pod_in(args)) from error
        code = answer.code if isinstance(answer, Status) else Code.SUCCESS
        observe(point, plugin.name, code.text, time.perf_counter() - started)
        return answer


def _status(point: str, plugin: Plugin, answer: object, args: Sequence[Any]) -> Status | None:
    if answer is None or isinstance(answer, Status):
        return answer
    raise misanswered(plugin.name, point, "a Status or None", answer, _pod_in(args))


def _pod_in(args: Iterable[Any]) -> str:
    """Return the pod that a call is about, which is the first among its arguments."""
    return next((arg.key for arg in args if isinstance(arg, PodView)), "")


def are_all(kind: type, answer: object) -> bool:
    return isinstance(answer, Sequence) and all(isinstance(each, kind) for each in answer)


def named(status: Status, plugin: Plugin) -> Status:
    return status if status.plugin else status.by(plugin.name)


def named_follow_up(follow_up: FollowUp | None, plugin: Plugin, pod: PodView) -> FollowUp | None:
    """Return a follow-up whose errors name the plugin."""
    if follow_up is None:
        return None

    async def run() -> None:
        try:
            await follow_up()
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # as in `Profile.call`
            raise blamed(error, plugin.name, "PostFilter", pod.key) from error

    return run


def all_of(follow_ups: Sequence[FollowUp | None]) -> FollowUp | None:
    """Return one follow_up that runs all of them, one after another; None if there is none."""
    wanted = [follow_up for follow_up in follow_ups if follow_up is not None]
    if len(wanted) < 2:
        return wanted[0] if wanted else None

    async def run() -> None:
        for follow_up in wanted:
            await follow_up()

    return run
