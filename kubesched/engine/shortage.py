"""What is short on the nodes: how much less a pod would have to ask for, and whether it could ever fit.

In: who refuses which nodes. Out: advice about resources, read off what NodeResourcesFit said: it knows which resources are
ignored and which are served by devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from kubesched.api import quantity
from kubesched.api.pod import Container, Pod
from kubesched.api.quantity import format_quantity
from kubesched.cluster import Bools
from kubesched.engine.obstacles import FIT, Advice, Obstacles, Retrying, would_take_it
from kubesched.plugins.node_resources_fit import TOO_MANY_PODS

_SHORT = "Insufficient "
_NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Ever:
    """Whether a pod could ever be on one of these nodes, were they empty."""

    n_nodes: int
    n_large: int
    """Nodes that are large enough."""
    n_open: int
    """Those of them that nothing keeps it off which no eviction changes: taints, selectors, a cordon."""

    @property
    def text(self) -> str:
        """Return the answer in a sentence."""
        if not self.n_nodes:
            return "not as long as there is no node"
        if not self.n_large:
            return f"never on these nodes: none of the {self.n_nodes} is large enough, even empty"
        large = f"{self.n_large} of {self.n_nodes} nodes {'is' if self.n_large == 1 else 'are'} large enough"
        if not self.n_open:
            return f"not on these nodes as they are: {large}, but something that no eviction changes keeps it off"
        return f"yes: {large}, {self.n_open} of them open to it once others make room"


def ever(obstacles: Obstacles) -> Ever:
    """Return whether the pod could be on one of the nodes if it were empty."""
    nodes = obstacles.nodes
    large = (nodes.allowed_pods > 0) & ~obstacles.too_small()
    return Ever(nodes.n, int(np.count_nonzero(large)), int(np.count_nonzero(large & ~obstacles.beyond_eviction())))


def advise_less(obstacles: Obstacles, alone: Bools, again: Retrying | None) -> list[Advice]:
    """Return what to ask for so that the pod fits now, and where only the number of pods is in the way."""
    nodes, asked = obstacles.nodes, _short(obstacles)
    full = np.zeros(nodes.n, dtype=np.bool_)
    for reason, where in obstacles.reasons(FIT):
        if reason.text == TOO_MANY_PODS.text:
            full |= where
    found = []
    crowded = alone & full
    lacking = np.zeros(nodes.n)
    for resource, amount in asked.items():
        missing = np.maximum(amount - nodes.free(resource), 0)
        lacking += missing / amount
        crowded &= missing == 0
    if crowded.any():
        n, examples = int(np.count_nonzero(crowded)), obstacles.examples(crowded)
        found.append(
            Advice(
                "pods",
                f"{n} node{'s have' if n != 1 else ' has'} the resources but as many pods as allowed ({', '.join(examples)})",
                FIT,
                n,
                examples,
            )
        )
    near = np.flatnonzero(alone & ~full & (lacking > 0))
    if not len(near):
        return found
    large = near[~obstacles.too_small()[near]]  # room can be made there; a small node stays small
    near = large if len(large) else near
    closest = int(near[int(lacking[near].argmin())])
    free = {r: nodes.allocatable_at(r, closest) - nodes.requested_at(r, closest) for r in asked}
    names = nodes.templates.resources.values
    lack = {names[r]: amount_text(names[r], amount - free[r]) for r, amount in asked.items() if free[r] < amount}
    needs = " and ".join(f"{amount} more {name}" for name, amount in lack.items())
    told = f"closest is {nodes.name(closest)}: it would fit with {needs}"
    if any(free[r] <= 0 for r, amount in asked.items() if free[r] < amount):
        found.append(Advice("closest", told, FIT, 0, (nodes.name(closest),), {"lacking": lack}))
        return found
    fits = alone & ~full
    for resource, amount in asked.items():
        fits &= nodes.free(resource) >= min(amount, free[resource])
    n, examples = int(np.count_nonzero(fits)), obstacles.examples(fits)
    less = {names[r]: amount_text(names[r], free[r]) for r, amount in asked.items() if free[r] < amount}
    offer = " and ".join(f"{amount} {name}" for name, amount in less.items())
    found.append(
        Advice(
            "lower",
            f"{told}; asking for {offer}, {would_take_it(n, examples)}",
            FIT,
            n,
            examples,
            {"requests": less, "lacking": lack},
            _asking_less(obstacles.pod.pod, {names[r]: amount - free[r] for r, amount in asked.items() if free[r] < amount}),
        )
    )
    return found


def _asking_less(pod: Pod, lacking: Mapping[str, int]) -> Pod | None:
    """Return the pod with so much less asked for by the container that asks for most of it; None if none asks for enough."""
    containers = list(pod.spec.containers)
    for resource, amount in lacking.items():
        asked = [_requested(container, resource) for container in containers]
        at = max(range(len(asked)), key=lambda i: asked[i], default=-1)
        if at < 0 or asked[at] <= amount:
            return None
        one = containers[at]
        less, limits = {resource: amount_text(resource, asked[at] - amount)}, one.resources.limits
        resources = msgspec.structs.replace(
            one.resources,
            requests={**one.resources.requests, **less},
            limits={**limits, **less} if "/" in resource and resource in limits else limits,  # these two are one amount
        )
        containers[at] = msgspec.structs.replace(one, resources=resources)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=tuple(containers)))


def _requested(container: Container, resource: str) -> int:
    """Return what a container asks for, in the units of the columns: thousandths of a cpu, or ones."""
    nano = quantity.parse(container.resources.requests.get(resource, "0"))
    return -(-nano // (_NANO // 1000 if resource == "cpu" else _NANO))


def advise_on_size(obstacles: Obstacles) -> list[Advice]:
    """Return whether the nodes that are short of resources would do if they were empty."""
    if FIT not in obstacles.by_plugin:
        return []
    # Those that are counted as short in the scheduler's message: a tainted node may be short too, and is not.
    nodes, short, never = obstacles.nodes, obstacles.owned(FIT), obstacles.too_small()
    if not short.any():
        return []
    n, n_empty = int(np.count_nonzero(short)), int(np.count_nonzero(short & ~never))
    if n_empty:
        return [
            Advice(
                "empty",
                f"{n_empty} of {n} node{'s' if n != 1 else ''} short of resources could hold it if they were empty",
                FIT,
                n_empty,
                obstacles.examples(short & ~never),
            )
        ]
    which = obstacles.examples(short)[0] if n == 1 else f"none of the {n} nodes short of resources"
    limits = _too_large(obstacles, short)
    names = nodes.templates.resources.values
    sizes = " and ".join(f"{amount_text(names[r], most)} {names[r]}" for r, most in limits.items())
    why = f" (the largest has {sizes})" if sizes and n > 1 else ""
    could = "could not hold it even empty" if n == 1 else "could hold it even empty"
    return [
        Advice(
            "never",
            f"{which} {could}{why}: ask for less, or add larger nodes",
            FIT,
            change={"largest": {names[r]: amount_text(names[r], most) for r, most in limits.items()}},
        )
    ]


def _short(obstacles: Obstacles) -> dict[int, int]:
    """Return the requests that are short on some node."""
    names = obstacles.nodes.templates.resources.values
    short = {reason.text.removeprefix(_SHORT) for reason, _ in obstacles.reasons(FIT) if reason.text.startswith(_SHORT)}
    return {resource: amount for resource, amount in obstacles.pod.requests if amount and names[resource] in short}


def _too_large(obstacles: Obstacles, rows: Bools) -> dict[int, int]:
    """Return the resources of which none of some nodes has as much as is asked for, with the most that one has."""
    offered = {r: int(obstacles.nodes.allocatable(r)[rows].max(initial=0)) for r in _short(obstacles)}
    return {r: offered[r] for r, amount in _short(obstacles).items() if offered[r] < amount}


def amount_text(resource: str, amount: int) -> str:
    """Return an amount as people write it; cpu is counted in thousandths."""
    unit = _NANO // 1000 if resource == "cpu" else _NANO
    return format_quantity(amount * unit, "BinarySI" if is_bytes(resource) else "DecimalSI")


def is_bytes(resource: str) -> bool:
    """Return whether a resource is counted in bytes."""
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
