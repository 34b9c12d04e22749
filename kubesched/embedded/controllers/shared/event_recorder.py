"""Events of the fake cluster: what its kubelets and controllers tell about what they do."""

from __future__ import annotations

from kubesched.embedded.clock import timestamp
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.store import ObjectStore
from kubesched.embedded.verbs.identity import suffix
from kubesched.errors import ApiError


class EventRecorder:
    """Writes core events; an event that cannot be written is not worth an error."""

    def __init__(self, store: ObjectStore, enabled: bool = True) -> None:
        self._store = store
        self._enabled = enabled

    def tell(self, about: Object, component: str, reason: str, message: str, kind: str = "Normal", host: str = "") -> None:
        """Record one event about an object."""
        if not self._enabled:
            return
        metadata = about["metadata"]
        namespace = metadata.get("namespace") or "default"
        context = self._store.context
        now = timestamp(context.clock.now())
        involved: Object = {
            "kind": about["kind"],
            "apiVersion": about["apiVersion"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        }
        if "namespace" in metadata:
            involved["namespace"] = metadata["namespace"]
        name = f"{metadata['name']}.{suffix(context.rng)}{suffix(context.rng)}{suffix(context.rng)}"
        source = {"component": component} | ({"host": host} if host else {})
        event = {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "source": source,
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
