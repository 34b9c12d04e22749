"""The Deployment controller: a ReplicaSet for each template, and a rollout from the old ones to the new one.

In: Deployments and their ReplicaSets. Out: a ReplicaSet for each template; sizes within maxSurge and maxUnavailable; the
status that `kubectl rollout status` reads. Old ReplicaSets are kept as history, up to the limit.

Each sync changes the size of one ReplicaSet at most. Its pods change, it is reported, and that leads to the next sync. For
example, 3 replicas with maxSurge 1 and maxUnavailable 0: new 0 old 3 -> 1, 3 -> (one ready) 1, 2 -> 2, 2 -> ... -> 3, 0.
"""

from __future__ import annotations

import math

from kubesched.embedded.clock import seconds_of, timestamp
from kubesched.embedded.controllers.shared.controller import Controller
from kubesched.embedded.controllers.shared.pods import controller_of, owned_by, template_hash
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.verbs.conditions import condition, with_condition
from kubesched.embedded.verbs.patching import copied
from kubesched.kube.values import POD_TEMPLATE_HASH

REVISION = "deployment.kubernetes.io/revision"  # annotation: counts the templates of a Deployment


def whole(value: object, total: int, round_up: bool) -> int:
    """Return a number, or a percentage of `total`, as a number."""
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        share = int(value[:-1]) * total / 100
        return math.ceil(share) if round_up else math.floor(share)
    return value if isinstance(value, int) else 0


