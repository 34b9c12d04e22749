"""Between the version an object is stored in and the version it is asked for in.

Events are kept as core events and translated to and from events.k8s.io by name. The versions of a custom resource
differ in nothing but their name, which is what the conversion strategy None means.
"""

from __future__ import annotations

from kubesched.apiserver.resources import Object, Resource

_EVENT_NAMES = {  # core name: name in events.k8s.io/v1
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES = {new: core for core, new in _EVENT_NAMES.items()}


def to_storage(obj: Object, resource: Resource, stored: Resource) -> Object:
    """Return `obj`, which came in the version of `resource`, in the version of `stored`."""
    return _translated(obj, resource, stored, _CORE_NAMES)


def from_storage(obj: Object, resource: Resource) -> Object:
    """Return a stored object in the version of `resource`."""
    return _translated(obj, resource, resource, _EVENT_NAMES)


def _translated(obj: Object, resource: Resource, target: Resource, names: dict[str, str]) -> Object:
    if resource.is_storage:
        return obj
    renamed = names if resource.table == "events" else {}
    result = {renamed.get(key, key): value for key, value in obj.items()}
    result["apiVersion"] = target.api_version
    return result
