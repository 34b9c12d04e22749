"""Admission: what kube-apiserver's admission plugins do to an object on its way in.

In: an object with its defaults. Out: the same object, in place, with its priority, its storage class and the status it begins
with; or a refusal. Plugins read other objects and write none. As in kube-apiserver, those that change come before validation
(`admit_...`), those that only refuse after it (`check_...`).
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.embedded.admission.limit_ranges import check_limit_ranges
from kubesched.embedded.admission.pod_plugins import (
    admit_changed_pod,
    admit_pod,
    admit_pod_group,
    check_overhead,
    default_priority_class,
)
from kubesched.embedded.admission.services import give_addresses
from kubesched.embedded.api_errors import forbidden, not_found
from kubesched.embedded.clock import timestamp
from kubesched.embedded.schema.custom_resources import definition_problems, established
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.validation.field import Cause
from kubesched.embedded.verbs.context import Context
from kubesched.embedded.verbs.patching import copied

DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
DEFAULT_INGRESS_CLASS_ANNOTATION = "ingressclass.kubernetes.io/is-default-class"
_UNDELETABLE_NAMESPACES = ("default", "kube-system", "kube-public")


def check_namespace(context: Context, resource: Resource, namespace: str, name: str) -> None:
    """Refuse to create an object in a namespace that does not exist or is being deleted."""
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
    """Refuse to delete the namespaces that a cluster needs."""
    if resource.table == "namespaces" and name in _UNDELETABLE_NAMESPACES:
        raise forbidden(resource, name, "this namespace may not be deleted")


def admit_new(context: Context, resource: Resource, obj: Object) -> None:
    """Let the plugins change a new object, and give it the status it begins with."""
    if resource.table in _FIRST_STATUS:
        obj["status"] = copied(_FIRST_STATUS[resource.table])
    plugin = _ON_CREATE.get(resource.table)
    if plugin is not None:
        plugin(context, resource, obj)


def check_new(context: Context, resource: Resource, obj: Object) -> None:
    """Let the plugins refuse a valid new object. Quotas come last, for they count what is let through."""
    if resource.table == "pods":
        check_overhead(context, resource, obj)
    if resource.table in ("pods", "persistentvolumeclaims"):
        check_limit_ranges(context, resource, obj)
    context.quotas.check(resource, obj)


def check_changed(context: Context, resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Let the plugins refuse a valid change. Pods are not checked again: their amounts cannot change here."""
    if subresource:
        return
    if resource.table == "persistentvolumeclaims":
        check_limit_ranges(context, resource, new)
    if resource.table in ("services", "persistentvolumeclaims"):
        context.quotas.check(resource, new, old)


def admit_changed(context: Context, resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Let the plugins change a changed object."""
    if resource.table == "pods" and not subresource:
        admit_changed_pod(new, old)
    elif resource.table == "services" and not subresource:
        give_addresses(context, resource, new, old)


def _namespace(context: Context, resource: Resource, obj: Object) -> None:
    """A namespace is kept until its content is deleted: that is what its finalizer says."""
    obj["spec"] = {"finalizers": ["kubernetes"]}
    obj["status"] = {"phase": "Active"}


def _volume(context: Context, resource: Resource, obj: Object) -> None:
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": timestamp(context.clock.now())}


def _volume_claim(context: Context, resource: Resource, obj: Object) -> None:
    """A claim without a class gets the default class: of several the newest, then the first by name."""
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


def _ingress(context: Context, resource: Resource, obj: Object) -> None:
    """An ingress without a class gets the default class; several default classes are an error."""
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
    """There is at most one global default."""
    if obj.get("globalDefault"):
        other = default_priority_class(context)
        if other is not None and other["metadata"]["name"] != obj["metadata"]["name"]:
            why = f"PriorityClass {other['metadata']['name']} is already marked as globalDefault"
            raise forbidden(resource, obj["metadata"]["name"], why)


def _definition(context: Context, resource: Resource, obj: Object) -> None:
    """A valid definition is served at once."""
    if not any(definition_problems(obj)):
        obj["status"] = established(obj, context.clock.now())


_ON_CREATE: dict[str, Callable[[Context, Resource, Object], None]] = {
    "pods": admit_pod,
    "namespaces": _namespace,
    "persistentvolumes": _volume,
    "persistentvolumeclaims": _volume_claim,
    "services": give_addresses,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "podgroups.scheduling.k8s.io": admit_pod_group,
    "compositepodgroups.scheduling.k8s.io": admit_pod_group,
    "ingresses.networking.k8s.io": _ingress,
    "customresourcedefinitions.apiextensions.k8s.io": _definition,
}
_ZERO: dict[str, tuple[str, ...]] = {  # the counts that the status of a new object has
    "replicasets.apps": ("replicas",),
    "replicationcontrollers": ("replicas",),
    "statefulsets.apps": ("replicas", "availableReplicas"),
    "daemonsets.apps": ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"),
    "poddisruptionbudgets.policy": ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"),
}
_FIRST_STATUS: dict[str, Object] = {table: dict.fromkeys(names, 0) for table, names in _ZERO.items()} | {
    "persistentvolumeclaims": {"phase": "Pending"},
    "volumeattachments.storage.k8s.io": {"attached": False},
    "services": {"loadBalancer": {}},
    "ingresses.networking.k8s.io": {"loadBalancer": {}},
    "horizontalpodautoscalers.autoscaling": {"desiredReplicas": 0, "currentMetrics": None},
    "deployments.apps": {},
    "jobs.batch": {},
    "cronjobs.batch": {},
    "resourcequotas": {},
    "resourceclaims.resource.k8s.io": {},
}
