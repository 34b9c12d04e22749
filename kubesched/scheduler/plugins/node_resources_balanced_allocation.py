"""NodeResourcesBalancedAllocation: prefer nodes whose resources would be used up more evenly with the pod than without.

The score is 75 where the pod changes nothing, above it where the pod evens things out, below it where it does not.
A pod that asks for none of the resources says nothing about balance, so the plugin stays out of its attempt.
"""

from __future__ import annotations

import numpy as np

from kubesched.kube.api import is_scalar_name
from kubesched.scheduler import kernels
from kubesched.scheduler.cluster import Bools, Ints
from kubesched.scheduler.config import CPU_AND_MEMORY, Args, FieldError, Gates, Path, ResourceSpec, duplicate, invalid
from kubesched.scheduler.framework import SKIP, CycleState, Handle, Input, Plugin, PodView, Snapshot, Status
from kubesched.scheduler.kernels import Floats, Usage
from kubesched.scheduler.plugins.shared.device_classes import ServedByDevices


class NodeResourcesBalancedAllocationArgs(Args, frozen=True, rename="camel"):
    resources: tuple[ResourceSpec, ...] = ()

    def defaulted(self, gates: Gates) -> NodeResourcesBalancedAllocationArgs:
        resources = tuple(resource.with_weight() for resource in self.resources) or CPU_AND_MEMORY
        return NodeResourcesBalancedAllocationArgs(resources)

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        errors = []
        seen = set()
        for at, resource in enumerate(self.resources):
            where = path.child("resources").index(at)
            if resource.name in seen:
                errors.append(duplicate(where.child("name"), resource.name))
            seen.add(resource.name)
            if resource.weight != 1:
                errors.append(invalid(where.child("weight"), resource.weight, "must be 1"))
        return errors


class NodeResourcesBalancedAllocation(Plugin):
    Args = NodeResourcesBalancedAllocationArgs
    depends_on = (Input.POD_REQUIREMENTS, Input.POD_DEVICES, Input.NODE, Input.PODS_ON_NODE)

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._names = tuple(resource.name for resource in args.resources)
        self._scalars = frozenset(name for name in self._names if is_scalar_name(name))
        self._devices = ServedByDevices(handle.objects, handle.gates.is_enabled("DRAExtendedResource"))

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        return None if self._asked(pod) else SKIP

    def _asked(self, pod: PodView) -> _Asked:
        """Return (resource number, amount) of the resources that count; a scalar that is not asked for does not. Nothing for a
        pod that asks for none of them."""
        asked: _Asked = pod.template.remember(self, lambda: self._read(pod))
        return asked

    def _read(self, pod: PodView) -> _Asked:
        resources = pod.template.interners.resources
        amounts = pod.template.resources.balanced(self._names)
        if not any(amounts.values()):
            return ()
        return tuple([(resources.id(name), amount) for name, amount in amounts.items() if amount or name not in self._scalars])

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        asked = self._asked(pod)
        if not asked:  # reached only where PreScore is switched off
            return nodes.uniform(0)
        usages: list[Usage] = []
        for resource, amount in asked:
            used, offered = self._devices.columns(resource, nodes.requested(resource), nodes)
            usages.append((offered, used, amount, 1))
        scores = kernels.balance_scores(tuple(usages), nodes.n) if nodes.n else None
        if scores is None:
            before = _balance([(used, offered) for offered, used, _, _ in usages], nodes.n)
            after = _balance([(used + amount, offered) for offered, used, amount, _ in usages], nodes.n)
            gain = after + (50 - before)
            scores = 50 + ((gain + (gain < 0)) >> 1)  # half of it, cut off towards zero: less than none if amounts overflowed
        return scores


_Asked = tuple[tuple[int, int], ...]


def _balance(usages: list[tuple[Ints, Ints]], n: int) -> Ints:
    """Return 100 where all resources are used to the same degree, less the more their degrees differ."""
    there = [offered != 0 for _, offered in usages]
    degrees = [
        np.where(held, np.minimum(used / np.where(held, offered, 1), 1.0), 0.0)
        for (used, offered), held in zip(usages, there, strict=True)
    ]
    count = np.zeros(n, dtype=np.int64)
    for held in there:
        count += held
    with np.errstate(invalid="ignore"):  # of amounts that overflowed: no number becomes the least one, as in the reference
        spread = np.where(count == 2, _of_two(degrees, there, n), _of_many(degrees, there, count, n))
        return ((1 - spread) * 100).astype(np.int64)


def _of_two(degrees: list[Floats], there: list[Bools], n: int) -> Floats:
    difference = np.zeros(n)
    seen = np.zeros(n, dtype=np.bool_)
    for degree, held in zip(degrees, there, strict=True):
        difference += np.where(seen, -degree, degree)
        seen |= held
    return np.abs(difference / 2)


def _of_many(degrees: list[Floats], there: list[Bools], count: Ints, n: int) -> Floats:
    """Return the standard deviation, summed from left to right as the reference sums; zero for fewer than three."""
    divisor = np.maximum(count, 1)
    total = np.zeros(n)
    for degree in degrees:
        total += degree
    mean = total / divisor
    squares = np.zeros(n)
    for degree, held in zip(degrees, there, strict=True):
        squares += np.where(held, (degree - mean) * (degree - mean), 0.0)
    deviation: Floats = np.where(count > 2, np.sqrt(squares / divisor), 0.0)
    return deviation
