"""What all controllers work with: the store, the pods by owner and node, the recorder of Events, the pace."""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.embedded.clock import timestamp
from kubesched.embedded.controllers.shared.pods import PodIndex
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.store import ObjectStore
from kubesched.embedded.verbs.identity import suffix
from kubesched.errors import ApiError


@dataclass(frozen=True, slots=True)
class Pace:
    """Delays of kubelets and controllers, in seconds. A pod's annotations can override its own; see kubelets.py."""

    pull_seconds: float = 1.0  # the first time a node sees an image
    start_seconds: float = 0.3
    ready_seconds: float = 0.3
    stop_seconds: float = 0.5  # at most the pod's grace
    run_seconds: float = 5.0  # how long the pods of jobs run
    provision_seconds: float = 0.5
    lease_seconds: float = 10.0  # 0: no leases, and nodes never count as lost
    lease_duration_seconds: int = 40


INSTANT = Pace(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class EventRecorder:
    """Writes core Events. An Event that the store refuses is dropped: it is not worth an error."""

    def __init__(self, store: ObjectStore, enabled: bool) -> None:
        self._store = store
        self._enabled = enabled

    def record(self, about: Object, component: str, reason: str, message: str, kind: str = "Normal", host: str = "") -> None:
        """Write one Event about an object."""
        if not self._enabled:
            return
        metadata, context = about["metadata"], self._store.context
        now = timestamp(context.clock.now())
        involved = {field: metadata[field] for field in ("namespace", "name", "uid", "resourceVersion") if field in metadata}
        name = f"{metadata['name']}.{suffix(context.rng)}{suffix(context.rng)}{suffix(context.rng)}"
        event = {
            "metadata": {"name": name, "namespace": metadata.get("namespace") or "default"},
            "involvedObject": {"kind": about["kind"], "apiVersion": about["apiVersion"], **involved},
            "reason": reason,
            "message": message,
            "source": {"component": component} | ({"host": host} if host else {}),
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": kind,
            "reportingComponent": component,
            "reportingInstance": host,
        }
        try:
            self._store.create("events", event)
        except ApiError:
            return


class ControllerContext:
    """The parts that every controller is made from."""

    def __init__(self, store: ObjectStore, pace: Pace | None = None, *, events: bool = True) -> None:
        """Follow the pods of `store`. With `events` off no Event is written: large simulations do not want to keep them."""
        self.store = store
        self.pods = PodIndex(store)
        self.recorder = EventRecorder(store, events)
        self.pace = pace or Pace()
