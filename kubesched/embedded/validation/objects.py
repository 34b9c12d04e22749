"""Validation: whether a complete object may be stored, with a cause for every field that is wrong.

In: a defaulted, admitted object, and on update the one it replaces. Out: nothing, or a 422 that names the fields.
Metadata of every kind is judged here; the fields of a kind by the function registered for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from kubesched.embedded.admission.qos import amount
from kubesched.embedded.admission.services import service_problems
from kubesched.embedded.custom import definition_problems, schema_of, value_problems
from kubesched.embedded.http.refusals import (
    Cause,
    duplicate,
    forbidden_field,
    invalid,
    invalid_value,
    invalid_values,
    not_supported,
    required,
    too_long,
)
from kubesched.embedded.resources import Object, Resource
from kubesched.embedded.storage.selectors import selects
from kubesched.embedded.validation import policies as policy_validation
from kubesched.embedded.validation.naming import is_label_key, is_label_value, label_value_faults, qualified_name_faults
from kubesched.embedded.validation.pods import changed_pod_problems, pod_problems, template_problems

MAX_ANNOTATION_BYTES = 256 * 1024
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_IMMUTABLE = "field is immutable"
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_PLAIN_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_OWNER_FIELDS = {
    "apiVersion": "version must not be empty",
    "kind": "must not be empty",
    "name": "must not be empty",
    "uid": "must not be empty",
}


def check_new(resource: Resource, obj: Object) -> None:
    """Refuse a new object that may not be stored."""
    causes = _metadata_problems(obj) + _own_problems(resource, obj)
    if resource.table == "pods" and obj["spec"].get("ephemeralContainers"):
        causes.append(forbidden_field("spec.ephemeralContainers", "cannot be set on create"))
    _refuse(resource, obj, causes)


def check_changed(resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Refuse a change that may not be stored."""
    causes = _metadata_problems(new) + _changed_metadata_problems(new, old)
    if not subresource:
        causes += _own_problems(resource, new)
    changed = _ON_CHANGE.get(resource.table)
    if changed is not None and subresource in ("", "resize", "ephemeralcontainers"):
        causes += changed(new, old, subresource)
    _refuse(resource, new, causes)


def _refuse(resource: Resource, obj: Object, causes: list[Cause]) -> None:
    if causes:
        raise invalid(resource, obj["metadata"].get("name", ""), causes)


def _own_problems(resource: Resource, obj: Object) -> list[Cause]:
    if resource.custom is not None:
        return list(value_problems(obj, schema_of(resource)))
    check = _CHECKS.get(resource.table) or policy_validation.CHECKS.get(resource.table)
    return check(obj) if check is not None else []


def _metadata_problems(obj: Object) -> list[Cause]:
    metadata = obj["metadata"]
    causes = label_problems(metadata.get("labels"), "metadata.labels")
    total = 0
    for key, value in (metadata.get("annotations") or {}).items():
        if not is_label_key(key.lower()):
            causes += invalid_values("metadata.annotations", key, qualified_name_faults(key.lower()))
        total += len(key) + len(value)
    if total > MAX_ANNOTATION_BYTES:
        causes.append(too_long("metadata.annotations", MAX_ANNOTATION_BYTES))
    if metadata.get("generation", 0) < 0:
        causes.append(invalid_value("metadata.generation", metadata["generation"], "must be greater than or equal to 0"))
    if metadata.get("ownerReferences"):
        causes += _owner_problems(metadata["ownerReferences"])
    for at, finalizer in enumerate(metadata.get("finalizers") or ()):
        if not is_label_key(finalizer):
            causes += invalid_values("metadata.finalizers", finalizer, qualified_name_faults(finalizer))
        if "/" not in finalizer and finalizer not in _PLAIN_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(invalid_value(f"metadata.finalizers[{at}]", finalizer, text))
    return causes


def _owner_problems(references: list[Object]) -> list[Cause]:
    path = "metadata.ownerReferences"
    causes = []
    for reference in references:
        for field, text in _OWNER_FIELDS.items():
            if not reference.get(field):
                causes.append(invalid_value(f"{path}.{field}", "", text))
    masters = [f"{one.get('kind')}/{one.get('name')}" for one in references if one.get("controller")]
    if len(masters) > 1:
        text = 'Only one reference can have Controller set to true. Found "true" in references for '
        causes.append(invalid_value(path, references, f"{text}{masters[0]} and {masters[1]}"))
    return causes


