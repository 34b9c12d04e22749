"""Conversion between the version that an object is stored in and the version of a request.

Events are stored as core events; events.k8s.io has other names for the same fields. Pod groups and workloads are stored as
v1beta1; v1alpha2 writes the template and the disruption mode differently. The versions of a custom resource differ in
apiVersion only, as the conversion strategy None says.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.embedded.schema.resources import Object, Resource

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
    """Return `obj`, which came in the version of `resource`, in the storage version `stored`."""
    return _translated(obj, resource, stored, _CORE_NAMES, _from_v1alpha2)


def from_storage(obj: Object, resource: Resource) -> Object:
    """Return a stored object in the version of `resource`."""
    return _translated(obj, resource, resource, _EVENT_NAMES, _to_v1alpha2)


def _translated(
    obj: Object, resource: Resource, target: Resource, names: dict[str, str], of_groups: Callable[[Object], Object]
) -> Object:
    """Return an object with its fields renamed and its groups converted, if its version is not the storage version."""
    if resource.is_storage:
        return obj
    renamed = names if resource.table == "events" else {}
    result = {renamed.get(key, key): value for key, value in obj.items()}
    result["apiVersion"] = target.api_version
    if resource.api_version == "scheduling.k8s.io/v1alpha2" and isinstance(result.get("spec"), dict):
        spec = result["spec"] = of_groups(result["spec"])
        if "podGroupTemplates" in spec:
            spec["podGroupTemplates"] = [of_groups(template) for template in spec["podGroupTemplates"]]
    return result


def _from_v1alpha2(spec: Object) -> Object:
    """Return the spec of a group, or of a template for groups, as v1beta1 writes it."""
    made = dict(spec)
    named = (made.pop("podGroupTemplateRef", None) or {}).get("workload")
    if named:
        made["workloadRef"] = {"workloadName": named["workloadName"], "templateName": named["podGroupTemplateName"]}
    if "disruptionMode" in made:
        made["disruptionMode"] = {"all": {}} if made["disruptionMode"] == "PodGroup" else {"single": {}}
    return made


def _to_v1alpha2(spec: Object) -> Object:
    """Return the same as v1alpha2 writes it, without the fields that v1alpha2 does not have."""
    left_out = ("parentCompositePodGroupName", "preemptionPolicy", "compositePodGroupTemplates")
    made = {key: value for key, value in spec.items() if key not in left_out}
    named = made.pop("workloadRef", None)
    if named:
        workload = {"workloadName": named["workloadName"], "podGroupTemplateName": named["templateName"]}
        made["podGroupTemplateRef"] = {"workload": workload}
    if "disruptionMode" in made:
        made["disruptionMode"] = "PodGroup" if "all" in (made["disruptionMode"] or {}) else "Pod"
    return made
