"""Admission: what the API server's plugins do to an object on its way in.

In: a defaulted object. Out: the same object, in place, with its priority, its storage class, the label keys merged into
its selectors, and the state it begins in; or a refusal. Reads other objects, writes none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubesched.embedded.admission.limit_ranges import apply_limit_ranges, check_limit_ranges
from kubesched.embedded.admission.qos import qos_class
from kubesched.embedded.admission.runtime_classes import apply_runtime_class, check_overhead
from kubesched.embedded.admission.service_accounts import apply_service_account
from kubesched.embedded.admission.services import give_addresses
from kubesched.embedded.clock import timestamp
from kubesched.embedded.context import Context
from kubesched.embedded.custom import definition_problems, established
from kubesched.embedded.http.refusals import Cause, forbidden, not_found
from kubesched.embedded.resources import Object, Resource

DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
DEFAULT_INGRESS_CLASS_ANNOTATION = "ingressclass.kubernetes.io/is-default-class"
SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
_PATIENCE = tuple(
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for name in ("not-ready", "unreachable")
)
_UNDELETABLE_NAMESPACES = ("default", "kube-system", "kube-public")


def check_namespace(context: Context, resource: Resource, namespace: str, name: str) -> None:
    """Refuse to create in a namespace that is not there or is going away."""
    if not resource.namespaced:
        return
    namespaces = context.resource("namespaces")
    found = context.find(namespaces, "", namespace)
    if found is None:
        raise not_found(namespaces, namespace)
    if "deletionTimestamp" in found.obj["metadata"]:
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        cause = Cause("NamespaceTerminating", "metadata.namespace", f"namespace {namespace} is being terminated")
        raise forbidden(resource, name, why, [cause])


def check_deletable(resource: Resource, name: str) -> None:
    if resource.table == "namespaces" and name in _UNDELETABLE_NAMESPACES:
        raise forbidden(resource, name, "this namespace may not be deleted")


def admit_new(context: Context, resource: Resource, obj: Object) -> None:
    """Let the plugins see a new object."""
    plugin = _ON_CREATE.get(resource.table)
    if plugin is not None:
        plugin(context, resource, obj)


def check_new(context: Context, resource: Resource, obj: Object) -> None:
    """Let those plugins see a valid new object that change nothing and may refuse it; quotas come last."""
    if resource.table == "pods":
        check_overhead(context, resource, obj)
    if resource.table in ("pods", "persistentvolumeclaims"):
        check_limit_ranges(context, resource, obj)
    context.quotas.check(resource, obj)


def check_changed(context: Context, resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Let those plugins see a valid change; what a pod asks for was decided when it was created."""
    if subresource:
        return
    if resource.table == "persistentvolumeclaims":
        check_limit_ranges(context, resource, new)
    if resource.table in ("services", "persistentvolumeclaims"):
        context.quotas.check(resource, new, old)


