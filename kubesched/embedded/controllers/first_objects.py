"""The objects of every cluster: an account in each namespace, the `kubernetes` service, a storage class.

In: namespaces, and accounts that are deleted. Out: a ServiceAccount `default` in each namespace that is not being deleted; at
the start the Service `kubernetes` and the default StorageClass, unless they exist.
"""

from __future__ import annotations

from kubesched.embedded.admission.plugins import DEFAULT_CLASS_ANNOTATION
from kubesched.embedded.admission.pod_plugins import DEFAULT_ACCOUNT
from kubesched.embedded.controllers.shared.controller import Controller
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.storage.watch import Change

_API_SERVICE: Object = {
    "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
    "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
}
_STORAGE_CLASS: Object = {
    "metadata": {"name": "standard", "annotations": {DEFAULT_CLASS_ANNOTATION: "true"}},
    "provisioner": "kubesched.io/local",
    "volumeBindingMode": "WaitForFirstConsumer",
}


class FirstObjects(Controller):
    """Creates the accounts of namespaces; at the start also the service and the storage class."""

    resource_name = "namespaces"
    component = "serviceaccount-controller"

    def start(self) -> None:
        super().start()
        self._store.listen("serviceaccounts", self._account_changed)
        # Namespaces that exist already need their account before the first pod is created, not one turn later.
        for namespace in list(self._store.context.table(self._resource).entries):
            self._sync_key(namespace)
        if self._store.find("services", "kubernetes", "default") is None:
            # Not create_if_missing: a service kept on disk has this address already, and the second one would be refused.
            self._store.create("services", _API_SERVICE)
        if not self._store.list("storageclasses").items:
            self._store.create_if_missing("storageclasses", _STORAGE_CLASS)

    def changed(self, change: Change) -> None:
        """Queue a new namespace. Later changes of it do not matter here."""
        if change.new is not None and change.old is None:
            self._work.add(change.key)

    def _account_changed(self, change: Change) -> None:
        """Queue the namespace of a deleted `default` account, which is created again."""
        if change.new is None and change.key.endswith(f"/{DEFAULT_ACCOUNT}"):
            self._work.add(change.namespace)

    def sync(self, obj: Object) -> float | None:
        metadata = {"name": DEFAULT_ACCOUNT, "namespace": obj["metadata"]["name"]}
        self._store.create_if_missing("serviceaccounts", {"metadata": metadata})
        return None
