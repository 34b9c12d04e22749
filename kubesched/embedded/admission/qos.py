"""The quality-of-service class of a pod, from what its containers ask for, and amounts compared as amounts."""

from __future__ import annotations

from kubesched.embedded.resources import Object
from kubesched.kube.values import quantity
from kubesched.kube.values.quantity import QuantityError

_COUNTED = ("cpu", "memory")


def amount(text: str) -> int:
    """Return a quantity as a number that compares: "1" equals "1000m"; what cannot be read counts as nothing."""
    try:
        return quantity.parse(text)
    except QuantityError:
        return 0


def qos_class(spec: Object) -> str:
    """Return Guaranteed, Burstable or BestEffort; resources of the pod as a whole decide when they are given."""
    whole = spec.get("resources") or {}
    if whole.get("requests") or whole.get("limits"):
        asking = [whole]
    else:
        containers = list(spec.get("initContainers") or ()) + list(spec.get("containers") or ())
        asking = [container.get("resources") or {} for container in containers]
    if not any(_counted(one, "requests") or _counted(one, "limits") for one in asking):
        return "BestEffort"
    for one in asking:
        requests, limits = _counted(one, "requests"), _counted(one, "limits")
        if len(limits) < len(_COUNTED) or requests != limits:
            return "Burstable"
    return "Guaranteed"


def _counted(resources: Object, side: str) -> dict[str, int]:
    asked = resources.get(side)
    if not asked:
        return {}
    return {name: amount(asked[name]) for name in _COUNTED if name in asked and amount(asked[name])}
