"""Our exceptions, one tree:

    SchedulerError
      ConfigError(path, detail)          a configuration file, flag or policy that cannot be used
      MalformedObject(object, field, value)   an API object with a value that means nothing
      ApiError(status, reason, message)  the API server said no
        BadRequest  Unauthorized  Forbidden  NotFound  Conflict  AlreadyExists  Gone  Invalid  TooManyRequests
        ServerFault (5xx)
      Unreachable                        no answer from the API server at all
        AnswerLost                       the request went out and may have been carried out
      PluginError(plugin, point, pod)    a plugin failed, as opposed to refused
        PluginRaised                     it raised what it should not, or answered what nobody can read

A class exists when someone catches it. "Does not fit" is never an exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class SchedulerError(Exception):
    """Everything that this package raises on purpose."""


class ConfigError(SchedulerError):
    """A configuration that cannot be used; `path` names the field, `detail` says why."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(f"{path}: {detail}" if path else detail)
        self.path = path
        self.detail = detail


def newer_format(where: str, found: object, known: int) -> str:
    """Return what is said of a file that this release cannot read."""
    return f"{where}: written by a newer kubesched (format {found}, this one reads up to {known}); use that release to read it"


class MalformedObject(SchedulerError):
    """An API object holds a value that cannot be read."""

    def __init__(self, what: str, field: str, value: object, detail: str = "") -> None:
        text = f"{what}: {field}: invalid value {value!r}"
        super().__init__(f"{text}: {detail}" if detail else text)
        self.what = what
        self.field = field
        self.value = value


class ApiError(SchedulerError):
    """The API server answered, and the answer was no."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        retry_after: float | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message or f"{status} {reason}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.details = dict(details or {})  # the `details` of the API's Status: kind, name, causes


class BadRequest(ApiError):
    """400"""


class Unauthorized(ApiError):
    """401"""


class Forbidden(ApiError):
    """403"""


class NotFound(ApiError):
    """404"""


class Conflict(ApiError):
    """409, the object changed meanwhile or the operation does not fit its state"""

    latest: Any = None
    """The object as it is now, where whoever raises this has read it."""


class AlreadyExists(Conflict):
    """409, on create"""


class Gone(ApiError):
    """410, the resource version is too old"""


class Invalid(ApiError):
    """422"""


class TooManyRequests(ApiError):
    """429"""


class ServerFault(ApiError):
    """5xx"""


class Unreachable(SchedulerError):
    """The API server could not be reached, or the connection broke before an answer came."""


class AnswerLost(Unreachable):
    """The request went out, and the connection broke or time ran out before an answer: it may have been carried out."""


class PluginError(SchedulerError):
    """A plugin failed at an extension point; the attempt ends, the scheduler goes on."""

    def __init__(self, plugin: str, point: str, message: str, pod: str = "") -> None:
        super().__init__(message)
        self.plugin = plugin
        self.point = point
        self.pod = pod


class PluginRaised(PluginError):
    """A plugin broke: it raised, or its answer is none. Whoever ends the attempt also tells the plugin's author."""