def _changed_metadata_problems(new: Object, old: Object) -> list[Cause]:
    before = old["metadata"]
    added = [one for one in new["metadata"].get("finalizers") or () if one not in (before.get("finalizers") or ())]
    if "deletionTimestamp" not in before or not added:
        return []
    listed = ", ".join(f'"{one}"' for one in added)
    text = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [forbidden_field("metadata.finalizers", text)]


def label_problems(labels: dict[str, str] | None, path: str) -> list[Cause]:
    causes = []
    for key, value in (labels or {}).items():
        if not is_label_key(key):
            causes += invalid_values(path, key, qualified_name_faults(key))
        if not is_label_value(value):
            causes += invalid_values(path, value, label_value_faults(value))
    return causes


def _node(node: Object) -> list[Cause]:
    causes = []
    seen = set()
    for at, taint in enumerate((node.get("spec") or {}).get("taints") or ()):
        path = f"metadata.taints[{at}]"  # the API says so, although they are in the spec
        if not is_label_key(taint.get("key", "")):
            causes += invalid_values(f"{path}.key", taint.get("key", ""), qualified_name_faults(taint.get("key", "")))
        if not is_label_value(taint.get("value", "")):
            causes += invalid_values(f"{path}.value", taint["value"], label_value_faults(taint["value"]))
        if not taint.get("effect"):
            causes.append(required(f"{path}.effect"))
        elif taint["effect"] not in _TAINT_EFFECTS:
            causes.append(not_supported(f"{path}.effect", taint["effect"], _TAINT_EFFECTS))
        identity = (taint.get("key"), taint.get("effect"))
        if identity in seen:
            causes.append(duplicate(path, taint, "taints must be unique by key and effect pair"))
        seen.add(identity)
    status = node.get("status") or {}
    for side in ("capacity", "allocatable"):
        for name, there in (status.get(side) or {}).items():
            if amount(there) < 0:
                causes.append(invalid_value(f"status.{side}.{name}", there, "must be greater than or equal to 0"))
    return causes


def _stateful_set(obj: Object) -> list[Cause]:
    """Judge the template with the volumes that each pod will have: its containers may mount what the claims will give."""
    spec = obj["spec"]
    causes = []
    claimed = {}
    for at, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        name = (claim.get("metadata") or {}).get("name", "")
        claimed[name] = {"name": name, "persistentVolumeClaim": {"claimName": name}}
        causes += _claim_spec_problems(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{at}].spec")
    inner = spec["template"]["spec"]
    kept = [one for one in inner.get("volumes") or () if one.get("name") not in claimed]
    template = {**spec["template"], "spec": {**inner, "volumes": [*kept, *claimed.values()]}}
    return causes + _workload({**obj, "spec": {**spec, "template": template}})


