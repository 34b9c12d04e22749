"""Whose fault it is: whatever a plugin raises becomes a `PluginError` that names the plugin, the point and the pod.

In: what was raised, and who was asked what. Out: the error to raise in its place. A plugin is somebody else's code, so
everything counts, `SystemExit` and a cancellation of its own making included: it costs the attempt and nothing more.
Only Ctrl-C passes: it belongs to the person at the terminal.
"""

from __future__ import annotations

import functools
import signal
import threading

from kubesched.errors import PluginError, PluginRaised, SchedulerError

_WORDS = {
    "Filter": 'running "{plugin}" filter plugin: {what}',
    "Score": 'running Score plugins: plugin "{plugin}" failed with: {what}',
}
_OTHER_WORDS = 'running {point} plugin "{plugin}": {what}'


def blamed(error: BaseException, plugin: str, point: str, pod: str = "") -> PluginError:
    """Return an error that names a plugin, in the words that the reference has for an error status of the point.

    A plugin that raises one of our own errors has spoken on purpose, and its text stands as it is; one that passes on
    what another plugin did is not to blame for it.
    """
    if is_ctrl_c(error):
        raise error
    if isinstance(error, PluginError):
        return error
    if isinstance(error, SchedulerError):
        return PluginError(plugin, point, str(error), pod)
    return raised(plugin, point, _told(error), pod)


def misanswered(plugin: str, point: str, wanted: str, answer: object, pod: str = "") -> PluginError:
    """Return the error for an answer of the wrong kind."""
    return raised(plugin, point, f"expected {wanted}, got {type(answer).__name__}", pod)


def erred(plugin: str, point: str, what: str, pod: str = "") -> PluginError:
    """Return the error for a plugin that says itself that something went wrong."""
    return PluginError(plugin, point, _worded(plugin, point, what), pod)


def raised(plugin: str, point: str, what: str, pod: str = "") -> PluginRaised:
    """Return the error for a plugin that broke."""
    return PluginRaised(plugin, point, _worded(plugin, point, what), pod)


def _worded(plugin: str, point: str, what: str) -> str:
    return _WORDS.get(point, _OTHER_WORDS).format(plugin=plugin, point=point, what=what)


def is_ctrl_c(error: BaseException) -> bool:
    """Return whether an error is the user's Ctrl-C. It arrives in the middle of whatever runs, unless the signal is
    handled, as `kubesched run` does: there, and in other threads, a KeyboardInterrupt can only be the plugin's own."""
    if not isinstance(error, KeyboardInterrupt) or threading.current_thread() is not threading.main_thread():
        return False
    handler = signal.getsignal(signal.SIGINT)
    return handler is signal.default_int_handler or isinstance(handler, functools.partial)  # the latter is asyncio.run's


def _told(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:  # its __str__ is somebody else's code too
        text = ""
    return f"{kind}: {text}" if text else kind
