"""NodeResourcesFit and NodeResourcesBalancedAllocation."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import sqrt
from typing import Any

from oracles import asking
from oracles.cluster import SKIP, Oracle, Status, unresolvable, unschedulable
from oracles.quantities import Amounts, divided, rounded, thousandths, whole

Raw = dict[str, Any]
CPU_AND_MEMORY = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
NATIVE = ("cpu", "memory", "ephemeral-storage")


class NodeResourcesFit(Oracle):
    name = "NodeResourcesFit"
    filters = scores = True

    def filter(self, pod: Raw, node: Raw) -> Status | None:
        cluster, asked = self.cluster, asking.counted(asking.requests(pod, use_status=False))
        reasons, never = [], False
        if len(cluster.pods_on(node)) + 1 > cluster.offers(node, "pods"):
            reasons.append("Too many pods")
        for name in (*NATIVE, *(name for name in asked if name not in NATIVE)):
            amount = asked.get(name, 0)
            if amount == 0 or self.is_ignored(name) or self.is_left_to_devices(name, node):
                continue
            if amount > cluster.offers(node, name) - cluster.used(node, name):
                reasons.append(f"Insufficient {name}")
                never = never or amount > cluster.offers(node, name)
        if not reasons:
            return None
        return unresolvable(*reasons) if never else unschedulable(*reasons)

    def is_ignored(self, name: str) -> bool:
        if not asking.is_extended(name):
            return False
        return name in (self.args.get("ignoredResources") or []) or name.split("/")[0] in (
            self.args.get("ignoredResourceGroups") or []
        )

    def is_left_to_devices(self, name: str, node: Raw) -> bool:
        if not asking.is_scalar(name) or self.cluster.offers(node, name):
            return False
        return any(
            c["spec"].get("extendedResourceName") == name
            or f"deviceclass.resource.kubernetes.io/{c['metadata']['name']}" == name
            for c in self.cluster.others.get("DeviceClass", [])
        )

    def score(self, pod: Raw, node: Raw) -> int:
        strategy = self.args.get("scoringStrategy") or {"type": "LeastAllocated"}
        asked = asking.requests(pod, use_status=False, pod_level=False, defaults=asking.NON_ZERO)
        weighted = []
        for resource in strategy.get("resources") or CPU_AND_MEMORY:
            name, weight = resource["name"], resource.get("weight") or 1
            amount, offered = amount_of(asked, name), self.cluster.offers(node, name)
            if offered == 0 or not counts(name, amount):
                continue
            weighted.append((score_of(strategy, self.cluster.used_non_zero(node, name) + amount, offered), weight))
        if strategy["type"] == "RequestedToCapacityRatio":
            weighted = [(score, weight) for score, weight in weighted if score > 0]
            total = sum(weight for _, weight in weighted)
            return rounded(sum(score * weight for score, weight in weighted) / total) if total else 0
        total = sum(weight for _, weight in weighted)
        return sum(score * weight for score, weight in weighted) // total if total else 0


def counts(name: str, amount: int) -> bool:
    """Return whether a resource enters a score: a scalar one only if the pod asks for it, an unknown one never."""
    return name in NATIVE or (asking.is_scalar(name) and amount != 0)


def amount_of(asked: Amounts, name: str) -> int:
    amount = asked.get(name, Fraction(0))
    return thousandths(amount) if name == "cpu" else whole(amount)


def score_of(strategy: Raw, requested: int, offered: int) -> int:
    if strategy["type"] == "LeastAllocated":
        return 0 if requested > offered else divided((offered - requested) * 100, offered)
    if strategy["type"] == "MostAllocated":
        return divided(min(requested, offered) * 100, offered)
    used = 100 if requested > offered else divided(requested * 100, offered)
    return on_shape(strategy["requestedToCapacityRatio"]["shape"], used)


def on_shape(shape: list[Raw], used: int) -> int:
    points = [(point["utilization"], point["score"] * 10) for point in shape]
    if used <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in pairwise(points):
        if used <= x1:
            return y0 + divided((y1 - y0) * (used - x0), x1 - x0)
    return points[-1][1]


class NodeResourcesBalancedAllocation(Oracle):
    name = "NodeResourcesBalancedAllocation"
    scores = True

    def asked(self, pod: Raw) -> dict[str, int]:
        amounts = asking.requests(pod, use_status=True)
        return {r["name"]: amount_of(amounts, r["name"]) for r in self.args.get("resources") or CPU_AND_MEMORY}

    def pre_score(self, pod: Raw, feasible: list[Raw]) -> Status | None:
        return None if any(self.asked(pod).values()) else SKIP

    def score(self, pod: Raw, node: Raw) -> int:
        before, after = [], []
        for name, amount in self.asked(pod).items():
            offered = self.cluster.offers(node, name) if name != "pods" else 0
            if offered == 0 or not counts(name, amount):
                continue
            used = self.cluster.used(node, name)
            before.append(min(1.0, float(used) / float(offered)))
            after.append(min(1.0, float(used + amount) / float(offered)))
        return 50 + divided(50 + balance(after) - balance(before), 2)


def balance(fractions: list[float]) -> int:
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        total = squares = 0.0
        for fraction in fractions:
            total += fraction
        mean = total / len(fractions)
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = sqrt(squares / len(fractions))
    return int((1 - deviation) * 100)
