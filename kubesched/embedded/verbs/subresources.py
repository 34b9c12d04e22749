"""The subresources that do something: binding, eviction and scale.

In: a pod and a node, a pod to evict, a number of replicas. Out: the object as it is afterwards, or a refusal. A binding is
checked against the pod only: whether the node exists is the scheduler's business, as in kube-apiserver.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from kubesched import errors
from kubesched.embedded.api_errors import Undecoded, bad_request, conflict, invalid, modified
from kubesched.embedded.clock import timestamp
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.storage.selectors import selects, written_selector
from kubesched.embedded.storage.watch import Entry
from kubesched.embedded.validation import field
from kubesched.embedded.verbs import writing
from kubesched.embedded.verbs.conditions import is_true, with_condition
from kubesched.embedded.verbs.context import Context, Target, WriteOptions
from kubesched.embedded.verbs.deletion import Deleted, DeleteOptions, check_preconditions, delete
from kubesched.embedded.verbs.patching import copied
from kubesched.errors import ApiError
from kubesched.kube.values import REGION, ZONE

TOPOLOGY_LABELS = (ZONE, REGION)
_FINISHED = ("Succeeded", "Failed")
_BUDGET_TEXT = "Cannot evict pod as it would violate the pod's disruption budget."
_TWO_BUDGETS_TEXT = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


def bind_object(context: Context, namespace: str, name: str, binding: Object, options: WriteOptions) -> Entry:
    """Bind a pod as a Binding object says."""
    metadata, target = binding.get("metadata") or {}, binding.get("target") or {}
    if not isinstance(metadata, dict) or not isinstance(target, dict):
        raise bad_request("Binding: metadata and target are objects")
    if metadata.get("name") != name:
        raise bad_request("name in URL does not match name in Binding object")
    causes = []
    if target.get("kind") not in (None, "", "Node"):
        causes.append(field.not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        causes.append(field.required("target.name"))
    if causes:
        raise invalid(context.resource("bindings"), name, causes)
    return bind(
        context,
        namespace,
        name,
        target["name"],
        uid=metadata.get("uid") or "",
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        options=options,
    )


def bind(
    context: Context,
    namespace: str,
    name: str,
    node: str,
    uid: str = "",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    options: WriteOptions | None = None,
) -> Entry:
    """Assign a pod to a node; 409 if it has another uid, gates, a deletionTimestamp or a node already."""
    resource = context.resource("pods")
    entry = context.get(resource, namespace, name)
    pod = entry.obj
    if uid and uid != pod["metadata"]["uid"]:
        held = pod["metadata"]["uid"]
        raise conflict(resource, name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {held}")
    refused = _binding_problem(pod, name)
    if refused:
        raise conflict(dataclasses.replace(resource, plural="pods/binding"), name, refused)
    bound = {**pod, "spec": {**pod["spec"], "nodeName": node}, "metadata": dict(pod["metadata"])}
    added = {**(labels or {}), **_topology_of(context, node)}
    if added:
        bound["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **added}
    if annotations:
        bound["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), **annotations}
    status = {key: value for key, value in (pod.get("status") or {}).items() if key != "nominatedNodeName"}
    now = timestamp(context.clock.now())
    status["conditions"] = with_condition(status.get("conditions"), "PodScheduled", "True", now, lastProbeTime=None)
    bound["status"] = status
    if options is not None and options.dry_run:
        return Entry(entry.key, bound, entry.version)
    return writing.store(context, resource, entry.key, bound)


def _binding_problem(pod: Object, name: str) -> str:
    """Return why a pod cannot be assigned; empty if it can."""
    metadata, spec = pod["metadata"], pod["spec"]
    if "deletionTimestamp" in metadata:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _topology_of(context: Context, node: str) -> dict[str, str]:
    """Return the zone and region of a node: they are copied to the pod, as the admission plugin PodTopologyLabels does."""
    entry = context.find(context.resource("nodes"), "", node)
    labels = (entry.obj["metadata"].get("labels") or {}) if entry is not None else {}
    return {key: labels[key] for key in TOPOLOGY_LABELS if key in labels}


def evict(context: Context, namespace: str, name: str, options: DeleteOptions) -> Deleted:
    """Delete a pod if its disruption budget allows it; 429 if not now.

    Pods that are pending, finished or being deleted take nothing from a budget. The others get the condition DisruptionTarget.
    """
    resource = context.resource("pods")
    entry = context.get(resource, namespace, name)
    pod = entry.obj
    check_preconditions(resource, name, pod["metadata"], options)
    phase = (pod.get("status") or {}).get("phase")
    if phase not in (*_FINISHED, "Pending") and "deletionTimestamp" not in pod["metadata"]:
        _take_from_budget(context, namespace, pod, options.dry_run)
    if not options.dry_run and phase not in _FINISHED and "deletionTimestamp" not in pod["metadata"]:
        status = dict(pod.get("status") or {})
        more = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting", "lastProbeTime": None}
        now = timestamp(context.clock.now())
        status["conditions"] = with_condition(status.get("conditions"), "DisruptionTarget", "True", now, **more)
        writing.store(context, resource, entry.key, {**pod, "metadata": dict(pod["metadata"]), "status": status})
    return delete(context, resource, namespace, name, dataclasses.replace(options, resource_version=""))


def _take_from_budget(context: Context, namespace: str, pod: Object, dry_run: bool) -> None:
    """Count an eviction against the budget of a pod, or refuse it.

    The count goes down here, in the same write that records the pod in `disruptedPods`, so a second eviction sees it before
    the disruption controller has counted anew. Pods that are not ready may always go if the policy says so, or while enough
    are healthy.
    """
    resource = context.resource("poddisruptionbudgets.policy")
    labels = pod["metadata"].get("labels") or {}
    budgets = [
        entry
        for entry in context.table(resource).in_namespace(namespace)
        if selects((entry.obj.get("spec") or {}).get("selector"), labels)
    ]
    if not budgets:
        return
    if len(budgets) > 1:
        raise errors.ServerFault(500, "InternalError", _TWO_BUDGETS_TEXT)
    entry = budgets[0]
    budget, status = entry.obj, dict(entry.obj.get("status") or {})
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if not is_true(pod, "Ready"):
        policy = (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy", "IfHealthyBudget")
        if policy == "AlwaysAllow" or (healthy >= desired and desired > 0):
            return
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", 10.0)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed <= 0:
        raise _too_many(f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
    if dry_run:
        return
    status["disruptionsAllowed"] = allowed - 1
    disrupted = dict(status.get("disruptedPods") or {})
    disrupted[pod["metadata"]["name"]] = timestamp(context.clock.now())
    generation = status.get("observedGeneration", 0)
    status["conditions"] = budget_conditions(status, allowed - 1, generation, timestamp(context.clock.now()))
    status["disruptedPods"] = disrupted
    writing.store(context, resource, entry.key, {**budget, "metadata": dict(budget["metadata"]), "status": status})


def _too_many(why: str, retry_after: float | None = None) -> ApiError:
    """Return the refusal of an eviction, with the reason as its cause."""
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    return errors.TooManyRequests(429, "TooManyRequests", _BUDGET_TEXT, retry_after, details)


def budget_conditions(before: Object, allowed: int, generation: int, now: str) -> list[Object]:
    """Return the conditions of a budget that allows so many disruptions now."""
    value, reason = ("True", "SufficientPods") if allowed > 0 else ("False", "InsufficientPods")
    more = {"reason": reason, "message": "", "observedGeneration": generation}
    return with_condition(before.get("conditions"), "DisruptionAllowed", value, now, **more)


def scale_of(resource: Resource, entry: Entry) -> Object:
    """Return the Scale of an object that has replicas."""
    obj, metadata = entry.obj, entry.obj["metadata"]
    spec_path, status_path, selector_path = _scale_paths(resource)
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Object = {"replicas": _dig(obj, status_path) or 0}
    selector = _dig(obj, selector_path) if selector_path else None
    if isinstance(selector, dict):
        plain = resource.table == "replicationcontrollers"
        status["selector"] = written_selector({"matchLabels": selector} if plain else selector)
    elif isinstance(selector, str):
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": _dig(obj, spec_path) or 0},
        "status": status,
    }


def set_scale(context: Context, resource: Resource, entry: Entry, scale: Any, options: WriteOptions) -> Entry:
    """Set the replicas of an object to those of a Scale."""
    if not isinstance(scale, dict):
        raise bad_request("Scale: not an object")
    name = entry.obj["metadata"]["name"]
    if scale.get("kind") not in (None, "Scale"):
        raise bad_request(f"the kind in the data ({scale['kind']}) does not match the expected kind (Scale)")
    metadata = scale.get("metadata") or {}
    if metadata.get("name") not in (None, "", name):
        raise bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
    wanted = metadata.get("resourceVersion")
    if wanted and wanted != entry.obj["metadata"]["resourceVersion"]:
        raise modified(resource, name)
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise Undecoded(dataclasses.replace(resource, kind="Scale"), "spec.replicas is not an integer")
    if replicas < 0:
        text = "must be greater than or equal to 0"
        scaled = dataclasses.replace(resource, group="autoscaling", kind="Scale")
        raise invalid(scaled, name, [field.invalid("spec.replicas", replicas, text)])
    obj = copied(entry.obj)
    place = obj
    *above, last = _scale_paths(resource)[0]
    for step in above:
        place = place.setdefault(step, {})
    place[last] = replicas
    return writing.replace(context, Target(resource, entry.namespace, name), entry, obj, options)


def _scale_paths(resource: Resource) -> tuple[list[str], list[str], list[str]]:
    """Return where an object has its wanted replicas, its replicas and its selector; custom resources name their own paths."""
    custom = ((resource.custom or {}).get("subresources") or {}).get("scale")
    if custom is None:
        return ["spec", "replicas"], ["status", "replicas"], ["spec", "selector"]
    return (
        _path(custom.get("specReplicasPath")),
        _path(custom.get("statusReplicasPath")),
        _path(custom.get("labelSelectorPath")),
    )


def _path(text: str | None) -> list[str]:
    """Return the steps of a path such as .spec.replicas."""
    return [step for step in (text or "").split(".") if step]


def _dig(obj: Any, path: list[str]) -> Any:
    """Return the value at a path, or None."""
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj
