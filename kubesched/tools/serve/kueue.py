"""An AdmissionCheck controller for Kueue: a workload is admitted when all its pods fit now, and not on quota alone.

    AdmissionCheck  spec.controllerName: kubesched.io/fits     is marked Active
    Workload        status.admissionChecks[], state Pending    becomes Ready, or Retry with the reason

In: workloads with quota, as Kueue's API tells them. Out: a state. The pods of all pod sets, as they will be started in the
flavors that they were assigned, are placed by the solver on the live cluster. A workload that was just found to fit has no pods
yet; for some seconds its pods are placed before those of the next one, so that two do not get the same room.

A state is written together with the version of the workload that it is about. Of two replicas, or of two controllers with
checks of their own, the second one is refused and looks again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from kubesched.errors import ApiError, Conflict, NotFound
from kubesched.kube.client import MERGE_PATCH, Connection, Reflectors, Watched, collection_path
from kubesched.tools.serve.questions import MOST_PODS
from kubesched.tools.serve.service import PLACE, Service
from kubesched.tools.serve.wire import Refusal

log = logging.getLogger(__name__)

CONTROLLER = "kubesched.io/fits"
GROUP = "kueue.x-k8s.io"
_VERSIONS = (f"{GROUP}/v1beta2", f"{GROUP}/v1beta1")
CALLER = "kueue"
PENDING, READY, RETRY = "Pending", "Ready", "Retry"
RETRY_AFTER_SECONDS = 30
_PROMISED_SECONDS = 10.0
_MOST_PROMISED = 100
_AGAIN_SECONDS = 5.0
_MOST_MESSAGE = 1024
_MOST_NODES_NAMED = 3

Object = dict[str, Any]


class AdmissionChecks:
    """Follows workloads, and gives our checks their states."""

    def __init__(self, service: Service, connection: Connection) -> None:
        self._service, self._connection = service, connection
        self._workloads: dict[str, Object] = {}
        self._checks: dict[str, Object] = {}
        self._flavors: dict[str, Object] = {}
        self._changed: dict[str, None] = {}
        """Workloads and checks to look at, oldest first."""
        self._again: set[str] = set()
        """What could not be checked, and will be looked at again after a while."""
        self._woken = asyncio.Event()
        self._promised: dict[str, tuple[float, list[Object]]] = {}
        self._version = ""

    async def run(self) -> None:
        """Follow and answer until cancelled."""
        rows = [
            Watched(kind, None, plural, _VERSIONS, "workloads of Kueue are not checked")
            for kind, plural in (
                ("ResourceFlavor", "resourceflavors"),
                ("AdmissionCheck", "admissionchecks"),
                ("Workload", "workloads"),
            )
        ]
        reflectors = await Reflectors.prepare(self._connection, rows, self)
        self._version = reflectors.served.version_of(rows[-1]) or _VERSIONS[0]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(reflectors.run())
            await reflectors.wait_synced()
            self._version = reflectors.served.version_of(rows[-1]) or self._version
            tasks.create_task(self._answer())

    # What the reflectors tell

    def deliver(self, kind: str, old: Any | None, new: Any | None) -> None:
        """Take in a change."""
        kept = {"Workload": self._workloads, "AdmissionCheck": self._checks, "ResourceFlavor": self._flavors}[kind]
        some: Any = new if new is not None else old
        key = some.key
        if new is not None:
            kept[key] = new.content
        else:
            kept.pop(key, None)
            if kind == "Workload":
                self._promised.pop(key, None)
        if kind == "Workload":
            self._changed[key] = None
        elif kind == "AdmissionCheck":  # Kueue writes it into the workloads that it is for, which are told of then
            self._changed[f"{kind} {key}"] = None
        self._woken.set()

    def synced(self, kind: str) -> None:
        """Take notice that a kind's first list has been delivered."""

    # Answering

    async def _answer(self) -> None:
        while True:
            if not self._changed:
                self._woken.clear()
                await self._woken.wait()
            key = next(iter(self._changed))
            del self._changed[key]
            try:
                if key.startswith("AdmissionCheck "):
                    await self._mark_active(key.partition(" ")[2])
                else:
                    await self._check(key)
            except (Conflict, NotFound):
                continue  # it has changed, and comes again
            except Exception as error:  # whatever an object of another shape leads to, it must not end the service
                log.warning("%s cannot be checked: %r", key, error)
                if key not in self._again:  # or each change of a broken object would be one more timer for ever
                    self._again.add(key)
                    asyncio.get_running_loop().call_later(_AGAIN_SECONDS, self._look_again, key)

    def _look_again(self, key: str) -> None:
        self._again.discard(key)
        self._changed[key] = None
        self._woken.set()

    async def _mark_active(self, name: str) -> None:
        """Say that somebody carries out a check, without which Kueue holds back every queue that has it."""
        check = self._checks.get(name)
        if check is None or check.get("spec", {}).get("controllerName") != CONTROLLER:
            return
        conditions: list[Object] = check.get("status", {}).get("conditions", [])
        if any(each["type"] == "Active" and each["status"] == "True" for each in conditions):
            return
        active = {
            "type": "Active",
            "status": "True",
            "reason": "Active",
            "message": "kubesched places the pods of workloads on the cluster as it is",
            "lastTransitionTime": _now(),
            "observedGeneration": check["metadata"].get("generation", 0),
        }
        others = [each for each in conditions if each["type"] != "Active"]
        await self._patch(
            f"{collection_path(self._version, 'admissionchecks')}/{quote(name)}", check, {"conditions": [*others, active]}
        )

    async def _check(self, key: str) -> None:
        workload = self._workloads.get(key)
        if workload is None:
            return
        states: list[Object] = workload.get("status", {}).get("admissionChecks", [])
        ours = {each["name"] for each in states if self._is_ours(each["name"]) and each["state"] == PENDING}
        if not ours or not _has_quota(workload):
            return
        state, message = await self._state_of(key, workload)
        told: Object = {"state": state, "message": message[:_MOST_MESSAGE], "lastTransitionTime": _now()}
        if state == RETRY:
            told["requeueAfterSeconds"] = RETRY_AFTER_SECONDS
        states = [each | told if each["name"] in ours else each for each in states]
        namespace, _, name = key.partition("/")
        path = f"{collection_path(self._version, 'workloads', namespace)}/{quote(name)}"
        try:
            await self._patch(path, workload, {"admissionChecks": states})
        except ApiError:
            self._promised.pop(key, None)
            raise
        self._service.metrics.checked(state)
        log.info("workload %s: %s: %s", key, state, message)

    def _is_ours(self, name: str) -> bool:
        check = self._checks.get(name)
        return check is not None and check.get("spec", {}).get("controllerName") == CONTROLLER

    async def _state_of(self, key: str, workload: Object) -> tuple[str, str]:
        """Return whether a workload fits now, and why not; raise SchedulerError if that cannot be found out just now."""
        count = sum(n for _, _, n in self._pod_sets(workload))
        if count > MOST_PODS:
            return RETRY, f"it has {count} pods; at most {MOST_PODS} are placed together"
        pods = list(self._pods(workload))
        before = self._promised_pods()
        body = msgspec.json.encode({"pods": [*before, *pods]})
        try:
            reply = await self._service.ask(CALLER, PLACE, body)
        except Refusal as error:
            if error.code == "INVALID_ARGUMENT":
                return RETRY, f"its pods cannot be placed: {error}"
            raise
        told = msgspec.json.decode(reply.body)["pods"][-len(pods) :] if pods else []
        waiting = [each for each in told if not each.get("node")]
        if waiting:
            first = waiting[0]
            return RETRY, f"{len(waiting)} of {len(pods)} pods do not fit now; {first['name']}: {first['message']}"
        if len(self._promised) < _MOST_PROMISED:
            self._promised[key] = time.monotonic() + _PROMISED_SECONDS, pods
        nodes = sorted(Counter(each["node"] for each in told).items(), key=lambda each: (-each[1], each[0]))
        named = ", ".join(f"{node} x{n}" for node, n in nodes[:_MOST_NODES_NAMED])
        more = f" and {len(nodes) - _MOST_NODES_NAMED} other nodes" if len(nodes) > _MOST_NODES_NAMED else ""
        return READY, f"all {len(pods)} pods fit now: {named}{more}"

    def _promised_pods(self) -> list[Object]:
        now = time.monotonic()
        self._promised = {key: kept for key, kept in self._promised.items() if kept[0] > now}
        return [pod for _, pods in self._promised.values() for pod in pods]

    def _pod_sets(self, workload: Object) -> Iterator[tuple[Object, Object, int]]:
        """Yield each pod set with its assignment, and how many pods of it still need room."""
        status = workload.get("status", {})
        assigned = {each["name"]: each for each in status.get("admission", {}).get("podSetAssignments", [])}
        reclaimed = {each["name"]: each["count"] for each in status.get("reclaimablePods", [])}
        for pod_set in workload["spec"].get("podSets", []):
            name = pod_set.get("name", "main")
            assignment = assigned.get(name, {})
            count = assignment.get("count", pod_set.get("count", 1)) - reclaimed.get(name, 0)
            yield pod_set, assignment, max(count, 0)

    def _pods(self, workload: Object) -> Iterator[Object]:
        """Yield the pods as they will be started: with the node labels of their flavors, and what other checks have added."""
        meta = workload["metadata"]
        updates = [
            update for check in workload["status"].get("admissionChecks", []) for update in check.get("podSetUpdates", [])
        ]
        for pod_set, assignment, count in self._pod_sets(workload):
            name = pod_set.get("name", "main")
            template = pod_set.get("template", {})
            own = template.get("metadata", {})
            flavors = [self._flavors.get(each, {}).get("spec", {}) for each in set(assignment.get("flavors", {}).values())]
            added = [
                {"nodeSelector": each.get("nodeLabels", {}), "tolerations": each.get("tolerations", [])} for each in flavors
            ]
            added += [each for each in updates if each.get("name") == name]
            spec = dict(template.get("spec", {}))
            selector, tolerations = dict(spec.get("nodeSelector", {})), list(spec.get("tolerations", []))
            labels = dict(own.get("labels", {}))
            for each in added:
                selector |= each.get("nodeSelector", {})
                tolerations += each.get("tolerations", [])
                labels |= each.get("labels", {})
            spec |= {"nodeSelector": selector, "tolerations": tolerations}
            for i in range(count):
                yield {
                    "metadata": {
                        "name": f"{meta['name']}-{name}-{i}",
                        "namespace": meta["namespace"],
                        "labels": labels,
                        "annotations": own.get("annotations", {}),
                    },
                    "spec": spec,
                }

    async def _patch(self, path: str, obj: Object, status: Object) -> None:
        version = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        body = msgspec.json.encode({"metadata": version, "status": status})
        await self._connection.request("PATCH", f"{path}/status", body, MERGE_PATCH)


def _has_quota(workload: Object) -> bool:
    conditions = workload.get("status", {}).get("conditions", [])
    return any(each["type"] == "QuotaReserved" and each["status"] == "True" for each in conditions)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
