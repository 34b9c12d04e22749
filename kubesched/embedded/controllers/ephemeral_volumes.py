"""The ephemeral volume controller: a claim for each volume that a pod brings a template for.

In: pods with `ephemeral` volumes. Out: claims named after pod and volume, owned by the pod, so that they end with it.
"""

from __future__ import annotations

from kubesched.embedded.controllers.shared.controller import Controller
from kubesched.embedded.controllers.shared.event_recorder import EventRecorder
from kubesched.embedded.controllers.shared.pods import is_finished, owned_by
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.storage.watch import Change
from kubesched.embedded.store import ObjectStore
from kubesched.embedded.verbs.patching import copied
from kubesched.errors import AlreadyExists


class EphemeralVolumes(Controller):
    """Makes the claims of ephemeral volumes."""

    def __init__(self, store: ObjectStore, recorder: EventRecorder) -> None:
        super().__init__(store, recorder, "pods", "ephemeral-volume-controller")

    def add_all(self) -> None:
        for entry in list(self._store.context.table(self._resource).entries.values()):
            if _templates(entry.obj):
                self._work.add(entry.key)

    def changed(self, change: Change) -> None:
        if change.new is not None and change.old is None and _templates(change.new.obj):
            self._work.add(change.key)

    def sync(self, obj: Object) -> float | None:
        if is_finished(obj) or "deletionTimestamp" in obj["metadata"]:
            return None
        for volume, template in _templates(obj):
            given, name = template.get("metadata") or {}, f"{obj['metadata']['name']}-{volume}"
            metadata: Object = {"name": name, "namespace": obj["metadata"]["namespace"], "ownerReferences": [owned_by(obj)]}
            metadata |= {field: dict(given[field]) for field in ("labels", "annotations") if given.get(field)}
            try:
                self._store.create("persistentvolumeclaims", {"metadata": metadata, "spec": copied(template["spec"])})
            except AlreadyExists:
                continue
        return None


def _templates(pod: Object) -> list[tuple[str, Object]]:
    held = ((one["name"], (one.get("ephemeral") or {}).get("volumeClaimTemplate")) for one in pod["spec"].get("volumes") or ())
    return [(name, template) for name, template in held if template is not None]
