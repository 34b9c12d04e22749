"""The StatefulSet controller: numbered pods, each with its own volumes.

In: StatefulSets and their pods. Out: pods NAME-0, NAME-1, ... and their claims, one after the other, or all at once if the
policy is Parallel; pods of an older template deleted from the highest number down to the partition; the status.
"""

from __future__ import annotations

from kubesched.embedded.controllers.shared.controller import PodController
from kubesched.embedded.controllers.shared.pods import (
    available_in,
    from_template,
    is_finished,
    is_ready,
    owned_by,
    template_hash,
)
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.verbs.patching import copied
from kubesched.kube.values import CONTROLLER_REVISION_HASH


class StatefulSets(PodController):
    """Keeps StatefulSets at their size and template."""

    resource_name = "statefulsets.apps"
    created_text = "create Pod {pod} in StatefulSet {owner} successful"
    deleted_text = "delete Pod {pod} in StatefulSet {owner} successful"

    def sync(self, obj: Object) -> float | None:
        owner = obj
        revision = f"{owner['metadata']['name']}-{template_hash(owner['spec']['template'])}"
        self._keep_revision(owner, revision)
        held = {_ordinal(pod): pod for pod in self._pods.of_owner(owner["metadata"]["uid"])}
        again = self._step(owner, held, revision)
        held = {_ordinal(pod): pod for pod in self._pods.of_owner(owner["metadata"]["uid"])}
        self._report(owner, held, revision)
        return again

    def _keep_revision(self, owner: Object, revision: str) -> None:
        """Keep the template as a ControllerRevision, which `kubectl rollout history` lists."""
        if self._store.find("controllerrevisions", revision, owner["metadata"]["namespace"]):
            return
        metadata = {
            "name": revision,
            "namespace": owner["metadata"]["namespace"],
            "labels": dict(owner["spec"]["template"]["metadata"].get("labels") or {}),
            "ownerReferences": [owned_by(owner)],
        }
        data = {"spec": {"template": {**copied(owner["spec"]["template"]), "$patch": "replace"}}}
        body = {"metadata": metadata, "data": data, "revision": owner["metadata"]["generation"]}
        self._store.create("controllerrevisions", body)

    def _step(self, owner: Object, held: dict[int, Object], revision: str) -> float | None:
        """Create, delete or replace the next pod; return when to look again.

        Unless the policy is Parallel, a pod waits until all before it are available, and shrinking begins with the highest
        number.
        """
        spec = owner["spec"]
        start = int((spec.get("ordinals") or {}).get("start", 0))
        wanted = range(start, start + int(spec["replicas"]))
        parallel = spec.get("podManagementPolicy") == "Parallel"
        min_ready = int(spec.get("minReadySeconds", 0))
        now = self._clock.now()
        for ordinal in wanted:
            pod = held.get(ordinal)
            if pod is None:
                self._create(owner, ordinal, revision)
            elif is_finished(pod) and "deletionTimestamp" not in pod["metadata"]:
                self._delete(owner, pod)
            else:
                wait = available_in(pod, min_ready, now)
                if "deletionTimestamp" not in pod["metadata"] and wait == 0:
                    continue
                if not parallel and wait:
                    return wait
            if not parallel:
                return None
        surplus = sorted((ordinal for ordinal in held if ordinal not in wanted), reverse=True)
        for ordinal in surplus:
            if "deletionTimestamp" not in held[ordinal]["metadata"]:
                self._delete(owner, held[ordinal])
            if not parallel:
                return None
        return self._replace_outdated(owner, held, wanted, revision)

    def _replace_outdated(self, owner: Object, held: dict[int, Object], wanted: range, revision: str) -> float | None:
        """Delete the highest pod of an older template, once all above it are ready."""
        strategy = owner["spec"]["updateStrategy"]
        if strategy["type"] != "RollingUpdate":
            return None
        partition = int((strategy.get("rollingUpdate") or {}).get("partition", 0))
        for ordinal in reversed(wanted):
            pod = held.get(ordinal)
            if pod is None or ordinal < wanted.start + partition:
                return None
            if "deletionTimestamp" in pod["metadata"]:
                return None
            if pod["metadata"].get("labels", {}).get(CONTROLLER_REVISION_HASH) != revision:
                self._delete(owner, pod)
                return None
            if not is_ready(pod):
                return None
        return None

    def _create(self, owner: Object, ordinal: int, revision: str) -> None:
        """Create a pod, and its claims before it."""
        pod, claims = numbered_pod(owner, ordinal, revision)
        for claim in claims:
            self._store.create_if_missing("persistentvolumeclaims", claim)
        self.create_pod(owner, pod)

    def _delete(self, owner: Object, pod: Object) -> None:
        """Delete a pod; its claims too if the set shrinks and its policy says so."""
        self.delete_pods(owner, pod)
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        spec = owner["spec"]
        start = int((spec.get("ordinals") or {}).get("start", 0))
        scaled_away = not start <= _ordinal(pod) < start + int(spec["replicas"])
        if scaled_away and spec["persistentVolumeClaimRetentionPolicy"]["whenScaled"] == "Delete":
            for template in spec.get("volumeClaimTemplates") or ():
                self._store.delete("persistentvolumeclaims", f"{template['metadata']['name']}-{name}", namespace)

    def _report(self, owner: Object, held: dict[int, Object], revision: str) -> None:
        before = owner.get("status") or {}
        pods = [pod for pod in held.values() if "deletionTimestamp" not in pod["metadata"]]
        updated = sum((pod["metadata"].get("labels") or {}).get(CONTROLLER_REVISION_HASH) == revision for pod in pods)
        now = self._clock.now()
        min_ready = int(owner["spec"].get("minReadySeconds", 0))
        n_ready = sum(is_ready(pod) for pod in pods)
        is_done = updated == len(pods) == n_ready == int(owner["spec"]["replicas"])
        current_revision = revision if is_done else before.get("currentRevision") or revision
        status = {
            "observedGeneration": owner["metadata"]["generation"],
            "replicas": len(pods),
            "readyReplicas": n_ready,
            "availableReplicas": sum(available_in(pod, min_ready, now) == 0 for pod in pods),
            "currentReplicas": sum(
                (pod["metadata"].get("labels") or {}).get(CONTROLLER_REVISION_HASH) == current_revision for pod in pods
            ),
            "updatedReplicas": updated,
            "currentRevision": current_revision,
            "updateRevision": revision,
            "collisionCount": 0,
        }
        self.report(owner, status)


