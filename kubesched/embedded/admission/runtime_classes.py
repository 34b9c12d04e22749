"""The RuntimeClass admission plugin: a pod's overhead, and the nodes on which its runtime is.

In: a new pod and the runtime classes. Out: the same pod, in place, with the overhead, the node selector and the
tolerations of its class; or a refusal in the plugin's words.
"""

from __future__ import annotations

from kubesched.embedded.admission.qos import amount
from kubesched.embedded.context import Context
from kubesched.embedded.http.refusals import forbidden
from kubesched.embedded.resources import Object, Resource


def apply_runtime_class(context: Context, resource: Resource, pod: Object) -> None:
    """Write what a pod's runtime class says into it."""
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
    """Refuse a pod that claims an overhead which no runtime class gave it."""
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
