"""Exceptions of plugins: each becomes a `PluginError` that names the plugin, the extension point and the pod.

In: an exception, and the call that raised it. Out: the error to raise instead. Plugins are foreign code, so every exception is
caught, even `SystemExit` and a cancellation that the plugin itself raised: it costs one attempt and nothing more. Only Ctrl-C
of the user passes.
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
    """Return the PluginError for an exception, in kube-scheduler's words for an error status of the extension point.

    If a plugin raises a SchedulerError on purpose, its text is used as it is. The PluginError of another plugin passes through.
    """
    if is_ctrl_c(error):
        raise error
    if isinstance(error, PluginError):
        return error
    # Raised on purpose: no class name in front, no traceback, and not counted as a plugin that broke.
    if isinstance(error, SchedulerError):
        return PluginError(plugin, point, str(error), pod)
    return raised(plugin, point, _text_of(error), pod)


def misanswered(plugin: str, point: str, wanted: str, answer: object, pod: str = "") -> PluginError:
    """Return the error for an answer of the wrong kind."""
    return raised(plugin, point, f"expected {wanted}, got {type(answer).__name__}", pod)


def erred(plugin: str, point: str, what: str, pod: str = "") -> PluginError:
    """Return the error for a plugin that answered with an error status."""
    return PluginError(plugin, point, _worded(plugin, point, what), pod)


def raised(plugin: str, point: str, what: str, pod: str = "") -> PluginRaised:
    """Return the error for a plugin that raised."""
    return PluginRaised(plugin, point, _worded(plugin, point, what), pod)


def _worded(plugin: str, point: str, what: str) -> str:
    return _WORDS.get(point, _OTHER_WORDS).format(plugin=plugin, point=point, what=what)


def is_ctrl_c(error: BaseException) -> bool:
    """Return whether an error is the user's Ctrl-C. If the program handles the signal, as `kubesched run` does, and in threads
    other than the main one, only the plugin itself can have raised a KeyboardInterrupt."""
    if not isinstance(error, KeyboardInterrupt) or threading.current_thread() is not threading.main_thread():
        return False
    handler = signal.getsignal(signal.SIGINT)
    return handler is signal.default_int_handler or isinstance(handler, functools.partial)  # the latter is asyncio.run's


def _text_of(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:  # its __str__ is somebody else's code too
        text = ""
    return f"{kind}: {text}" if text else kind
