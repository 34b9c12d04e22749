"""A pod with its attempt, on the way from the decision to what is done about it."""

from __future__ import annotations

from msgspec import Struct

from kubesched.scheduler.engine.deciding.attempt import Attempt
from kubesched.scheduler.engine.records.decision_record import DecisionRecord
from kubesched.scheduler.framework import Profile
from kubesched.scheduler.queue import QueuedPod


class Tried(Struct, frozen=True):
    """A queued pod, the profile and time of its attempt, and the attempt itself, unless that broke."""

    queued: QueuedPod
    profile: Profile
    started: float
    made: Attempt | None = None
    seconds: float = 0.0
    """How long it took to decide."""
    record: DecisionRecord | None = None
    """The record of the decision, if it was made already."""
