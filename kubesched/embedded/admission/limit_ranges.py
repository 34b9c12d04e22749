"""The LimitRanger admission plugin: default requests and limits for containers, and bounds for them.

In: a new pod or volume claim, and the LimitRanges of its namespace. Out: the pod, in place, with the defaults; or a refusal
that names every bound that is broken, in the plugin's words.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.embedded.admission.amounts import Amounts, amount, amounts_of, containers_of, pod_amounts
from kubesched.embedded.api_errors import forbidden
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.verbs.context import Context

ANNOTATION = "kubernetes.io/limit-ranger"


def apply_limit_ranges(context: Context, pod: Object) -> None:
    """Fill in the default requests and limits of a namespace."""
    for limit_range in _ranges(context, pod):
        _fill_defaults(limit_range, pod)


def check_limit_ranges(context: Context, resource: Resource, obj: Object) -> None:
    """Refuse a pod or a volume claim that breaks a bound of its namespace."""
    for limit_range in _ranges(context, obj):
        # A single broken bound is shown bare, several in brackets, each once.
        texts = list(dict.fromkeys(_broken(limit_range, resource, obj)))
        if texts:
            raise forbidden(resource, obj["metadata"]["name"], texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def _ranges(context: Context, obj: Object) -> list[Object]:
    return [entry.obj for entry in context.storage.table("limitranges").in_namespace(obj["metadata"]["namespace"])]


def _items(limit_range: Object, kind: str) -> Iterator[Object]:
    """Yield the items of a LimitRange for Pod, Container or PersistentVolumeClaim."""
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        if item.get("type") == kind:
            yield item


def _fill_defaults(limit_range: Object, pod: Object) -> None:
    """Fill in the defaults of one LimitRange, and say in an annotation which ones."""
    defaults: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
    for item in _items(limit_range, "Container"):
        defaults["requests"] |= item.get("defaultRequest") or {}
        defaults["limits"] |= item.get("default") or {}
    notes = []
    for container, group, _ in containers_of(pod["spec"]):
        word = "container" if group == "containers" else "init container"
        resources = container.setdefault("resources", {})
        for side, singular in (("requests", "request"), ("limits", "limit")):
            added = sorted(defaults[side].keys() - (resources.get(side) or {}).keys())
            if added:
                resources.setdefault(side, {}).update({name: defaults[side][name] for name in added})
                notes.append(f"{', '.join(added)} {singular} for {word} {container['name']}")
    if notes:
        pod["metadata"].setdefault("annotations", {})[ANNOTATION] = "LimitRanger plugin set: " + "; ".join(notes)


def _broken(limit_range: Object, resource: Resource, obj: Object) -> Iterator[str]:
    """Yield the bounds of one LimitRange that an object breaks."""
    spec = obj["spec"]
    if resource.table == "persistentvolumeclaims":
        requests = amounts_of(spec, "requests")
        for item in _items(limit_range, "PersistentVolumeClaim"):
            yield from _below(item, requests, {})
            for name, bound in (item.get("max") or {}).items():
                yield from _request_above(item["type"], name, bound, requests)
        return
    for item in _items(limit_range, "Container"):
        for container, _, _ in containers_of(spec):
            yield from _out_of_bounds(item, amounts_of(container, "requests"), amounts_of(container, "limits"))
    for item in _items(limit_range, "Pod"):
        yield from _out_of_bounds(item, pod_amounts(spec, "requests"), pod_amounts(spec, "limits"))


def _out_of_bounds(item: Object, requests: Amounts, limits: Amounts) -> Iterator[str]:
    """Yield the bounds that requests and limits break: minimum, maximum, and limit in proportion to request."""
    yield from _below(item, requests, limits)
    kind = item["type"]
    for name, bound in (item.get("max") or {}).items():
        start = f"maximum {name} usage per {kind} is {bound}"
        if name not in limits:
            yield f"{start}.  No limit is specified"
        elif amount(limits[name]) > amount(bound):
            yield f"{start}, but limit is {limits[name]}"
        elif name in requests:
            yield from _request_above(kind, name, bound, requests)
    for name, bound in (item.get("maxLimitRequestRatio") or {}).items():
        start = f"{name} max limit to request ratio per {kind} is {bound}"
        if not amount(requests.get(name, "0")):
            yield f"{start}, but no request is specified or request is 0"
        elif not amount(limits.get(name, "0")):
            yield f"{start}, but no limit is specified or limit is 0"
        elif amount(limits[name]) * amount("1") > amount(requests[name]) * amount(bound):
            yield f"{start}, but provided ratio is {amount(limits[name]) / amount(requests[name]):.6f}"


def _below(item: Object, requests: Amounts, limits: Amounts) -> Iterator[str]:
    """Yield the minimums that are not reached."""
    for name, bound in (item.get("min") or {}).items():
        start = f"minimum {name} usage per {item['type']} is {bound}"
        if name not in requests:
            yield f"{start}.  No request is specified"
        elif amount(requests[name]) < amount(bound):
            yield f"{start}, but request is {requests[name]}"
        elif name in limits and amount(limits[name]) < amount(bound):
            yield f"{start}, but limit is {limits[name]}"


def _request_above(kind: str, name: str, bound: str, requests: Amounts) -> Iterator[str]:
    """Yield the maximum that a request exceeds."""
    if name not in requests:
        yield f"maximum {name} usage per {kind} is {bound}.  No request is specified"
    elif amount(requests[name]) > amount(bound):
        yield f"maximum {name} usage per {kind} is {bound}, but request is {requests[name]}"
