"""Validation: whether an object may be stored, with a cause for every field that is wrong.

In: an object with its defaults, after admission; on update also the one it replaces. Out: nothing, or a 422 that names the
fields. Metadata is checked here for every kind. Rules of single fields stand in schema/tables. What depends on several fields
has one function for each type, here and in pods.py. What may not change has a function, or a list of fields, for each
resource.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

from kubesched.embedded.admission.amounts import amount
from kubesched.embedded.api_errors import invalid
from kubesched.embedded.schema.custom_resources import definition_problems, schema_of, value_problems
from kubesched.embedded.schema.language import root_shape
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.schema.walking import Walk
from kubesched.embedded.storage.selectors import selects
from kubesched.embedded.validation import field, pods
from kubesched.embedded.validation.cron import ScheduleError, read_schedule, zone_named
from kubesched.embedded.validation.field import Cause
from kubesched.embedded.validation.rules import NOT_NEGATIVE, Check, check_of
from kubesched.kube.values import label_value_complaints, qualified_name_complaints

MAX_ANNOTATION_BYTES = 256 * 1024
_IMMUTABLE = "field is immutable"
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_PLAIN_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")  # finalizers without a domain
_SCOPES = (
    *("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity"),
    "VolumeAttributesClass",
)
_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_QUOTA_NAMES = frozenset(
    (
        *("cpu", "memory", "ephemeral-storage", "pods", "services", "replicationcontrollers", "resourcequotas", "secrets"),
        *("configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers", "requests.storage"),
        *(f"{side}.{name}" for side in ("requests", "limits") for name in ("cpu", "memory", "ephemeral-storage")),
    )
)
# What may not be more than what in a LimitRange; where it is, which field is blamed and how the two are called.
_ORDERS = (
    ("min", "max", "min", "min value {0} is greater than max value {1}"),
    ("min", "defaultRequest", "defaultRequest", "min value {0} is greater than default request value {1}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {0} is greater than max value {1}"),
    ("defaultRequest", "default", "defaultRequest", "default request value {0} is greater than default limit value {1}"),
    ("min", "default", "min", "min value {0} is greater than default value {1}"),
    ("default", "max", "max", "default value {0} is greater than max value {1}"),
)


def check_new(resource: Resource, obj: Object) -> None:
    """Refuse a new object that may not be stored."""
    causes = [*_metadata(obj), *_own_problems(resource, obj)]
    if resource.table == "pods" and obj["spec"].get("ephemeralContainers"):
        causes.append(field.forbidden("spec.ephemeralContainers", "cannot be set on create"))
    _refuse(resource, obj, causes)


def check_changed(resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Refuse a change that may not be stored."""
    causes = [*_metadata(new), *_new_finalizers(new, old)]
    if not subresource:
        causes += _own_problems(resource, new)
    changed = _ON_CHANGE.get(resource.table)
    if resource.table == "pods" and subresource in ("", "resize", "ephemeralcontainers"):
        causes += pods.changed_pod_problems(new, old, subresource)
    elif changed is not None and not subresource:
        causes += changed(new, old)
    _refuse(resource, new, causes)


def _refuse(resource: Resource, obj: Object, causes: list[Cause]) -> None:
    if causes:
        raise invalid(resource, obj["metadata"].get("name", ""), causes)


def _own_problems(resource: Resource, obj: Object) -> Iterable[Cause]:
    """Return what is wrong with an object apart from its metadata."""
    if resource.custom is not None:
        return value_problems(obj, schema_of(resource))
    if resource.table == "statefulsets.apps":
        obj = _with_claimed_volumes(obj)
    shape = root_shape(obj["apiVersion"], obj["kind"])
    return _walk(obj, shape) if shape is not None else ()


# --- metadata


