"""The resources of a pod: its containers, the sums of their requests and limits, its quality-of-service class.

In: a pod's spec as plain dictionaries. Out: quantities as text, in the style in which they were written (Mi stays Mi), because
they end up in messages and in the status of quotas. The scheduler's own sums are in kube/api/requests.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.embedded.schema.resources import Object
from kubesched.kube.values import QuantityError, quantity

Amounts = dict[str, str]
CONTAINER_GROUPS = ("containers", "initContainers")
_COUNTED = ("cpu", "memory")


def containers_of(spec: Object) -> Iterator[tuple[Object, str, int]]:
    """Yield every container of a pod, then every init container, each with its list's name and its place there."""
    for group in CONTAINER_GROUPS:
        for at, container in enumerate(spec.get(group) or ()):
            yield container, group, at


def affinity_terms(spec: Object) -> Iterator[Object]:
    """Yield every pod affinity and anti-affinity term, required and preferred."""
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = (spec.get("affinity") or {}).get(kind) or {}
        yield from rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}


def amounts_of(holder: Object, side: str) -> Amounts:
    """Return the requests or the limits of a container, of a claim's spec, or of a pod as a whole."""
    found: Amounts = (holder.get("resources") or {}).get(side) or {}
    return found


def amount(text: str) -> int:
    """Return a quantity as a number to compare: "1" equals "1000m". An unreadable one counts as 0."""
    try:
        return quantity.parse(text)
    except QuantityError:
        return 0


def pod_amounts(spec: Object, side: str) -> Amounts:
    """Return the `requests` or the `limits` of a whole pod.

    The larger of two sums counts: all containers with the sidecars, or an init container with the sidecars that were started
    before it. Requests of the pod as a whole replace the sum. Overhead comes on top; it adds to a limit only where there is
    one.
    """
    total: Amounts = {}
    for container in spec.get("containers") or ():
        total = _plus(total, amounts_of(container, side))
    sidecars: Amounts = {}
    highest: Amounts = {}
    for container in spec.get("initContainers") or ():
        wanted = _plus(sidecars, amounts_of(container, side))
        highest = _larger(highest, wanted)
        if container.get("restartPolicy") == "Always":
            sidecars = wanted
    total = _larger(_plus(total, sidecars), highest)
    total |= amounts_of(spec, side)  # resources of the pod as a whole decide where they are given
    overhead = spec.get("overhead") or {}
    if side == "limits":
        overhead = {name: text for name, text in overhead.items() if name in total}
    return _plus(total, overhead)


def _plus(one: Amounts, other: Amounts) -> Amounts:
    """Return the sums, in the style of the first operand that has the resource."""
    return {name: _sum(one.get(name), other.get(name)) for name in one.keys() | other.keys()}


def _sum(one: str | None, other: str | None) -> str:
    """Return the sum of two quantities as text."""
    style = quantity.style_of(one if one is not None and amount(one) else other or one or "0")
    return quantity.format_quantity(amount(one or "0") + amount(other or "0"), style)


def _larger(one: Amounts, other: Amounts) -> Amounts:
    """Return the larger amount of each resource."""
    return {name: max((one.get(name, "0"), other.get(name, "0")), key=amount) for name in one.keys() | other.keys()}


def qos_class(spec: Object) -> str:
    """Return Guaranteed, Burstable or BestEffort. Amounts of the pod as a whole decide if there are any."""
    is_whole = amounts_of(spec, "requests") or amounts_of(spec, "limits")
    asking = [spec] if is_whole else [container for container, _, _ in containers_of(spec)]
    sides = [(_counted(one, "requests"), _counted(one, "limits")) for one in asking]
    if not any(requests or limits for requests, limits in sides):
        return "BestEffort"
    is_guaranteed = all(len(limits) == len(_COUNTED) and requests == limits for requests, limits in sides)
    return "Guaranteed" if is_guaranteed else "Burstable"


def _counted(holder: Object, side: str) -> dict[str, int]:
    wanted = amounts_of(holder, side)
    return {name: amount(wanted[name]) for name in _COUNTED if name in wanted and amount(wanted[name])}