class Deployments(Controller):
    """Rolls out Deployments."""

    resource_name = "deployments.apps"
    owned_resource = "replicasets"

    def sync(self, obj: Object) -> float | None:
        deployment = obj
        wanted_hash = template_hash(deployment["spec"]["template"])
        sets, new = self._sets(deployment, wanted_hash)
        if deployment["spec"].get("paused"):
            self._scale_paused(deployment, sets)
        else:
            if new is None:
                new = self._create(deployment, sets, wanted_hash)
                sets, _ = self._sets(deployment, wanted_hash)
            else:
                self._note_revision(deployment, new, sets)
            old = [one for one in sets if one["metadata"]["uid"] != new["metadata"]["uid"]]
            self._step(deployment, new, old)
            self._forget_history(deployment, old)
        sets, new = self._sets(deployment, wanted_hash)  # as they are after this step
        return self._report(deployment, new, sets)

    def _sets(self, deployment: Object, wanted_hash: str) -> tuple[list[Object], Object | None]:
        """Return the sets of a deployment, the oldest first, and the one that has its template."""
        held = self._store.context.storage.table("replicasets.apps").in_namespace(deployment["metadata"]["namespace"])
        owned = [one.obj for one in held if (controller_of(one.obj) or {}).get("uid") == deployment["metadata"]["uid"]]
        new = next((one for one in owned if one["metadata"]["labels"].get(POD_TEMPLATE_HASH) == wanted_hash), None)
        return sorted(owned, key=_revision), new

    def _create(self, deployment: Object, sets: list[Object], wanted_hash: str) -> Object:
        """Create the ReplicaSet of a new template."""
        revision = max((_revision(one) for one in sets), default=0) + 1
        self._set_revision(deployment, revision)
        size = self._new_size(deployment, None, sets)
        made = self._store.create("replicasets", replica_set_of(deployment, wanted_hash, size, revision))
        if size:
            text = f"Scaled up replica set {made['metadata']['name']} from 0 to {size}"
            self.record(deployment, "ScalingReplicaSet", text)
        return made

    def _note_revision(self, deployment: Object, new: Object, sets: list[Object]) -> None:
        """Make a template that comes back, as after a rollback, the newest revision."""
        latest = max(_revision(one) for one in sets)
        if _revision(new) < latest:
            patch = {"metadata": {"annotations": {REVISION: str(latest + 1)}}}
            self._store.patch("replicasets", new["metadata"]["name"], patch, new["metadata"]["namespace"])
            latest += 1
        self._set_revision(deployment, latest)

    def _set_revision(self, deployment: Object, revision: int) -> None:
        metadata = deployment["metadata"]
        if (metadata.get("annotations") or {}).get(REVISION) != str(revision):
            patch = {"metadata": {"annotations": {REVISION: str(revision)}}}
            self._store.patch("deployments", metadata["name"], patch, metadata["namespace"])

    # --- sizes

    def _bounds(self, deployment: Object) -> tuple[int, int, int]:
        """Return the wanted size, the largest total, and the smallest number that must be available."""
        wanted = int(deployment["spec"]["replicas"])
        rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
        surge = whole(rolling.get("maxSurge", 0), wanted, round_up=True)
        unavailable = whole(rolling.get("maxUnavailable", 0), wanted, round_up=False)
        if surge == 0 and unavailable == 0:
            unavailable = 1
        return wanted, wanted + surge, wanted - min(unavailable, wanted)

    def _new_size(self, deployment: Object, new: Object | None, sets: list[Object]) -> int:
        """Return how large the new ReplicaSet may be now."""
        wanted, largest, _ = self._bounds(deployment)
        have = int(new["spec"]["replicas"]) if new is not None else 0
        others = sum(int(one["spec"]["replicas"]) for one in sets if one is not new)
        if deployment["spec"]["strategy"]["type"] == "Recreate":
            still_there = sum((one.get("status") or {}).get("replicas", 0) for one in sets if one is not new)
            return have if others or still_there else wanted
        if have >= wanted:
            return wanted
        return have + max(0, min(wanted - have, largest - have - others))

    def _step(self, deployment: Object, new: Object, old: list[Object]) -> None:
        """Change the size of one ReplicaSet, if the bounds allow it."""
        size = self._new_size(deployment, new, [*old, new])
        if size != new["spec"]["replicas"]:
            self._resize(deployment, new, size)
            return
        active = [one for one in old if one["spec"]["replicas"]]
        if not active:
            return
        if deployment["spec"]["strategy"]["type"] == "Recreate":
            for one in active:
                self._resize(deployment, one, 0)
            return
        _, _, smallest = self._bounds(deployment)
        total = sum(int(one["spec"]["replicas"]) for one in [*old, new])
        available = {one["metadata"]["uid"]: (one.get("status") or {}).get("availableReplicas", 0) for one in [*old, new]}
        lagging = int(new["spec"]["replicas"]) - available[new["metadata"]["uid"]]
        room = total - smallest - lagging
        # Pods that are not available go first: they do not count for the smallest number. Then those that are.
        unavailable = [(one, max(0, int(one["spec"]["replicas"]) - available[one["metadata"]["uid"]]), room) for one in active]
        room = min(room, sum(available.values()) - smallest)
        for one, useless, most in [*unavailable, *((one, int(one["spec"]["replicas"]), room) for one in active)]:
            if min(useless, most) > 0:
                self._resize(deployment, one, int(one["spec"]["replicas"]) - min(useless, most))
                return

    def _scale_paused(self, deployment: Object, sets: list[Object]) -> None:
        """Keep the size of a paused Deployment, as long as it has a single ReplicaSet with pods."""
        active = [one for one in sets if one["spec"]["replicas"]] or sets[-1:]
        if len(active) == 1 and active[0]["spec"]["replicas"] != deployment["spec"]["replicas"]:
            self._resize(deployment, active[0], int(deployment["spec"]["replicas"]))

    def _resize(self, deployment: Object, one: Object, size: int) -> None:
        before, name = one["spec"]["replicas"], one["metadata"]["name"]
        self._store.scale("replicasets", name, size, one["metadata"]["namespace"])
        direction = "up" if size > before else "down"
        text = f"Scaled {direction} replica set {name} from {before} to {size}"
        self.record(deployment, "ScalingReplicaSet", text)

    def _forget_history(self, deployment: Object, old: list[Object]) -> None:
        """Delete the oldest ReplicaSets without pods beyond the limit."""
        idle = [one for one in old if not one["spec"]["replicas"] and not (one.get("status") or {}).get("replicas")]
        for one in idle[: max(0, len(idle) - int(deployment["spec"].get("revisionHistoryLimit", 10)))]:
            self._store.delete("replicasets", one["metadata"]["name"], one["metadata"]["namespace"])

    # --- status

    def _report(self, deployment: Object, new: Object | None, sets: list[Object]) -> float | None:
        """Write the status; return in how many seconds the rollout is late."""
        statuses = [one.get("status") or {} for one in sets]
        wanted, _, smallest = self._bounds(deployment)
        total = sum(status.get("replicas", 0) for status in statuses)
        available = sum(status.get("availableReplicas", 0) for status in statuses)
        updated = ((new or {}).get("status") or {}).get("replicas", 0)
        counts = {
            "replicas": total,
            "updatedReplicas": updated,
            "readyReplicas": sum(status.get("readyReplicas", 0) for status in statuses),
            "availableReplicas": available,
            "unavailableReplicas": max(0, max(total, wanted) - available),
        }
        status: Object = {"observedGeneration": deployment["metadata"]["generation"]}
        status |= {key: value for key, value in counts.items() if value}
        is_done = updated == wanted == total == available
        conditions, again = self._conditions(deployment, status, new, is_done, available >= smallest)
        status["conditions"] = conditions
        self.report(deployment, status)
        return again

    def _conditions(
        self, deployment: Object, status: Object, new: Object | None, is_done: bool, is_available: bool
    ) -> tuple[list[Object], float | None]:
        """Return the conditions, and in how many seconds the rollout is late."""
        before, now = deployment.get("status") or {}, self._clock.now()
        moment, deadline = timestamp(now), float(deployment["spec"].get("progressDeadlineSeconds", 600))
        name, conditions = (new or {}).get("metadata", {}).get("name", ""), list(before.get("conditions") or ())

        def write(kind: str, is_true: bool, reason: str, text: str) -> None:
            more = {"reason": reason, "message": text, "lastUpdateTime": moment}
            conditions[:] = with_condition(conditions, kind, "True" if is_true else "False", moment, **more)

        reason, word = ("MinimumReplicasAvailable", "has") if is_available else ("MinimumReplicasUnavailable", "does not have")
        write("Available", is_available, reason, f"Deployment {word} minimum availability.")
        progress = condition(deployment, "Progressing")
        counted = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "observedGeneration")
        has_moved = any(status.get(key, 0) != before.get(key, 0) for key in counted)
        if is_done:
            write("Progressing", True, "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.')
            return conditions, None
        if progress is None or has_moved or progress["reason"] == "NewReplicaSetAvailable":
            write("Progressing", True, "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
            moved = [one | {"lastUpdateTime": moment} if one["type"] == "Progressing" else one for one in conditions]
            return moved, deadline
        left = seconds_of(progress["lastUpdateTime"]) + deadline - now
        if left <= 0 and progress["status"] == "True":
            write("Progressing", False, "ProgressDeadlineExceeded", f'ReplicaSet "{name}" has timed out progressing.')
        return conditions, left if left > 0 else None


def replica_set_of(deployment: Object, wanted_hash: str, size: int, revision: int) -> Object:
    """Return the ReplicaSet for a Deployment's template."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    template, selector = copied(spec["template"]), copied(spec["selector"])
    template["metadata"].setdefault("labels", {})[POD_TEMPLATE_HASH] = wanted_hash
    selector.setdefault("matchLabels", {})[POD_TEMPLATE_HASH] = wanted_hash
    return {
        "metadata": {
            "name": f"{metadata['name']}-{wanted_hash}",
            "namespace": metadata["namespace"],
            "labels": dict(template["metadata"]["labels"]),
            "annotations": {REVISION: str(revision)},
            "ownerReferences": [owned_by(deployment)],
        },
        "spec": {
            "replicas": size,
            "selector": selector,
            "template": template,
            "minReadySeconds": spec.get("minReadySeconds", 0),
        },
    }


def _revision(one: Object) -> int:
    text = (one["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0
