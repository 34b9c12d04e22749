"""NodeResourcesBalancedAllocation: prefer nodes whose resources would be used more evenly with the pod than without.

The balance of a node is 100 * (1 - standard deviation of the used fractions). The score is 50 + half of (50 + gain), where gain
is the balance with the pod less the balance without it:

    node: 1 of 4 cpu and 4 of 8 Gi used            pod: 1 cpu, 0 memory
    without: fractions 1/4, 1/2: deviation 1/8     balance int(87.5) = 87
    with:    fractions 1/2, 1/2: deviation 0       balance 100
    score:   50 + (50 + 13) / 2 = 81, rounded down. 75 means that the pod changes nothing.

A pod that requests none of the resources is skipped.
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
        self._asked_key = object()

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        return None if self._asked(pod) else SKIP

    def _asked(self, pod: PodView) -> _Asked:
        """Return (resource number, amount) of the resources that count, without scalar resources that the pod does not request;
        nothing for a pod that requests none of them."""

        # Kept quirk: a native resource that the pod does not request counts with 0 if the pod requests another one,
        # because the pod changes the balance with it. A scalar resource (a GPU) that the pod does not request does not
        # count at all.
        def read() -> _Asked:
            resources, amounts = pod.template.interners.resources, pod.template.resources.balanced(self._names)
            if not any(amounts.values()):
                return ()
            return tuple(
                [(resources.id(name), amount) for name, amount in amounts.items() if amount or name not in self._scalars]
            )

        asked: _Asked = pod.template.remember(self._asked_key, read)
        return asked

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        """Return 50 + (50 + balance with the pod - balance without it) / 2, rounded down. The compiled kernel does it in one
        pass; it returns None for amounts that need Go's overflow rules."""
        asked = self._asked(pod)
        if not asked:  # only in a configuration without this plugin's PreScore
            return nodes.uniform(0)
        usages: list[Usage] = []
        for resource, amount in asked:
            used, offered = self._devices.columns(resource, nodes.requested(resource), nodes)
            # The weight 1 is there for the kernel, which the strategies of NodeResourcesFit use too. Weights do not
            # matter for the balance.
            usages.append((offered, used, amount, 1))
        scores = kernels.balance_scores(tuple(usages), nodes.n) if nodes.n else None
        if scores is None:
            before = _balance([(used, offered) for offered, used, _, _ in usages], nodes.n)
            after = _balance([(used + amount, offered) for offered, used, amount, _ in usages], nodes.n)
            gain = after + (50 - before)
            # Half of the gain, rounded towards zero as Go does: it is negative only if amounts overflowed.
            scores = 50 + ((gain + (gain < 0)) >> 1)
        return scores


_Asked = tuple[tuple[int, int], ...]


def _balance(usages: list[tuple[Ints, Ints]], n: int) -> Ints:
    """Return the balance of each node; `usages` are (used, offered). Resources that a node does not offer do not count.

    For two resources the standard deviation is |a - b| / 2, and Go computes it so. For three or more it sums from left to
    right. The order of the floating point operations is kept, because the last digit decides about rounding.
    """
    there = [offered != 0 for _, offered in usages]
    fractions = [
        np.where(held, np.minimum(used / np.where(held, offered, 1), 1.0), 0.0)
        for (used, offered), held in zip(usages, there, strict=True)
    ]
    # `count` is how many resources each node offers, `difference` is a - b for exactly two of them (the sign flips
    # after the first), `total` is the sum for the mean of three and more.
    count = np.zeros(n, dtype=np.int64)
    difference, seen, total, squares = np.zeros(n), np.zeros(n, dtype=np.bool_), np.zeros(n), np.zeros(n)
    for fraction, held in zip(fractions, there, strict=True):
        count += held
        difference += np.where(seen, -fraction, fraction)
        seen |= held
        total += fraction
    with np.errstate(invalid="ignore"):  # amounts that overflowed: NaN becomes the lowest integer, as in Go
        divisor = np.maximum(count, 1)
        mean = total / divisor
        for fraction, held in zip(fractions, there, strict=True):
            squares += np.where(held, (fraction - mean) * (fraction - mean), 0.0)
        of_many: Floats = np.where(count > 2, np.sqrt(squares / divisor), 0.0)
        deviation = np.where(count == 2, np.abs(difference / 2), of_many)
        return ((1 - deviation) * 100).astype(np.int64)
