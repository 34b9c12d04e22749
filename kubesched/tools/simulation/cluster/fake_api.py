"""The Writer port of a simulation: the API server that its scheduler writes to, in memory.

In: bindings, statuses, evictions, and updates of other objects. Out: changes of the simulated cluster, which posts them to the
engine's inbox. Writes are checked as an API server checks them: a pod that is gone, or has a node, cannot be bound. A claim for
which the scheduler chose a node gets its volume.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kubesched.errors import Conflict, NotFound
from kubesched.kube.api import PersistentVolume, PersistentVolumeClaim, Pod, PodCondition, codec
from kubesched.kube.values import SELECTED_NODE
from kubesched.scheduler.cluster import PodView, class_of_claim
from kubesched.scheduler.plugins.shared.volumes import is_fully_bound
from kubesched.tools.plan.claims import bound, provisioned
from kubesched.tools.simulation.cluster.simulated_cluster import PREEMPTED, SimulatedCluster, key_of
from kubesched.tools.simulation.pod_record import PodRecord

_with = msgspec.structs.replace


class FakeApi:
    """Applies writes to the simulated cluster. A binding takes `binding_seconds`."""

    def __init__(self, cluster: SimulatedCluster, binding_seconds: float = 0.0) -> None:
        self._cluster = cluster
        self._binding_seconds = binding_seconds

    async def bind(self, pod: PodView, node_name: str) -> None:
        """Start the pod on the node."""
        if self._binding_seconds:
            await self._cluster.clock.sleep(self._binding_seconds)
        record = self._alive(pod)
        if record.node:
            raise Conflict(409, "Conflict", f'pod {pod.name} is already assigned to node "{record.node}"')
        self._cluster.place(record, node_name)

    async def patch_pod_status(self, pod: PodView, status: Mapping[str, Any]) -> None:
        """Merge conditions and the nominated node into the pod."""
        record = self._alive(pod)
        self._cluster.put_pod(record, with_status(record.pod, status))

    async def patch_status(self, obj: Any, status: Mapping[str, Any]) -> None:
        """Merge a status into any other object."""
        raw = codec.to_dict(self._cluster.objects.get(key_of(obj), obj))
        raw["status"] = {**raw.get("status", {}), **{k: v for k, v in status.items() if v is not None}}
        self._cluster.put(codec.convert(raw, type(obj)))

    async def delete_pod(self, pod: PodView) -> None:
        """Evict a victim with its grace period."""
        self._cluster.evict(self._alive(pod), PREEMPTED)

    async def update(self, changed: Any, subresource: str = "") -> Any:
        """Replace an object; raise Conflict if it has changed since the caller read it."""
        if isinstance(changed, Pod):
            record = self._cluster.record(changed.key)
            if record is None or not record.is_alive or record.pod.metadata.uid != changed.metadata.uid:
                raise NotFound(404, "NotFound", f'pods "{changed.metadata.name}" not found')
            self._cluster.change(record, changed)
            return record.pod
        known = self._cluster.objects.get(key_of(changed))
        if known is None:
            raise NotFound(404, "NotFound", f"{changed.kind} {changed.key} not found")
        if changed.metadata.resource_version not in ("", known.metadata.resource_version):
            raise Conflict(409, "Conflict", f"{changed.kind} {changed.key} has been modified")
        return self._with_volumes(self._cluster.put(changed))

    def _with_volumes(self, written: Any) -> Any:
        """Act as volume controller and provisioner on a volume or claim that the scheduler wrote."""
        objects = self._cluster.objects
        if isinstance(written, PersistentVolume) and written.spec.claim_ref is not None:
            reference = written.spec.claim_ref
            claim = objects.get(("PersistentVolumeClaim", reference.namespace, reference.name))
            if claim is not None and not is_fully_bound(claim):
                self._cluster.put(bound(claim, written)[0])
        elif isinstance(written, PersistentVolumeClaim) and not is_fully_bound(written):
            storage_class = objects.get(("StorageClass", "", class_of_claim(written)))
            if storage_class is not None:
                node = self._cluster.nodes.get(written.metadata.annotations.get(SELECTED_NODE, ""))
                for made in bound(written, provisioned(written, storage_class, node)):
                    self._cluster.put(made)
        return written

    async def create(self, obj: Any) -> Any:
        """Store a new object."""
        return self._cluster.put(obj)

    async def delete(self, obj: Any) -> None:
        """Delete an object."""
        self._cluster.drop(obj)

    def _alive(self, pod: PodView) -> PodRecord:
        record = self._cluster.records.get(pod.uid)
        if record is None or not record.is_alive:
            raise NotFound(404, "NotFound", f'pods "{pod.name}" not found')
        return record


def with_status(pod: Pod, patch: Mapping[str, Any]) -> Pod:
    """Return a pod with a patch of its status merged in: conditions by type, and the nominated node."""
    status = pod.status
    if "nominatedNodeName" in patch:
        status = _with(status, nominated_node_name=patch["nominatedNodeName"] or "")
    if "conditions" in patch:
        new = [codec.convert({k: v for k, v in each.items() if v is not None}, PodCondition) for each in patch["conditions"]]
        types = {condition.type for condition in new}
        kept = [condition for condition in status.conditions if condition.type not in types]
        status = _with(status, conditions=(*kept, *new))
    return _with(pod, status=status)
