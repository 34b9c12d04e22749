"""Quotas in a plan: which pods and volume claims a namespace has no room for, so that their controllers could not create them.

In: a cluster's ResourceQuotas with the pods and claims that they count, then each pod and claim that a plan would add. Out: for
each of those nothing, and it is counted; or why it would be refused, in the words of the ResourceQuota plugin. It is the
counting of the embedded API server over a store of its own; a cluster without quotas costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.embedded import ManualClock, ObjectStore
from kubesched.embedded.schema.resources import Resource
from kubesched.embedded.verbs.context import Context, key_of
from kubesched.embedded.verbs.writing import store as put
from kubesched.errors import Forbidden
from kubesched.kube.api import INFO, PersistentVolumeClaim, Pod, ResourceQuota, TopLevel, codec

_COUNTED = (Pod, PersistentVolumeClaim)


class PlannedQuotas:
    """What is used of a cluster's quotas while a plan adds to it."""

    def __init__(self, objects: Iterable[TopLevel] = ()) -> None:
        self._context: Context = ObjectStore(ManualClock(0.0), seed=0).context
        self._namespaces: set[str] = set()
        self._uncounted: dict[str, list[TopLevel]] = {}  # by namespace, until it has a quota
        for obj in objects:
            if isinstance(obj, ResourceQuota):
                self.add_quota(obj)
            elif isinstance(obj, _COUNTED):
                self.count(obj)

    def add_quota(self, quota: ResourceQuota) -> None:
        """Hold a namespace to a quota from now on."""
        self._put(quota)
        self._namespaces.add(quota.metadata.namespace)
        for obj in self._uncounted.pop(quota.metadata.namespace, ()):
            self._put(obj)

    def count(self, obj: Pod | PersistentVolumeClaim) -> None:
        """Count what is there, whatever quotas say."""
        namespace = obj.metadata.namespace
        if namespace in self._namespaces:
            self._put(obj)
        else:
            self._uncounted.setdefault(namespace, []).append(obj)

    def release(self, pod: Pod) -> None:
        """Count a pod no more: it goes before others come."""
        if pod.namespace in self._namespaces:
            resource = self._resource(pod)
            table, key = self._context.table(resource), key_of(resource, pod.namespace, pod.name)
            if key in table.entries:
                self._context.storage.remove(table, key)

    def refusal(self, obj: Pod | PersistentVolumeClaim) -> str:
        """Count one more, and return nothing; or return why there can be none."""
        namespace = obj.metadata.namespace
        if namespace in self._namespaces:
            try:
                self._context.quotas.check(self._resource(obj), codec.to_dict(obj))
            except Forbidden as error:
                return error.message.partition(" is forbidden: ")[2]
        self.count(obj)
        return ""

    def _put(self, obj: TopLevel) -> None:
        resource = self._resource(obj)
        put(self._context, resource, key_of(resource, obj.metadata.namespace, obj.metadata.name), codec.to_dict(obj))

    def _resource(self, obj: TopLevel) -> Resource:
        return self._context.resource(INFO[type(obj)].plural)
