"""events.k8s.io: what the scheduler tells users about a pod."""

from __future__ import annotations

from kubesched.kube.api.core import EventSource
from kubesched.kube.api.meta import ObjectReference, TopLevel, Wire, always


class EventSeries(Wire, kw_only=True):
    """How often the same thing was seen, and when last."""

    count: int = 0
    last_observed_time: str = ""


class Event(TopLevel, kw_only=True):
    """Something that happened to an object."""

    api_version: str = always("events.k8s.io/v1")
    kind: str = always("Event")
    event_time: str | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""
    deprecated_source: EventSource = EventSource()
    deprecated_first_timestamp: str | None = None
    deprecated_last_timestamp: str | None = None
    deprecated_count: int = 0