def admit_changed(context: Context, resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Let the plugins see a changed object."""
    if resource.table == "pods" and not subresource:
        # Priority is decided once, at creation; a manifest applied again is silent about it.
        for field in ("priority", "preemptionPolicy", "nodeName", "serviceAccountName"):
            if field in old["spec"] and field not in new["spec"]:
                new["spec"][field] = old["spec"][field]
        _tolerate_silence(new["spec"])
    elif resource.table == "services" and not subresource:
        give_addresses(context, resource, new, old)


def _pod(context: Context, resource: Resource, pod: Object) -> None:
    spec = pod["spec"]
    apply_limit_ranges(context, pod)
    apply_service_account(context, resource, pod)
    if context.has_priority_admission:
        _resolve_priority(context, resource, pod)
    _merge_label_keys(pod)
    _tolerate_silence(spec)
    apply_runtime_class(context, resource, pod)
    status: Object = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": timestamp(context.clock.now()),
                "reason": "SchedulingGated",
                "message": GATED_MESSAGE,
            }
        ]
    pod["status"] = status


def _tolerate_silence(spec: Object) -> None:
    """Let a pod stay for five minutes on a node that is not heard of, unless it says otherwise."""
    held = spec.get("tolerations") or []
    missing = [one for one in _PATIENCE if not any(_covers(have, one) for have in held)]
    if missing:
        spec["tolerations"] = [*held, *(dict(one) for one in missing)]


def _covers(toleration: Object, other: Object) -> bool:
    return toleration.get("key") in (None, "", other["key"]) and toleration.get("effect") in (None, "", "NoExecute")


def _class_priority(context: Context, resource: Resource, obj: Object) -> tuple[int, str | None]:
    """Return the priority and the preemption policy of the class that an object names; without one it gets the default's."""
    spec, name = obj.setdefault("spec", {}), obj["metadata"]["name"]
    class_name = spec.get("priorityClassName")
    if not class_name:
        found = _default_priority_class(context)
        if found is None:
            return 0, None
        spec["priorityClassName"] = found["metadata"]["name"]
        return found["value"], found.get("preemptionPolicy")
    entry = context.find(_priority_classes(context), "", class_name)
    if entry is not None:
        return entry.obj["value"], entry.obj.get("preemptionPolicy")
    if class_name not in SYSTEM_PRIORITIES:
        raise forbidden(resource, name, f"no PriorityClass with name {class_name} was found")
    return SYSTEM_PRIORITIES[class_name], None


def _pod_group(context: Context, resource: Resource, group: Object) -> None:
    """Give a group of pods, or of groups, the priority of its class."""
    if not context.has_priority_admission:
        return
    value, _ = _class_priority(context, resource, group)
    spec, name = group["spec"], group["metadata"]["name"]
    if spec.get("priority") not in (None, value):
        what = "pod group" if resource.kind == "PodGroup" else "composite pod group"
        why = f"priority set in the {what} ({spec['priority']}) must match the priority computed ({value}) "
        raise forbidden(resource, name, why + "based on the priority class set in the spec")
    spec["priority"] = value


def _resolve_priority(context: Context, resource: Resource, pod: Object) -> None:
    spec, name = pod["spec"], pod["metadata"]["name"]
    value, policy = _class_priority(context, resource, pod)
    if spec.get("priority") not in (None, value):
        why = f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
        why += f"priority admission controller computed {value} from the given PriorityClass name"
        raise forbidden(resource, name, why)
    policy = policy or "PreemptLowerPriority"
    if spec.get("preemptionPolicy") not in (None, policy):
        why = f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
        why += f"priority admission controller computed {policy} from the given PriorityClass name"
        raise forbidden(resource, name, why)
    spec["priority"], spec["preemptionPolicy"] = value, policy


def _priority_classes(context: Context) -> Resource:
    return context.resource("priorityclasses.scheduling.k8s.io")


def _default_priority_class(context: Context) -> Object | None:
    """Return the global default; of several, the one with the lowest value."""
    found: Object | None = None
    for entry in context.table(_priority_classes(context)).entries.values():
        if entry.obj.get("globalDefault") and (found is None or entry.obj["value"] < found["value"]):
            found = entry.obj
    return found


def _merge_label_keys(pod: Object) -> None:
    """Write matchLabelKeys and mismatchLabelKeys into the selectors, with the values this pod has."""
    labels = pod["metadata"].get("labels") or {}
    for term in _affinity_terms(pod["spec"].get("affinity") or {}):
        if term.get("labelSelector") is not None:
            _require(term["labelSelector"], term.get("matchLabelKeys"), "In", labels)
            _require(term["labelSelector"], term.get("mismatchLabelKeys"), "NotIn", labels)
    for constraint in pod["spec"].get("topologySpreadConstraints") or ():
        if constraint.get("labelSelector") is not None:
            _require(constraint["labelSelector"], constraint.get("matchLabelKeys"), "In", labels)


def _require(selector: Object, keys: list[str] | None, operator: str, labels: dict[str, str]) -> None:
    for key in keys or ():
        if key in labels:
            expression = {"key": key, "operator": operator, "values": [labels[key]]}
            if expression not in selector.setdefault("matchExpressions", []):
                selector["matchExpressions"].append(expression)


def _affinity_terms(affinity: Object) -> Iterator[Object]:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        yield from rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}


def _namespace(context: Context, resource: Resource, obj: Object) -> None:
    obj["spec"] = {"finalizers": ["kubernetes"]}
    obj["status"] = {"phase": "Active"}


def _volume(context: Context, resource: Resource, obj: Object) -> None:
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": timestamp(context.clock.now())}


def _attachment(context: Context, resource: Resource, obj: Object) -> None:
    obj["status"] = {"attached": False}