def _metadata(obj: Object) -> Iterator[Cause]:
    """Yield what is wrong with metadata: labels, annotations, owners, finalizers."""
    metadata = obj["metadata"]
    yield from pods.label_problems(metadata.get("labels"), "metadata.labels")
    total = 0
    for key, value in (metadata.get("annotations") or {}).items():
        yield from field.invalid_each("metadata.annotations", key, qualified_name_complaints(key.lower()))
        total += len(key) + len(value)
    if total > MAX_ANNOTATION_BYTES:
        yield field.too_long("metadata.annotations", MAX_ANNOTATION_BYTES)
    if metadata.get("generation", 0) < 0:
        yield field.invalid("metadata.generation", metadata["generation"], NOT_NEGATIVE)
    references = metadata.get("ownerReferences") or ()
    for reference in references:
        for name in ("apiVersion", "kind", "name", "uid"):
            if not reference.get(name):
                text = "version must not be empty" if name == "apiVersion" else "must not be empty"
                yield field.invalid(f"metadata.ownerReferences.{name}", "", text)
    masters = [f"{one.get('kind')}/{one.get('name')}" for one in references if one.get("controller")]
    if len(masters) > 1:
        text = 'Only one reference can have Controller set to true. Found "true" in references for '
        yield field.invalid("metadata.ownerReferences", references, f"{text}{masters[0]} and {masters[1]}")
    for at, finalizer in enumerate(metadata.get("finalizers") or ()):
        yield from field.invalid_each("metadata.finalizers", finalizer, qualified_name_complaints(finalizer))
        if "/" not in finalizer and finalizer not in _PLAIN_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            yield field.invalid(f"metadata.finalizers[{at}]", finalizer, text)


def _new_finalizers(new: Object, old: Object) -> Iterator[Cause]:
    """Yield the finalizers that were added to an object that is being deleted."""
    before = old["metadata"]
    added = [one for one in new["metadata"].get("finalizers") or () if one not in (before.get("finalizers") or ())]
    if "deletionTimestamp" in before and added:
        listed = ", ".join(f'"{one}"' for one in added)
        text = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
        yield field.forbidden("metadata.finalizers", text)


# --- types