def numbered_pod(owner: Object, ordinal: int, revision: str) -> tuple[Object, list[Object]]:
    """Return a pod of a set with its number, and the claims that it mounts."""
    name = f"{owner['metadata']['name']}-{ordinal}"
    labels = {
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
        CONTROLLER_REVISION_HASH: revision,
    }
    pod = from_template(owner["spec"]["template"], owner, name, labels)
    pod["spec"]["hostname"] = name
    if owner["spec"].get("serviceName"):
        pod["spec"]["subdomain"] = owner["spec"]["serviceName"]
    volumes, claims = pod["spec"].setdefault("volumes", []), []
    for template in owner["spec"].get("volumeClaimTemplates") or ():
        volume = template["metadata"]["name"]
        claims.append(_claim(owner, template, f"{volume}-{name}"))
        volumes[:] = [one for one in volumes if one["name"] != volume]
        volumes.append({"name": volume, "persistentVolumeClaim": {"claimName": f"{volume}-{name}"}})
    return pod, claims


def _claim(owner: Object, template: Object, name: str) -> Object:
    """Return a pod's own claim, made from a template."""
    metadata: Object = {"name": name, "namespace": owner["metadata"]["namespace"]}
    metadata["labels"] = {
        **((template.get("metadata") or {}).get("labels") or {}),
        **((owner["spec"]["selector"].get("matchLabels")) or {}),
    }
    if owner["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Delete":
        metadata["ownerReferences"] = [owned_by(owner)]
    return {"metadata": metadata, "spec": copied(template["spec"])}


def _ordinal(pod: Object) -> int:
    """Return the number of a pod."""
    text = pod["metadata"]["name"].rpartition("-")[2]
    return int(text) if text.isdecimal() else -1