def _workload(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = _not_negative(spec, "replicas", "spec")
    selector = spec.get("selector")
    labels = spec["template"]["metadata"].get("labels") or {}
    if not selector or not (selector.get("matchLabels") or selector.get("matchExpressions")):
        causes.append(required("spec.selector"))
        selector = None
    if not selects(selector, labels):
        text = "`selector` does not match template `labels`"
        causes.append(invalid_value("spec.template.metadata.labels", labels or None, text))
    causes += template_problems(spec["template"], "spec.template")
    policy = spec["template"]["spec"].get("restartPolicy")
    if policy != "Always":
        causes.append(not_supported("spec.template.spec.restartPolicy", policy, ("Always",)))
    rolling = (spec.get("strategy") or {}).get("rollingUpdate") or {}
    if rolling and all(rolling.get(side) in (0, "0%") for side in ("maxSurge", "maxUnavailable")):
        path = "spec.strategy.rollingUpdate.maxUnavailable"
        causes.append(invalid_value(path, rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0"))
    return causes


def _job(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = []
    for field in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        causes += _not_negative(spec, field, "spec")
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        causes.append(required("spec.completions", "when completion mode is Indexed"))
    causes += template_problems(spec["template"], "spec.template")
    policy = spec["template"]["spec"].get("restartPolicy")
    if policy not in ("OnFailure", "Never"):
        causes.append(required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    return causes


def _budget(obj: Object) -> list[Cause]:
    spec = obj.get("spec") or {}
    causes = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        text = "minAvailable and maxUnavailable cannot be both set"
        causes.append(invalid_value("spec", spec, text))
    for field in ("minAvailable", "maxUnavailable"):
        causes += _count_or_percentage(spec, field)
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy not in (None, "IfHealthyBudget", "AlwaysAllow"):
        causes.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget")))
    return causes


def _count_or_percentage(spec: Object, field: str) -> list[Cause]:
    value = spec.get(field)
    if value is None:
        return []
    text = ""
    if isinstance(value, int):
        text = "must be greater than or equal to 0" if value < 0 else ""
    elif not re.fullmatch(r"[0-9]{1,9}%", value):
        text = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
        text += "regex used for validation is '[0-9]+%')"
    elif int(value[:-1]) > 100:
        text = "must not be greater than 100%"
    return [invalid_value(f"spec.{field}", value, text)] if text else []


def _priority_class(obj: Object) -> list[Cause]:
    causes: list[Cause] = []
    name, value = obj["metadata"]["name"], obj.get("value")
    if value is None:
        obj["value"] = value = 0
    if name.startswith("system-") and name not in ("system-cluster-critical", "system-node-critical"):
        text = "priority class names with 'system-' prefix are reserved for system use only. error: "
        causes.append(forbidden_field("metadata.name", f"{text}{name} is not a known system priority class"))
    elif value > 1_000_000_000 and not name.startswith("system-"):
        causes.append(forbidden_field("value", "maximum allowed value of a user defined priority is 1000000000"))
    policy = obj.get("preemptionPolicy")
    if policy not in ("PreemptLowerPriority", "Never"):
        causes.append(not_supported("preemptionPolicy", policy, ("PreemptLowerPriority", "Never")))
    return causes


def _volume_claim(obj: Object) -> list[Cause]:
    return _claim_spec_problems(obj.get("spec") or {}, "spec")


def _claim_spec_problems(spec: Object, path: str) -> list[Cause]:
    causes = []
    if not spec.get("accessModes"):
        causes.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    for mode in spec.get("accessModes") or ():
        if mode not in _ACCESS_MODES:
            causes.append(not_supported(f"{path}.accessModes", mode, _ACCESS_MODES))
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if asked is None:
        causes.append(required(f"{path}.resources[storage]"))
    elif amount(asked) <= 0:
        causes.append(invalid_value(f"{path}.resources[storage]", asked, "must be greater than zero"))
    return causes


def _persistent_volume(obj: Object) -> list[Cause]:
    spec = obj.get("spec") or {}
    causes = []
    if not spec.get("accessModes"):
        causes.append(required("spec.accessModes"))
    if not (spec.get("capacity") or {}).get("storage"):
        causes.append(required("spec.capacity"))
    if spec.get("local") is not None and not (spec.get("nodeAffinity") or {}).get("required"):
        causes.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    return causes


def _storage_class(obj: Object) -> list[Cause]:
    causes = []
    if not obj.get("provisioner"):
        causes.append(required("provisioner"))
    mode = obj.get("volumeBindingMode")
    if mode not in ("Immediate", "WaitForFirstConsumer"):
        causes.append(not_supported("volumeBindingMode", mode, ("Immediate", "WaitForFirstConsumer")))
    if obj.get("reclaimPolicy") not in ("Delete", "Retain"):
        causes.append(not_supported("reclaimPolicy", obj.get("reclaimPolicy"), ("Delete", "Retain")))
    return causes


def _lease(obj: Object) -> list[Cause]:
    spec = obj.get("spec") or {}
    causes = []
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        causes.append(invalid_value("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        causes.append(invalid_value("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    return causes


def _event(obj: Object) -> list[Cause]:
    involved = obj.get("involvedObject") or {}
    namespace = obj["metadata"].get("namespace", "")
    expected = involved.get("namespace") or "default"
    if namespace != expected:
        return [invalid_value("involvedObject.namespace", involved.get("namespace", ""), "does not match event.namespace")]
    return []


def _not_negative(spec: Object, field: str, path: str) -> list[Cause]:
    value = spec.get(field)
    if value is not None and value < 0:
        return [invalid_value(f"{path}.{field}", value, "must be greater than or equal to 0")]
    return []


def _changed_workload(new: Object, old: Object, subresource: str) -> list[Cause]:
    if new["spec"].get("selector") != old["spec"].get("selector"):
        return [invalid_value("spec.selector", new["spec"].get("selector"), _IMMUTABLE)]
    return []


def _changed_stateful_set(new: Object, old: Object, subresource: str) -> list[Cause]:
    free = {"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"}
    free |= {"persistentVolumeClaimRetentionPolicy", "minReadySeconds"}
    kept = [{key: value for key, value in one["spec"].items() if key not in free} for one in (new, old)]
    if kept[0] == kept[1]:
        return []
    text = (
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
        "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
    )
    return [forbidden_field("spec", text)]


def _changed_job(new: Object, old: Object, subresource: str) -> list[Cause]:
    causes = _changed_workload(new, old, subresource)
    if new["spec"].get("completions") != old["spec"].get("completions") and new["spec"].get("completionMode") != "Indexed":
        causes.append(invalid_value("spec.completions", new["spec"].get("completions"), _IMMUTABLE))
    if new["spec"]["template"] != old["spec"]["template"] and not old["spec"].get("suspend"):
        causes.append(invalid_value("spec.template", "changed", _IMMUTABLE))
    return causes


def _unchangeable(*paths: str) -> Callable[[Object, Object, str], list[Cause]]:
    def check(new: Object, old: Object, subresource: str) -> list[Cause]:
        causes = []
        for path in paths:
            after, before = _at(new, path), _at(old, path)
            if after != before:
                causes.append(invalid_value(path, after, _IMMUTABLE))
        return causes

    return check


def _changed_pod_group(new: Object, old: Object, subresource: str) -> list[Cause]:
    """A gang may become larger or smaller; all else stays."""
    kept = [deepcopy(each["spec"]) for each in (new, old)]
    for spec in kept:
        gang = _at(spec, "schedulingPolicy.gang")
        if isinstance(gang, dict):
            gang["minCount"] = None
    return [] if kept[0] == kept[1] else [invalid_value("spec", new["spec"], _IMMUTABLE)]


def _at(obj: Any, path: str) -> Any:
    for step in path.split("."):
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def _changed_data(new: Object, old: Object, subresource: str) -> list[Cause]:
    """What is marked immutable stays, and stays so."""
    if not old.get("immutable"):
        return []
    text = "field is immutable when `immutable` is set"
    fixed = [name for name in ("data", "binaryData") if new.get(name) != old.get(name)]
    return [forbidden_field(name, text) for name in ([] if new.get("immutable") else ["immutable"]) + fixed]


def _changed_priority_class(new: Object, old: Object, subresource: str) -> list[Cause]:
    causes = []
    if new.get("value") != old.get("value"):
        causes.append(forbidden_field("value", "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        causes.append(invalid_value("preemptionPolicy", new.get("preemptionPolicy"), _IMMUTABLE))
    return causes


def _changed_claim(new: Object, old: Object, subresource: str) -> list[Cause]:
    """A claim's spec is fixed but for its size, and for what the binder fills in."""
    free = {"resources", "volumeAttributesClassName"}
    if not old["spec"].get("volumeName"):
        free.add("volumeName")
    if not old["spec"].get("storageClassName"):
        free.add("storageClassName")
    kept = [{key: value for key, value in one["spec"].items() if key not in free} for one in (new, old)]
    if kept[0] == kept[1]:
        return []
    text = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
    return [forbidden_field("spec", text)]


_CHECKS: dict[str, Callable[[Object], list[Cause]]] = {
    "pods": pod_problems,
    "nodes": _node,
    "deployments.apps": _workload,
    "replicasets.apps": _workload,
    "statefulsets.apps": _stateful_set,
    "daemonsets.apps": _workload,
    "jobs.batch": _job,
    "poddisruptionbudgets.policy": _budget,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "persistentvolumeclaims": _volume_claim,
    "persistentvolumes": _persistent_volume,
    "storageclasses.storage.k8s.io": _storage_class,
    "services": service_problems,
    "leases.coordination.k8s.io": _lease,
    "events": _event,
    "customresourcedefinitions.apiextensions.k8s.io": definition_problems,
}
_ON_CHANGE: dict[str, Callable[[Object, Object, str], list[Cause]]] = {
    "pods": changed_pod_problems,
    "configmaps": _changed_data,
    "secrets": _changed_data,
    "deployments.apps": _changed_workload,
    "replicasets.apps": _changed_workload,
    "daemonsets.apps": _changed_workload,
    "statefulsets.apps": _changed_stateful_set,
    "jobs.batch": _changed_job,
    "priorityclasses.scheduling.k8s.io": _changed_priority_class,
    "persistentvolumeclaims": _changed_claim,
    "storageclasses.storage.k8s.io": _unchangeable("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
    "runtimeclasses.node.k8s.io": _unchangeable("handler"),
    "ingressclasses.networking.k8s.io": _unchangeable("spec.controller"),
    "resourceclaims.resource.k8s.io": _unchangeable("spec"),
    "resourceclaimtemplates.resource.k8s.io": _unchangeable("spec"),
    "podgroups.scheduling.k8s.io": _changed_pod_group,
    "compositepodgroups.scheduling.k8s.io": _unchangeable("spec"),
    "volumeattachments.storage.k8s.io": _unchangeable("spec"),
    "rolebindings.rbac.authorization.k8s.io": _unchangeable("roleRef"),
    "clusterrolebindings.rbac.authorization.k8s.io": _unchangeable("roleRef"),
}