def _node(node: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with taints and amounts. The API reports taints under metadata, although they are in the spec."""
    seen = set()
    for at, taint in enumerate((node.get("spec") or {}).get("taints") or ()):
        path = f"metadata.taints[{at}]"  # the API says so, although they are in the spec
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect")
        yield from field.invalid_each(f"{path}.key", key, qualified_name_complaints(key))
        yield from field.invalid_each(f"{path}.value", value, label_value_complaints(value))
        if not effect:
            yield field.required(f"{path}.effect")
        elif effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            yield field.not_supported(f"{path}.effect", effect, ("NoSchedule", "PreferNoSchedule", "NoExecute"))
        if (key, effect) in seen:
            yield field.duplicate(path, taint, "taints must be unique by key and effect pair")
        seen.add((key, effect))
    for side in ("capacity", "allocatable"):
        for name, there in ((node.get("status") or {}).get(side) or {}).items():
            if amount(there) < 0:
                yield field.invalid(f"status.{side}.{name}", there, NOT_NEGATIVE)


def _with_claimed_volumes(obj: Object) -> Object:
    """Return a StatefulSet whose template has the volumes that each pod will get: its containers may mount them."""
    spec, inner = obj["spec"], obj["spec"]["template"]["spec"]
    names = [(claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or ()]
    kept = [one for one in inner.get("volumes") or () if one.get("name") not in names]
    claimed = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    template = {**spec["template"], "spec": {**inner, "volumes": [*kept, *claimed]}}
    return {**obj, "spec": {**spec, "template": template}}


def _workload(obj: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with a Deployment, ReplicaSet, StatefulSet or DaemonSet."""
    spec = obj["spec"]
    selector, labels = spec.get("selector"), spec["template"]["metadata"].get("labels") or {}
    if not selector or not (selector.get("matchLabels") or selector.get("matchExpressions")):
        yield field.required("spec.selector")
        selector = None
    if not selects(selector, labels):
        text = "`selector` does not match template `labels`"
        yield field.invalid("spec.template.metadata.labels", labels or None, text)
    policy = spec["template"]["spec"].get("restartPolicy")
    if policy != "Always":
        yield field.not_supported("spec.template.spec.restartPolicy", policy, ("Always",))
    rolling = (spec.get("strategy") or {}).get("rollingUpdate") or {}
    if rolling and all(rolling.get(side) in (0, "0%") for side in ("maxSurge", "maxUnavailable")):
        path = "spec.strategy.rollingUpdate.maxUnavailable"
        yield field.invalid(path, rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0")


def _job_spec(spec: Object, path: str) -> Iterator[Cause]:
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        yield field.required(f"{path}.completions", "when completion mode is Indexed")
    if spec["template"]["spec"].get("restartPolicy") not in ("OnFailure", "Never"):
        yield field.required(f"{path}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def _cron_job(obj: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with schedule and zone; the name leaves room for the eleven characters of its jobs' names."""
    name, schedule, zone = obj["metadata"].get("name", ""), obj["spec"].get("schedule", ""), obj["spec"].get("timeZone")
    if len(name) > 52:  # a job's name ends with eleven characters more, and must stay a label
        yield field.invalid("metadata.name", name, "must be no more than 52 characters")
    if schedule:
        yield from _readable("spec.schedule", schedule, partial(read_schedule, schedule))
        if "TZ" in schedule:
            text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            yield field.invalid("spec.schedule", schedule, text)
    if zone is not None:
        yield from _readable("spec.timeZone", zone, partial(zone_named, zone or " "))


def _readable(path: str, text: str, read: Callable[[], object]) -> list[Cause]:
    """Return what a reader says about a text."""
    try:
        read()
    except ScheduleError as error:
        return [field.invalid(path, text, str(error))]
    return []


def _budget_spec(spec: Object, path: str) -> Iterator[Cause]:
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield field.invalid(path, spec, "minAvailable and maxUnavailable cannot be both set")


def _priority_class(obj: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with a class. Names that begin with system-, and large values, are the system's."""
    name, value = obj["metadata"]["name"], obj.setdefault("value", 0)
    if name.startswith("system-") and name not in ("system-cluster-critical", "system-node-critical"):
        text = "priority class names with 'system-' prefix are reserved for system use only. error: "
        yield field.forbidden("metadata.name", f"{text}{name} is not a known system priority class")
    elif value > 1_000_000_000 and not name.startswith("system-"):
        yield field.forbidden("value", "maximum allowed value of a user defined priority is 1000000000")


def _claim(claim: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with a volume claim, also in the templates of a StatefulSet."""
    spec, path = claim.get("spec") or {}, f"{path}.spec" if path else "spec"
    if not spec.get("accessModes"):
        yield field.required(f"{path}.accessModes", "at least 1 access mode is required")
    for mode in spec.get("accessModes") or ():
        if mode not in _ACCESS_MODES:
            yield field.not_supported(f"{path}.accessModes", mode, _ACCESS_MODES)
    wanted = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if wanted is None:
        yield field.required(f"{path}.resources[storage]")
    elif amount(wanted) <= 0:
        yield field.invalid(f"{path}.resources[storage]", wanted, "must be greater than zero")


def _persistent_volume(obj: Object, path: str) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    if not (spec.get("capacity") or {}).get("storage"):
        yield field.required("spec.capacity")
    if spec.get("local") is not None and not (spec.get("nodeAffinity") or {}).get("required"):
        yield field.required("spec.nodeAffinity", "Local volume requires node affinity")


def _event(obj: Object, path: str) -> Iterator[Cause]:
    involved = obj.get("involvedObject") or {}
    if obj["metadata"].get("namespace", "") != (involved.get("namespace") or "default"):
        text = "does not match event.namespace"
        yield field.invalid("involvedObject.namespace", involved.get("namespace", ""), text)


def _service(service: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with the ports of a service."""
    spec = service["spec"]
    ports: list[Object] = spec.get("ports") or []
    if spec["type"] == "ExternalName" and not spec.get("externalName"):
        yield field.required("spec.externalName")
    if not ports and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
        yield field.required("spec.ports")
    names: set[str] = set()
    for at, port in enumerate(ports):
        name = port.get("name", "")
        if not name and len(ports) > 1:
            yield field.required(f"spec.ports[{at}].name")
        if name and name in names:
            yield field.duplicate(f"spec.ports[{at}].name", name)
        names.add(name)


def _limit_range_spec(spec: Object, path: str) -> Iterator[Cause]:
    seen = set()
    for at, item in enumerate(spec.get("limits") or ()):
        kind = item.get("type", "")
        if kind in seen:
            yield field.duplicate(f"{path}.limits[{at}].type", kind)
        seen.add(kind)


def _limit_range_item(item: Object, path: str) -> Iterator[Cause]:
    """Yield the bounds that contradict each other."""
    kind = item.get("type", "")
    if kind not in ("Pod", "Container", "PersistentVolumeClaim"):
        yield from field.invalid_each(f"{path}.type", kind, qualified_name_complaints(kind))
    if kind == "Pod":
        for name in ("default", "defaultRequest"):
            if item.get(name):
                yield field.forbidden(f"{path}.{name}", "may not be specified when `type` is 'Pod'")
    if kind == "PersistentVolumeClaim" and not any("storage" in (item.get(one) or {}) for one in ("min", "max")):
        text = "either minimum or maximum storage value is required, but neither was provided"
        yield field.required(f"{path}.limits", text)
    for lower, upper, blamed, text in _ORDERS:
        below, above = item.get(lower) or {}, item.get(upper) or {}
        for name in sorted(below.keys() & above.keys()):
            if amount(below[name]) > amount(above[name]):
                where = "default" if blamed in ("min", "max") and "default" in (lower, upper) else blamed
                value = below[name] if blamed == lower else above[name]
                yield field.invalid(f"{path}.{where}[{name}]", value, text.format(below[name], above[name]))
    for name, ratio in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        if amount(ratio) < amount("1"):
            yield field.invalid(f"{path}.maxLimitRequestRatio[{name}]", ratio, f"ratio {ratio} is less than 1")


def _quota_spec(spec: Object, path: str) -> Iterator[Cause]:
    """Yield names that no quota can limit, and scopes that exclude each other."""
    for name, hard in (spec.get("hard") or {}).items():
        where = f"{path}.hard[{name}]"
        yield from field.invalid_each(where, name, qualified_name_complaints(name))
        if "/" not in name and name not in _QUOTA_NAMES and not name.startswith(("hugepages-", "requests.hugepages-")):
            yield field.invalid(where, name, "must be a standard resource for quota")
        if amount(hard) < 0:
            yield field.invalid(where, hard, NOT_NEGATIVE)
    scopes = spec.get("scopes") or []
    if any(scope not in _SCOPES for scope in scopes):
        yield field.invalid(f"{path}.scopes", scopes, "unsupported scope")
    if any(pair <= set(scopes) for pair in _OPPOSITES):
        yield field.invalid(f"{path}.scopes", scopes, "conflicting scopes")


def _autoscaler(obj: Object, path: str) -> Iterator[Cause]:
    spec = obj["spec"]
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    if least < 1:
        yield field.invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if most == 0:
        yield field.required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 1:
        yield field.invalid("spec.maxReplicas", most, "must be greater than or equal to 1")
    elif most < least:
        yield field.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    for name in ("kind", "name"):
        if not (spec.get("scaleTargetRef") or {}).get(name):
            yield field.required(f"spec.scaleTargetRef.{name}")


def _ingress(obj: Object, path: str) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        yield field.invalid("spec", spec, "either `defaultBackend` or `rules` must be specified")


def _ingress_path(one: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with a path and its backend."""
    kind, backend = one.get("pathType"), one.get("backend") or {}
    if not kind:
        yield field.required(f"{path}.pathType", "pathType must be specified")
    elif kind not in ("Exact", "ImplementationSpecific", "Prefix"):
        yield field.not_supported(f"{path}.pathType", kind, ("Exact", "ImplementationSpecific", "Prefix"))
    elif kind != "ImplementationSpecific" and not str(one.get("path", "")).startswith("/"):
        yield field.invalid(f"{path}.path", one.get("path", ""), "must be an absolute path")
    if backend.get("service") is not None and backend.get("resource") is not None:
        yield field.invalid(f"{path}.backend", "", "cannot set both resource and service backends")


_CHECKS: dict[str, Check] = pods.CHECKS | {
    "Node": _node,
    "Deployment": _workload,
    "ReplicaSet": _workload,
    "StatefulSet": _workload,
    "DaemonSet": _workload,
    "JobSpec": _job_spec,
    "CronJob": _cron_job,
    "PodDisruptionBudgetSpec": _budget_spec,
    "PriorityClass": _priority_class,
    "PersistentVolumeClaim": _claim,
    "PersistentVolume": _persistent_volume,
    "Service": _service,
    "Event": _event,
    "LimitRangeSpec": _limit_range_spec,
    "LimitRangeItem": _limit_range_item,
    "ResourceQuotaSpec": _quota_spec,
    "HorizontalPodAutoscaler": _autoscaler,
    "Ingress": _ingress,
    "HTTPIngressPath": _ingress_path,
    "CustomResourceDefinition": lambda obj, path: definition_problems(obj),
}
_walk = Walk(lambda shape: check_of(shape, _CHECKS.get(shape.name)))


# --- changes


def _fixed(*paths: str) -> Callable[[Object, Object], list[Cause]]:
    """Return a check that these fields have not changed."""
    return lambda new, old: [
        field.invalid(path, _at(new, path), _IMMUTABLE) for path in paths if _at(new, path) != _at(old, path)
    ]


def _at(obj: Any, path: str) -> Any:
    """Return the value at a path, or None."""
    for step in path.split("."):
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def _fixed_but(text: str, *free: str) -> Callable[[Object, Object], list[Cause]]:
    """Return a check that nothing of the spec has changed except these fields."""

    def check(new: Object, old: Object) -> list[Cause]:
        kept = [{key: value for key, value in one["spec"].items() if key not in free} for one in (new, old)]
        return [] if kept[0] == kept[1] else [field.forbidden("spec", text)]

    return check


def _changed_claim(new: Object, old: Object) -> list[Cause]:
    """The spec of a claim is fixed, except its size and what the binder fills in."""
    text = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
    filled_in = [name for name in ("volumeName", "storageClassName") if not old["spec"].get(name)]
    return _fixed_but(text, "resources", "volumeAttributesClassName", *filled_in)(new, old)


def _changed_job(new: Object, old: Object) -> list[Cause]:
    """A job's selector is fixed; its template too, unless the job is suspended."""
    causes = _fixed("spec.selector")(new, old)
    if new["spec"].get("completionMode") != "Indexed":
        causes += _fixed("spec.completions")(new, old)
    if new["spec"]["template"] != old["spec"]["template"] and not old["spec"].get("suspend"):
        causes.append(field.invalid("spec.template", "changed", _IMMUTABLE))
    return causes


def _changed_pod_group(new: Object, old: Object) -> list[Cause]:
    """Only the size of a gang may change."""
    kept = [deepcopy(each["spec"]) for each in (new, old)]
    for spec in kept:
        gang = _at(spec, "schedulingPolicy.gang")
        if isinstance(gang, dict):
            gang["minCount"] = None
    return [] if kept[0] == kept[1] else [field.invalid("spec", new["spec"], _IMMUTABLE)]


def _changed_data(new: Object, old: Object) -> list[Cause]:
    """Data that is marked immutable stays, and stays immutable."""
    if not old.get("immutable"):
        return []
    text = "field is immutable when `immutable` is set"
    fixed = [name for name in ("data", "binaryData") if new.get(name) != old.get(name)]
    return [field.forbidden(name, text) for name in ([] if new.get("immutable") else ["immutable"]) + fixed]


def _changed_priority_class(new: Object, old: Object) -> list[Cause]:
    """Pods carry copies of the value, so it cannot change."""
    causes = _fixed("preemptionPolicy")(new, old)
    if new.get("value") != old.get("value"):
        causes.append(field.forbidden("value", "may not be changed in an update."))
    return causes


_ON_CHANGE: dict[str, Callable[[Object, Object], list[Cause]]] = {
    "configmaps": _changed_data,
    "secrets": _changed_data,
    "deployments.apps": _fixed("spec.selector"),
    "replicasets.apps": _fixed("spec.selector"),
    "daemonsets.apps": _fixed("spec.selector"),
    "statefulsets.apps": _fixed_but(
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
        "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
        *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
    ),
    "jobs.batch": _changed_job,
    "priorityclasses.scheduling.k8s.io": _changed_priority_class,
    "persistentvolumeclaims": _changed_claim,
    "storageclasses.storage.k8s.io": _fixed("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
    "runtimeclasses.node.k8s.io": _fixed("handler"),
    "ingressclasses.networking.k8s.io": _fixed("spec.controller"),
    "resourceclaims.resource.k8s.io": _fixed("spec"),
    "resourceclaimtemplates.resource.k8s.io": _fixed("spec"),
    "podgroups.scheduling.k8s.io": _changed_pod_group,
    "compositepodgroups.scheduling.k8s.io": _fixed("spec"),
    "volumeattachments.storage.k8s.io": _fixed("spec"),
    "rolebindings.rbac.authorization.k8s.io": _fixed("roleRef"),
    "clusterrolebindings.rbac.authorization.k8s.io": _fixed("roleRef"),
}
