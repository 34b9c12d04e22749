"""What can be wrong with a question. All are SchedulerErrors with one line that names object and field."""

from __future__ import annotations

from kubesched.errors import SchedulerError


class WorldError(SchedulerError):
    """A world was asked or changed that is closed, or has another world open inside it."""


class UnknownObject(SchedulerError):
    """A node or a pod that is not there."""


class BadObject(SchedulerError):
    """An object that cannot be read, or is not what is asked for."""
