"""The volume binder, a provisioner, and the ephemeral volume controller.

In: claims, volumes, classes. Out: claims and volumes bound to each other; volumes made for claims whose class has a
provisioner; volumes released, and deleted if their policy says so. A claim whose class waits for the first consumer is left
alone until the scheduler has chosen a node or a volume.
"""

from __future__ import annotations

from kubesched.embedded.controllers.shared.context import ControllerContext
from kubesched.embedded.controllers.shared.controller import Controller, Workers
from kubesched.embedded.controllers.shared.pods import is_finished, key_of, owned_by, split
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.storage.selectors import selects
from kubesched.embedded.storage.watch import Change
from kubesched.embedded.verbs.patching import copied
from kubesched.kube.values import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE, ZONE, quantity

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"  # annotation: the driver that made a volume
NO_PROVISIONER = "kubernetes.io/no-provisioner"  # volumes of such a class are made by hand


class Volumes(Workers):
    """Binds claims to volumes, and makes volumes."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._due: dict[str, float] = {}
        self._reserved: dict[str, str] = {}  # claim to the volume that names it
        self._claim_work = self.worker("persistentvolumeclaims", self._sync_claim)
        self._volume_work = self.worker("persistentvolumes", self._sync_volume)

    def start(self) -> None:
        self._store.listen("persistentvolumeclaims", self._claim_changed)
        self._store.listen("persistentvolumes", self._volume_changed)
        self._store.listen("storageclasses", lambda change: self._all_claims())
        for volume in self._store.list("persistentvolumes").items:
            self._learn(volume)
            self._volume_work.add(volume["metadata"]["name"])
        self._all_claims()

    def _all_claims(self) -> None:
        for entry in self._store.list("persistentvolumeclaims").entries:
            if not _is_bound(entry.obj):
                self._claim_work.add(entry.key)

    def _claim_changed(self, change: Change) -> None:
        if change.new is not None:
            self._claim_work.add(change.key)
        elif change.old is not None:
            self._due.pop(change.old.obj["metadata"]["uid"], None)
            if change.old.obj["spec"].get("volumeName"):
                self._volume_work.add(change.old.obj["spec"]["volumeName"])

    def _volume_changed(self, change: Change) -> None:
        """Queue a volume and the claim it is reserved for. One that became free may suit any claim."""
        if change.old is not None:
            held = _claim_key(change.old.obj)
            if self._reserved.get(held) == change.key:
                del self._reserved[held]
        if change.new is None:
            return
        self._learn(change.new.obj)
        self._volume_work.add(change.key)
        claim = _claim_key(change.new.obj)
        if claim:
            self._claim_work.add(claim)
        elif change.old is None or _claim_key(change.old.obj):  # a volume became free
            self._all_claims()

    def _learn(self, volume: Object) -> None:
        """Note the claim that a volume is reserved for."""
        claim = _claim_key(volume)
        if claim:
            self._reserved[claim] = volume["metadata"]["name"]

    # --- volumes

    def _sync_volume(self, name: str) -> float | None:
        """Set the phase of a volume; delete it if its claim is gone and its policy says so."""
        volume = self._store.get("persistentvolumes", name)
        reference = volume["spec"].get("claimRef")
        if reference is None:
            self._set_phase(volume, "Available")
            return None
        claim = self._claim(reference)
        if claim is not None:
            self._set_phase(volume, "Bound" if claim["spec"].get("volumeName") == name else "Available")
            return None
        if not reference.get("uid"):
            self._set_phase(volume, "Available")  # reserved for a claim that is still to come
            return None
        self._set_phase(volume, "Released")
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._store.delete("persistentvolumes", name)
        return None

    def _claim(self, reference: Object) -> Object | None:
        """Return the claim that a volume refers to, if it is still the same claim."""
        claim = self._store.find("persistentvolumeclaims", reference["name"], reference["namespace"])
        return claim if claim is not None and reference.get("uid") in (None, "", claim["metadata"]["uid"]) else None

    def _set_phase(self, volume: Object, phase: str) -> None:
        if (volume.get("status") or {}).get("phase") != phase:
            current = self._store.get("persistentvolumes", volume["metadata"]["name"])
            status = {**(current.get("status") or {}), "phase": phase}
            self._store.update("persistentvolumes", {**current, "status": status}, subresource="status")

    # --- claims

    def _sync_claim(self, key: str) -> float | None:
        """Bind a claim: to the volume reserved for it, to the best free one, or to a new one.

        A class that waits for the first consumer skips the second step: there the scheduler chooses.
        """
        namespace, name = split(key)
        claim = self._store.get("persistentvolumeclaims", name, namespace)
        if _is_bound(claim) or "deletionTimestamp" in claim["metadata"]:
            return None
        volume = self._reserved_for(claim)
        if volume is not None:
            self._bind(claim, volume)
            return None
        if claim["spec"].get("volumeName"):
            return None
        class_name = claim["spec"].get("storageClassName")
        storage_class = self._store.find("storageclasses", class_name) if class_name else None
        waits = (storage_class or {}).get("volumeBindingMode") == "WaitForFirstConsumer"
        node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE, "")
        if waits and not node:
            return None
        if not waits:
            volume = self._best_volume(claim)
            if volume is not None:
                self._bind(claim, volume)
                return None
        if storage_class is None or storage_class.get("provisioner") == NO_PROVISIONER:
            return None
        now, uid = self._clock.monotonic(), claim["metadata"]["uid"]
        wait = self._due.setdefault(uid, now + self._pace.provision_seconds) - now
        if wait > 0:
            return wait
        del self._due[uid]
        self._bind(claim, self._provision(claim, storage_class, node))
        return None

    def _reserved_for(self, claim: Object) -> Object | None:
        """Return the volume that names this claim, or that this claim names."""
        wanted = claim["spec"].get("volumeName")
        name = wanted or self._reserved.get(key_of(claim))
        volume = self._store.find("persistentvolumes", name) if name else None
        if volume is None:
            return None
        reference = volume["spec"].get("claimRef")
        if reference is None:
            return volume if wanted else None
        return volume if self._claim(reference) is claim else None

    def _best_volume(self, claim: Object) -> Object | None:
        """Return the smallest free volume that is large enough and of the right class and mode."""
        spec = claim["spec"]
        wanted = quantity.parse(((spec.get("resources") or {}).get("requests") or {}).get("storage", "0"))
        fitting = []
        for volume in self._store.list("persistentvolumes").items:
            held = volume["spec"]
            if held.get("claimRef") is not None or "deletionTimestamp" in volume["metadata"]:
                continue
            size = quantity.parse((held.get("capacity") or {}).get("storage", "0"))
            if (
                size >= wanted
                and (held.get("storageClassName") or "") == (spec.get("storageClassName") or "")
                and set(spec.get("accessModes") or ()) <= set(held.get("accessModes") or ())
                and held.get("volumeMode", "Filesystem") == spec.get("volumeMode", "Filesystem")
                and (spec.get("selector") is None or selects(spec["selector"], volume["metadata"].get("labels")))
            ):
                fitting.append((size, volume["metadata"]["name"], volume))
        return min(fitting, key=lambda one: one[:2])[2] if fitting else None

    def _bind(self, claim: Object, volume: Object) -> None:
        """Write the binding: first into the volume, so that no other claim can take it, then into the claim."""
        metadata = claim["metadata"]
        held = volume["spec"].get("claimRef") or {}
        if held.get("uid") != metadata["uid"]:
            patch: Object = {"spec": {"claimRef": _reference(claim)}}
            if not held:
                patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
            volume = self._store.patch("persistentvolumes", volume["metadata"]["name"], patch)
        self._set_phase(volume, "Bound")
        name = volume["metadata"]["name"]
        annotations = {BIND_COMPLETED: "yes"}
        if not claim["spec"].get("volumeName"):
            annotations[BOUND_BY_CONTROLLER] = "yes"
        patch = {"spec": {"volumeName": name}, "metadata": {"annotations": annotations}}
        claim = self._store.patch("persistentvolumeclaims", metadata["name"], patch, metadata["namespace"])
        status = {
            "phase": "Bound",
            "accessModes": volume["spec"].get("accessModes") or [],
            "capacity": dict(volume["spec"].get("capacity") or {}),
        }
        self._store.update("persistentvolumeclaims", {**claim, "status": status}, subresource="status")

    # --- provisioning

    def _provision(self, claim: Object, storage_class: Object, node: str) -> Object:
        """Make a volume for a claim, in the zone of the chosen node."""
        uid, driver = claim["metadata"]["uid"], storage_class["provisioner"]
        requested = ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "1Gi")
        spec: Object = {
            "capacity": {"storage": requested},
            "accessModes": list(claim["spec"].get("accessModes") or ["ReadWriteOnce"]),
            "volumeMode": claim["spec"].get("volumeMode", "Filesystem"),
            "storageClassName": storage_class["metadata"]["name"],
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "csi": {"driver": driver, "volumeHandle": f"vol-{uid}"},
            "claimRef": _reference(claim),
        }
        chosen = self._store.find("nodes", node) if node else None
        zone = (chosen["metadata"].get("labels") or {}).get(ZONE) if chosen is not None else None
        if zone:
            term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
        metadata = {"name": f"pvc-{uid}", "annotations": {PROVISIONED_BY: driver}}
        volume = self._store.create("persistentvolumes", {"metadata": metadata, "spec": spec})
        text = f"Successfully provisioned volume {metadata['name']}"
        self._recorder.record(claim, driver, "ProvisioningSucceeded", text)
        return volume


class EphemeralVolumes(Controller):
    """Makes a claim for each volume that a pod has a template for. It is named after both, and owned by the pod."""

    resource_name = "pods"
    component = "ephemeral-volume-controller"

    def add_all(self) -> None:
        for entry in list(self._store.context.table(self._resource).entries.values()):
            if _templates(entry.obj):
                self._work.add(entry.key)

    def changed(self, change: Change) -> None:
        if change.new is not None and change.old is None and _templates(change.new.obj):
            self._work.add(change.key)

    def sync(self, obj: Object) -> float | None:
        if is_finished(obj):
            return None
        for volume, template in _templates(obj):
            given, name = template.get("metadata") or {}, f"{obj['metadata']['name']}-{volume}"
            metadata: Object = {"name": name, "namespace": obj["metadata"]["namespace"], "ownerReferences": [owned_by(obj)]}
            metadata |= {field: dict(given[field]) for field in ("labels", "annotations") if given.get(field)}
            self._store.create_if_missing("persistentvolumeclaims", {"metadata": metadata, "spec": copied(template["spec"])})
        return None


def _templates(pod: Object) -> list[tuple[str, Object]]:
    """Return name and template of a pod's ephemeral volumes."""
    held = ((one["name"], (one.get("ephemeral") or {}).get("volumeClaimTemplate")) for one in pod["spec"].get("volumes") or ())
    return [(name, template) for name, template in held if template is not None]


def _reference(claim: Object) -> Object:
    named = {key: claim["metadata"][key] for key in ("namespace", "name", "uid")}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **named}


def _claim_key(volume: Object) -> str:
    """Return the key of the claim that a volume is reserved for, or an empty text."""
    reference = volume["spec"].get("claimRef")
    return f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else ""


def _is_bound(claim: Object) -> bool:
    """Return whether a claim is bound, and the binder has finished with it."""
    done = (claim["metadata"].get("annotations") or {}).get(BIND_COMPLETED)
    return bool(claim["spec"].get("volumeName")) and (claim.get("status") or {}).get("phase") == "Bound" and bool(done)
