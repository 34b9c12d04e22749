"""The ResourceQuota controller: writes into the status of each quota what is used of it, as admission/quotas.py counts it."""

from __future__ import annotations

from kubesched.embedded.controllers.shared.controller import Controller
from kubesched.embedded.controllers.shared.pods import key_of
from kubesched.embedded.schema.resources import Object


class QuotaStatus(Controller):
    """Keeps the status of quotas."""

    resource_name = "resourcequotas"
    syncs_deleted = True

    def start(self) -> None:
        super().start()
        self._store.context.quotas.listen(self._work.add)

    def sync(self, obj: Object) -> float | None:
        hard = dict((obj.get("spec") or {}).get("hard") or {})
        self.report(obj, {"hard": hard, "used": self._store.context.quotas.used(key_of(obj))} if hard else {})
        return None