def _volume_claim(context: Context, resource: Resource, obj: Object) -> None:
    obj["status"] = {"phase": "Pending"}
    if "storageClassName" in obj["spec"] or "volume.beta.kubernetes.io/storage-class" in (
        obj["metadata"].get("annotations") or {}
    ):
        return
    classes = context.table(context.resource("storageclasses.storage.k8s.io")).entries.values()
    defaults = [one.obj for one in classes if _has_mark(one.obj, DEFAULT_CLASS_ANNOTATION)]
    if defaults:  # the newest wins, then the first by name
        defaults.sort(key=lambda one: one["metadata"]["name"])
        defaults.sort(key=lambda one: str(one["metadata"]["creationTimestamp"]), reverse=True)
        obj["spec"]["storageClassName"] = defaults[0]["metadata"]["name"]


def _has_mark(obj: Object, annotation: str) -> bool:
    return (obj["metadata"].get("annotations") or {}).get(annotation) == "true"


def _service(context: Context, resource: Resource, obj: Object) -> None:
    give_addresses(context, resource, obj)
    obj["status"] = {"loadBalancer": {}}


def _ingress(context: Context, resource: Resource, obj: Object) -> None:
    obj["status"] = {"loadBalancer": {}}
    annotations = obj["metadata"].get("annotations") or {}
    if "ingressClassName" in (obj.get("spec") or {}) or "kubernetes.io/ingress.class" in annotations:
        return
    classes = context.storage.table("ingressclasses.networking.k8s.io").entries.values()
    defaults = [one.obj["metadata"]["name"] for one in classes if _has_mark(one.obj, DEFAULT_INGRESS_CLASS_ANNOTATION)]
    if len(defaults) > 1:
        why = f"{len(defaults)} default IngressClasses were found, only 1 allowed"
        raise forbidden(resource, obj["metadata"]["name"], why)
    if defaults:
        obj.setdefault("spec", {})["ingressClassName"] = defaults[0]


def _priority_class(context: Context, resource: Resource, obj: Object) -> None:
    if obj.get("globalDefault"):
        other = _default_priority_class(context)
        if other is not None and other["metadata"]["name"] != obj["metadata"]["name"]:
            why = f"PriorityClass {other['metadata']['name']} is already marked as globalDefault"
            raise forbidden(resource, obj["metadata"]["name"], why)


def _with_empty_status(context: Context, resource: Resource, obj: Object) -> None:
    obj["status"] = {}


def _with_replicas(context: Context, resource: Resource, obj: Object) -> None:
    obj["status"] = {"replicas": 0}


def _stateful_set(context: Context, resource: Resource, obj: Object) -> None:
    obj["status"] = {"replicas": 0, "availableReplicas": 0}


def _budget(context: Context, resource: Resource, obj: Object) -> None:
    names: tuple[str, ...] = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
    obj["status"] = dict[str, Any].fromkeys(names, 0)


def _daemon_set(context: Context, resource: Resource, obj: Object) -> None:
    names = ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady")
    obj["status"] = dict[str, Any].fromkeys(names, 0)


def _autoscaler(context: Context, resource: Resource, obj: Object) -> None:
    obj["status"] = {"desiredReplicas": 0, "currentMetrics": None}


def _definition(context: Context, resource: Resource, obj: Object) -> None:
    if not definition_problems(obj):
        obj["status"] = established(obj, context.clock.now())


_ON_CREATE: dict[str, Callable[[Context, Resource, Object], None]] = {
    "pods": _pod,
    "namespaces": _namespace,
    "persistentvolumes": _volume,
    "volumeattachments.storage.k8s.io": _attachment,
    "persistentvolumeclaims": _volume_claim,
    "services": _service,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "podgroups.scheduling.k8s.io": _pod_group,
    "compositepodgroups.scheduling.k8s.io": _pod_group,
    "deployments.apps": _with_empty_status,
    "jobs.batch": _with_empty_status,
    "cronjobs.batch": _with_empty_status,
    "resourcequotas": _with_empty_status,
    "ingresses.networking.k8s.io": _ingress,
    "horizontalpodautoscalers.autoscaling": _autoscaler,
    "replicasets.apps": _with_replicas,
    "statefulsets.apps": _stateful_set,
    "replicationcontrollers": _with_replicas,
    "daemonsets.apps": _daemon_set,
    "poddisruptionbudgets.policy": _budget,
    "resourceclaims.resource.k8s.io": _with_empty_status,
    "customresourcedefinitions.apiextensions.k8s.io": _definition,
}
