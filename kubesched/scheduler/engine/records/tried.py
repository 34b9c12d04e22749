"""A pod that was tried, and what came of it: what travels from the decision to whoever acts on it."""

from __future__ import annotations

from msgspec import Struct

from kubesched.scheduler.engine.deciding.attempt import Attempt
from kubesched.scheduler.engine.records.decision_record import DecisionRecord
from kubesched.scheduler.framework import Profile
from kubesched.scheduler.queue import QueuedPod


class Tried(Struct, frozen=True):
    """A queued pod, by which profile and since when it was tried, and its attempt, if that did not break."""

    queued: QueuedPod
    profile: Profile
    started: float
    made: Attempt | None = None
    seconds: float = 0.0
    """How long it took to decide."""
    record: DecisionRecord | None = None
    """What is kept of the decision, where it was taken down at once."""
