"""What a pod asks for and may use in all: containers, init containers, sidecars, overhead and pod-level resources.

In: a pod's spec as plain dictionaries. Out: amounts by name, as texts that read as their authors wrote them (Mi stays Mi).
"""

from __future__ import annotations

from kubesched.embedded.admission.qos import amount
from kubesched.embedded.resources import Object
from kubesched.kube.values import quantity

Amounts = dict[str, str]


def pod_requests(spec: Object) -> Amounts:
    """Return the requests of a pod as a whole."""
    return _whole(spec, "requests")


def pod_limits(spec: Object) -> Amounts:
    """Return the limits of a pod as a whole; what no container limits has none."""
    return _whole(spec, "limits")


def plus(one: Amounts, other: Amounts) -> Amounts:
    """Return the sums, in the style of the first that has one."""
    return {name: _sum(one.get(name), other.get(name)) for name in one.keys() | other.keys()}


def _sum(one: str | None, other: str | None) -> str:
    style = quantity.style_of(one if one is not None and amount(one) else other or one or "0")
    return quantity.format_quantity(amount(one or "0") + amount(other or "0"), style)


def _larger(one: Amounts, other: Amounts) -> Amounts:
    return {name: max((one.get(name, "0"), other.get(name, "0")), key=amount) for name in one.keys() | other.keys()}


def _of(container: Object, side: str) -> Amounts:
    return dict((container.get("resources") or {}).get(side) or {})


def _whole(spec: Object, side: str) -> Amounts:
    total: Amounts = {}
    for container in spec.get("containers") or ():
        total = plus(total, _of(container, side))
    sidecars: Amounts = {}
    highest: Amounts = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars = plus(sidecars, _of(container, side))
            highest = _larger(highest, sidecars)
        else:
            highest = _larger(highest, plus(sidecars, _of(container, side)))
    total = _larger(plus(total, sidecars), highest)
    total |= _of(spec, side)  # resources of the pod as a whole decide where they are given
    overhead = spec.get("overhead") or {}
    if side == "limits":
        overhead = {name: text for name, text in overhead.items() if name in total}
    return plus(total, overhead)
