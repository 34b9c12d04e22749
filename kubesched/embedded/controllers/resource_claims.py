"""The resource claim controller: makes claims from templates, and removes claims that nobody uses.

In: pods with resourceClaims, claims, templates. Out: a claim for each template that a pod names, recorded in the pod's status;
the reservations of finished pods removed; an allocation without reservations given back; generated claims deleted with their
pods.
"""

from __future__ import annotations

from kubesched.embedded.controllers.shared.context import ControllerContext
from kubesched.embedded.controllers.shared.controller import Workers
from kubesched.embedded.controllers.shared.pods import is_finished, key_of, owned_by, split
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.storage.watch import Change
from kubesched.embedded.verbs.patching import MERGE_PATCH, copied
from kubesched.kube.api import DELETE_PROTECTION_FINALIZER

FROM_POD_CLAIM = "resource.kubernetes.io/pod-claim-name"  # annotation: the entry of the pod that a claim was made for


class ResourceClaimController(Workers):
    """Keeps resource claims in step with pods."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._generated: dict[tuple[str, str], str] = {}  # pod uid and name of the entry to the claim made for it
        self._pod_work = self.worker("pod claims", self._sync_pod)
        self._claim_work = self.worker("resourceclaims", self._sync_claim)

    def start(self) -> None:
        self._store.listen("pods", self._pod_changed)
        self._store.listen("resourceclaims", self._claim_changed)
        self._store.listen("resourceclaimtemplates", self._template_changed)
        for pod in self._store.list("pods").items:
            if pod["spec"].get("resourceClaims"):
                self._pod_work.add(key_of(pod))
        for entry in self._store.list("resourceclaims").entries:
            self._learn(entry.obj)
            self._claim_work.add(entry.key)

    def _pod_changed(self, change: Change) -> None:
        """Queue a pod with claims, and the claims: a reservation may have ended."""
        for entry in (change.old, change.new):
            if entry is not None and entry.obj["spec"].get("resourceClaims"):
                self._pod_work.add(change.key)
                statuses = (entry.obj.get("status") or {}).get("resourceClaimStatuses") or ()
                for one in (*entry.obj["spec"]["resourceClaims"], *statuses):
                    if one.get("resourceClaimName"):
                        self._claim_work.add(f"{entry.namespace}/{one['resourceClaimName']}")

    def _claim_changed(self, change: Change) -> None:
        """Queue a claim; forget which pod a deleted one was made for."""
        if change.new is not None:
            self._learn(change.new.obj)
            self._claim_work.add(change.key)
        elif change.old is not None:
            self._generated.pop(_origin(change.old.obj), None)

    def _learn(self, claim: Object) -> None:
        """Note which pod a claim was made for, so that no second one is made."""
        origin = _origin(claim)
        if origin != ("", ""):
            self._generated[origin] = claim["metadata"]["name"]

    def _template_changed(self, change: Change) -> None:
        """Queue the pods that may have waited for this template."""
        for pod in self._pods.in_namespace(change.namespace):
            if pod["spec"].get("resourceClaims"):
                self._pod_work.add(key_of(pod))

    def _sync_pod(self, key: str) -> float | None:
        """Make the claims that a pod's templates ask for, and record them in its status."""
        pod = self._pods.get(key)
        if pod is None or is_finished(pod) or "deletionTimestamp" in pod["metadata"]:
            return None
        statuses = list((pod.get("status") or {}).get("resourceClaimStatuses") or ())
        known = {one["name"] for one in statuses}
        fresh = [
            {"name": one["name"], "resourceClaimName": self._claim_for(pod, one)}
            for one in pod["spec"].get("resourceClaims") or ()
            if one.get("resourceClaimTemplateName") and one["name"] not in known
        ]
        if fresh:
            namespace, name = split(key)
            patch = {"status": {"resourceClaimStatuses": statuses + fresh}}
            self._store.patch("pods", name, patch, namespace, subresource="status")
        return None

    def _claim_for(self, pod: Object, wanted: Object) -> str:
        """Return the name of the claim for an entry of the pod; make the claim if there is none."""
        known = self._generated.get((pod["metadata"]["uid"], wanted["name"]))
        if known is not None:
            return known
        namespace = pod["metadata"]["namespace"]
        template = self._store.get("resourceclaimtemplates", wanted["resourceClaimTemplateName"], namespace)["spec"]
        given = template.get("metadata") or {}
        metadata = {
            "generateName": f"{pod['metadata']['name']}-{wanted['name']}-",
            "namespace": namespace,
            "labels": dict(given.get("labels") or {}),
            "annotations": {**(given.get("annotations") or {}), FROM_POD_CLAIM: wanted["name"]},
            "ownerReferences": [owned_by(pod)],
        }
        made = self._store.create("resourceclaims", {"metadata": metadata, "spec": copied(template["spec"])})
        return str(made["metadata"]["name"])

    def _sync_claim(self, key: str) -> float | None:
        """Remove the reservations that have ended, then what depends on there being one."""
        namespace, name = split(key)
        claim = self._store.get("resourceclaims", name, namespace)
        status = claim.get("status") or {}
        reserved = status.get("reservedFor") or []
        kept = [one for one in reserved if self._is_used(namespace, one)]
        if len(kept) != len(reserved):
            fresh = {**status, "reservedFor": kept}
            if not kept:
                fresh.pop("reservedFor")
                fresh.pop("allocation", None)
            claim = self._store.update("resourceclaims", {**claim, "status": fresh}, subresource="status")
        if (reserved and not kept) or "deletionTimestamp" in claim["metadata"]:
            self._release(claim)
        owner = next(iter(claim["metadata"].get("ownerReferences") or ()), None)
        if FROM_POD_CLAIM in (claim["metadata"].get("annotations") or {}) and owner is not None and not kept:
            pod = self._pods.get(f"{namespace}/{owner['name']}")
            if pod is None or pod["metadata"]["uid"] != owner["uid"] or is_finished(pod):
                self._store.delete_if_there("resourceclaims", claim)
        return None

    def _release(self, claim: Object) -> None:
        """Give back the allocation of a claim, and remove the finalizer that protects it.

        Only after a reservation has ended or the claim was deleted: a claim that is protected and has no allocation is just
        being allocated by the scheduler, which sets the finalizer first.
        """
        metadata, status = claim["metadata"], claim.get("status") or {}
        if DELETE_PROTECTION_FINALIZER not in (metadata.get("finalizers") or ()) or status.get("reservedFor"):
            return
        if status.get("allocation"):
            kept = {key: value for key, value in status.items() if key != "allocation"}
            self._store.update("resourceclaims", {**claim, "status": kept}, subresource="status")
        finalizers = [one for one in metadata["finalizers"] if one != DELETE_PROTECTION_FINALIZER]
        patch = {"metadata": {"finalizers": finalizers or None}}
        self._store.patch("resourceclaims", metadata["name"], patch, metadata["namespace"], patch_type=MERGE_PATCH)

    def _is_used(self, namespace: str, consumer: Object) -> bool:
        """Return whether a reservation still counts. Only those of pods are ours to remove."""
        if consumer.get("resource") != "pods":
            return True  # another controller's reservation
        pod = self._pods.get(f"{namespace}/{consumer.get('name', '')}")
        return pod is not None and pod["metadata"]["uid"] == consumer.get("uid") and not is_finished(pod)


def _origin(claim: Object) -> tuple[str, str]:
    """Return the pod uid and the entry that a claim was made for; two empty texts for one made by a user."""
    metadata = claim["metadata"]
    name = (metadata.get("annotations") or {}).get(FROM_POD_CLAIM, "")
    owner = next(iter(metadata.get("ownerReferences") or ()), None)
    return (owner["uid"], name) if name and owner is not None else ("", "")
