"""What a pod asks for: containers, init containers, sidecars, pod-level requests, overhead, resizes under way."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from oracles.quantities import Amounts, exact, parsed, thousandths, whole

NON_ZERO: Amounts = {"cpu": Fraction(1, 10), "memory": Fraction(200 * 1024 * 1024)}

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def is_extended(name: str) -> bool:
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    domain, _, rest = f"requests.{name}".partition("/")
    return bool(len(domain) <= 253 and _DOMAIN.fullmatch(domain) and len(rest) <= 63 and _NAME.fullmatch(rest))


def is_scalar(name: str) -> bool:
    return is_extended(name) or name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name


def counted(amounts: Amounts) -> dict[str, int]:
    """Return the amounts that scheduling counts, as whole numbers: cpu in thousandths, everything else in units."""
    result = {}
    for name, amount in amounts.items():
        if name == "cpu":
            result[name] = thousandths(amount)
        elif name in ("memory", "ephemeral-storage") or is_scalar(name):
            result[name] = whole(amount)
    return result


def requests(pod: dict[str, Any], *, use_status: bool, pod_level: bool = True, defaults: Amounts | None = None) -> Amounts:
    spec = pod["spec"]
    total: Amounts = {}
    for container in spec.get("containers") or []:
        add(total, effective(pod, container, use_status, defaults))
    so_far: Amounts = {}
    most: Amounts = {}
    for container in spec.get("initContainers") or []:
        if container.get("restartPolicy") == "Always":
            amounts = effective(pod, container, use_status, defaults)
            add(total, amounts)
            add(so_far, amounts)
            use = dict(so_far)
        else:
            use = effective(pod, container, False, defaults)
            add(use, so_far)
        take_larger(most, use)
    take_larger(total, most)
    if pod_level and has_pod_level(pod):
        asked = parsed(spec["resources"]["requests"])
        status = pod.get("status") or {}
        in_force = asked
        if use_status and status.get("resources") is not None:
            in_force = resized(
                pod, asked, parsed(status["resources"].get("requests")), parsed(status.get("allocatedResources"))
            )
        for name in asked:
            if is_pod_level(name):
                total[name] = in_force.get(name, Fraction(0))
    for name, quantity in (spec.get("overhead") or {}).items():
        total[name] = total.get(name, Fraction(0)) + exact(quantity)
    return total


def effective(pod: dict[str, Any], container: dict[str, Any], use_status: bool, defaults: Amounts | None) -> Amounts:
    amounts = parsed((container.get("resources") or {}).get("requests"))
    if use_status:
        status = pod.get("status") or {}
        reported = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
        for one in reported:
            if one["name"] == container["name"] and one.get("resources") is not None:
                amounts = resized(pod, amounts, parsed(one["resources"].get("requests")), parsed(one.get("allocatedResources")))
                break
    for name, amount in (defaults or {}).items():
        amounts.setdefault(name, amount)
    return amounts


def resized(pod: dict[str, Any], asked: Amounts, actuated: Amounts, allocated: Amounts) -> Amounts:
    pending = [c for c in (pod.get("status") or {}).get("conditions") or [] if c["type"] == "PodResizePending"]
    result: Amounts = {} if pending and pending[0].get("reason") == "Infeasible" else dict(asked)
    take_larger(result, actuated)
    take_larger(result, allocated)
    return result


def is_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def has_pod_level(pod: dict[str, Any]) -> bool:
    asked = (pod["spec"].get("resources") or {}).get("requests") or {}
    return any(is_pod_level(name) for name in asked)


def non_zero(pod: dict[str, Any]) -> tuple[int, int]:
    """Return the cpu (thousandths) and memory that a pod on a node is taken to use even if it says nothing."""
    defaults = dict(NON_ZERO)
    if has_pod_level(pod):
        plain = requests(pod, use_status=True)
        defaults = {name: amount for name, amount in NON_ZERO.items() if name not in plain}
    amounts = requests(pod, use_status=True, defaults=defaults)
    return thousandths(amounts.get("cpu", Fraction(0))), whole(amounts.get("memory", Fraction(0)))


def add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Fraction(0)) + amount


def take_larger(total: Amounts, other: Amounts) -> None:
    for name, amount in other.items():
        if name not in total or amount > total[name]:
            total[name] = amount
