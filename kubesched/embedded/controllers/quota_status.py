"""The ResourceQuota controller: writes into each quota what is used of it.

In: what the server counts (admission/quotas.py). Out: the status of every ResourceQuota.
"""

from __future__ import annotations

from kubesched.embedded.controllers.shared.controller import Controller
from kubesched.embedded.controllers.shared.event_recorder import EventRecorder
from kubesched.embedded.controllers.shared.pods import key_of
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.store import ObjectStore


class QuotaStatus(Controller):
    """Keeps the status of quotas."""

    def __init__(self, store: ObjectStore, recorder: EventRecorder) -> None:
        super().__init__(store, recorder, "resourcequotas")

    def start(self) -> None:
        super().start()
        self._store.context.quotas.listen(self._work.add)

    def sync(self, obj: Object) -> float | None:
        hard = dict((obj.get("spec") or {}).get("hard") or {})
        self.report(obj, {"hard": hard, "used": self._store.context.quotas.used(key_of(obj))} if hard else {})
        return None
