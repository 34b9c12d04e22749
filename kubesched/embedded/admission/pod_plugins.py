"""The admission plugins for pods: ServiceAccount, Priority, DefaultTolerationSeconds, RuntimeClass, and label keys.

In: a pod with its defaults, new or changed, or a pod group; and the accounts and classes that it names. Out: the same object,
in place, with what the plugins give it and the status it begins with; or a refusal in the plugin's words.
"""

from __future__ import annotations

from kubesched.embedded.admission.amounts import affinity_terms, amount, qos_class
from kubesched.embedded.admission.limit_ranges import apply_limit_ranges
from kubesched.embedded.api_errors import forbidden
from kubesched.embedded.clock import timestamp
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.verbs.context import Context

PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
DEFAULT_ACCOUNT = "default"  # of every namespace
GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_PATIENCE = tuple(
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for name in ("not-ready", "unreachable")
)


def admit_pod(context: Context, resource: Resource, pod: Object) -> None:
    """Let the plugins change a new pod."""
    spec = pod["spec"]
    apply_limit_ranges(context, pod)
    _give_account(context, resource, pod)
    if context.has_priority_admission:
        _resolve_priority(context, resource, pod)
    _merge_label_keys(pod)
    _tolerate_silence(spec)
    _apply_runtime_class(context, resource, pod)
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


def admit_changed_pod(new: Object, old: Object) -> None:
    """Keep what admission gave a pod when it was created: a manifest that is applied again does not mention it."""
    for name in ("priority", "preemptionPolicy", "nodeName", "serviceAccountName"):
        if name in old["spec"] and name not in new["spec"]:
            new["spec"][name] = old["spec"][name]
    _tolerate_silence(new["spec"])


def _give_account(context: Context, resource: Resource, pod: Object) -> None:
    """Give a pod its service account, and the pull secrets of that account. Tokens are not mounted: nobody reads them.

    A namespace without the account `default` has no controller that looks after it, as in a server without the fake cluster;
    its pods stay as they are.
    """
    spec, namespace = pod["spec"], pod["metadata"]["namespace"]
    accounts = context.resource("serviceaccounts")
    if context.find(accounts, namespace, DEFAULT_ACCOUNT) is None:
        return
    name = spec.setdefault("serviceAccountName", DEFAULT_ACCOUNT)
    spec["serviceAccount"] = name
    entry = context.find(accounts, namespace, name)
    if entry is None:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise forbidden(resource, pod["metadata"]["name"], why)
    if entry.obj.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(one) for one in entry.obj["imagePullSecrets"]]


def _class_priority(context: Context, resource: Resource, obj: Object) -> tuple[int, str | None]:
    """Return priority and preemption policy of an object's class; without one it gets the global default's, or 0."""
    spec, name = obj.setdefault("spec", {}), obj["metadata"]["name"]
    class_name = spec.get("priorityClassName")
    if not class_name:
        found = default_priority_class(context)
        if found is None:
            return 0, None
        spec["priorityClassName"] = found["metadata"]["name"]
        return found["value"], found.get("preemptionPolicy")
    entry = context.find(context.resource(PRIORITY_CLASSES), "", class_name)
    if entry is not None:
        return entry.obj["value"], entry.obj.get("preemptionPolicy")
    if class_name not in _SYSTEM_PRIORITIES:
        raise forbidden(resource, name, f"no PriorityClass with name {class_name} was found")
    return _SYSTEM_PRIORITIES[class_name], None


def admit_pod_group(context: Context, resource: Resource, group: Object) -> None:
    """Give a pod group, or a group of groups, the priority of its class."""
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
    """Give a pod the priority of its class. A pod may state the same numbers, but no others."""
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


def default_priority_class(context: Context) -> Object | None:
    """Return the global default; if there are several, the one with the lowest value."""
    found: Object | None = None
    for entry in context.table(context.resource(PRIORITY_CLASSES)).entries.values():
        if entry.obj.get("globalDefault") and (found is None or entry.obj["value"] < found["value"]):
            found = entry.obj
    return found


def _merge_label_keys(pod: Object) -> None:
    """Write matchLabelKeys and mismatchLabelKeys into the selectors, with the values of this pod's labels."""
    labels = pod["metadata"].get("labels") or {}
    for term in affinity_terms(pod["spec"]):
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


def _tolerate_silence(spec: Object) -> None:
    """Let a pod stay on a node that is not ready or unreachable for five minutes, unless it says otherwise."""
    held = spec.get("tolerations") or []
    missing = [one for one in _PATIENCE if not any(_covers(have, one) for have in held)]
    if missing:
        spec["tolerations"] = [*held, *(dict(one) for one in missing)]


def _covers(toleration: Object, other: Object) -> bool:
    return toleration.get("key") in (None, "", other["key"]) and toleration.get("effect") in (None, "", "NoExecute")


def _apply_runtime_class(context: Context, resource: Resource, pod: Object) -> None:
    """Give a pod the overhead, the node selector and the tolerations of its runtime class."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    wanted = spec.get("runtimeClassName")
    found: Object = {}
    if wanted is not None:
        entry = context.find(context.resource("runtimeclasses.node.k8s.io"), "", wanted)
        if entry is None:
            raise forbidden(resource, name, f'pod rejected: RuntimeClass "{wanted}" not found')
        found = entry.obj
    overhead = (found.get("overhead") or {}).get("podFixed")
    if overhead is not None:
        if spec.get("overhead") and not _is_same(spec["overhead"], overhead):
            raise forbidden(resource, name, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = dict(overhead)
    scheduling = found.get("scheduling")
    if scheduling:
        _merge_scheduling(resource, pod, scheduling)


def check_overhead(context: Context, resource: Resource, pod: Object) -> None:
    """Refuse a pod with an overhead that no runtime class gave it."""
    spec = pod["spec"]
    if spec.get("overhead") is None:
        return
    wanted = spec.get("runtimeClassName")
    entry = context.find(context.resource("runtimeclasses.node.k8s.io"), "", wanted) if wanted is not None else None
    if entry is None or (entry.obj.get("overhead") or {}).get("podFixed") is None:
        why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise forbidden(resource, pod["metadata"]["name"], why)


def _is_same(one: dict[str, str], other: dict[str, str]) -> bool:
    return one.keys() == other.keys() and all(amount(one[name]) == amount(other[name]) for name in one)


def _merge_scheduling(resource: Resource, pod: Object, scheduling: Object) -> None:
    """Merge the node selector and the tolerations of a runtime class into a pod; refuse a contradiction."""
    spec = pod["spec"]
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.setdefault(key, value) != value:
            why = f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
            why += f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            raise forbidden(resource, pod["metadata"]["name"], why)
    if selector:
        spec["nodeSelector"] = selector
    held = list(spec.get("tolerations") or ())
    added = [dict(one) for one in scheduling.get("tolerations") or () if one not in held]
    if added:
        spec["tolerations"] = held + added
