"""The advice of NodeResourcesFit in `why`: what is short, and how much less the pod would have to request.

It reads the reasons of the filter, because the filter knows which resources are ignored or served by devices.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from kubesched.kube.api import Container, Pod
from kubesched.kube.values import amount_text, quantity
from kubesched.scheduler.cluster import Bools
from kubesched.scheduler.framework import AMOUNT, REMARK, Advice, Refused

_SHORT = "Insufficient "


def advise_on_resources(refused: Refused, too_many_pods: str) -> list[Advice]:
    """Return what to request so that the pod fits now, and whether it would fit empty nodes."""
    return [*_less(refused, too_many_pods), *([_size(refused)] if refused.owned.any() else ())]


def _less(refused: Refused, too_many_pods: str) -> list[Advice]:
    """Return what to request so that the pod fits the closest node, and the nodes where only the number of pods is too high.

    The closest node is the one where the missing shares of all requests add up to least.
    """
    nodes, asked, alone = refused.nodes, _short(refused), refused.alone
    full = np.zeros(nodes.n, dtype=np.bool_)
    for reason, where in refused.reasons:
        if reason.text == too_many_pods:
            full |= where
    found = []
    crowded = alone & full
    # `lacking` adds up, for each node, missing / requested over the resources: 1 of 4 cpu and 1 of 2 GPUs missing is
    # 0.25 + 0.5 = 0.75. A ratio makes amounts comparable: bytes of memory would decide alone otherwise.
    lacking = np.zeros(nodes.n)
    for resource, amount in asked.items():
        missing = np.maximum(amount - nodes.free(resource), 0)
        lacking += missing / amount
        crowded &= missing == 0
    if crowded.any():
        n, examples = int(np.count_nonzero(crowded)), refused.examples(crowded)
        have = "nodes have" if n != 1 else "node has"
        text = f"{n} {have} the resources but as many pods as allowed ({', '.join(examples)})"
        found.append(Advice("pods", text, refused.plugin, n, examples, rank=AMOUNT))
    near = np.flatnonzero(alone & ~full & (lacking > 0))
    if not len(near):
        return found
    large = near[~refused.beyond_eviction()[near]]  # large enough when empty; a node that is too small is no goal
    near = large if len(large) else near
    closest = int(near[int(lacking[near].argmin())])
    free = {r: nodes.allocatable_at(r, closest) - nodes.requested_at(r, closest) for r in asked}
    names = nodes.templates.resources.values
    missing_here = {r: amount - free[r] for r, amount in asked.items() if free[r] < amount}
    lack = {names[r]: amount_text(names[r], amount) for r, amount in missing_here.items()}
    needs = " and ".join(f"{amount} more {name}" for name, amount in lack.items())
    nearest = f"closest is {nodes.name(closest)}: it would fit with {needs}"
    # Nothing is left of one of the resources: a smaller request for it would be 0, which is no advice. Only what is
    # lacking is said.
    if any(free[r] <= 0 for r in missing_here):
        found.append(Advice("closest", nearest, refused.plugin, 0, (nodes.name(closest),), {"lacking": lack}, rank=AMOUNT))
        return found
    # The advice is checked on all nodes: a request that fits the closest node mostly fits others too.
    fits = alone & ~full
    for resource, amount in asked.items():
        fits &= nodes.free(resource) >= min(amount, free[resource])
    less = {names[r]: amount_text(names[r], free[r]) for r in missing_here}
    offer = " and ".join(f"{amount} {name}" for name, amount in less.items())
    change = {"requests": less, "lacking": lack}
    changed = _asking_less(refused.pod.pod, {names[r]: amount for r, amount in missing_here.items()})
    text = f"{nearest}; asking for {offer},"
    found.append(refused.advise("lower", text, fits, change=change, changed=changed, rank=AMOUNT))
    return found


def _asking_less(pod: Pod, lacking: Mapping[str, int]) -> Pod | None:
    """Return the pod with these amounts taken from the container that requests most; None if no container requests enough."""
    # The largest request gives way, because it can: of requests 100m and 3 cpu, with 500m too much, the second becomes
    # 2500m.
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
            limits={**limits, **less} if "/" in resource and resource in limits else limits,  # equal by rule
        )
        containers[at] = msgspec.structs.replace(one, resources=resources)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=tuple(containers)))


def _requested(container: Container, resource: str) -> int:
    """Return what a container requests, in the units of the columns: thousandths of a cpu, else whole units."""
    nano = quantity.parse(container.resources.requests.get(resource, "0"))
    return -(-nano // (quantity.NANO // 1000 if resource == "cpu" else quantity.NANO))


def _size(refused: Refused) -> Advice:
    """Return how many of the nodes that are short of resources would fit the pod if they were empty."""
    # Only nodes that the scheduler's message counts as short: a node that a taint refuses first may be short too.
    nodes, short, never = refused.nodes, refused.owned, refused.beyond_eviction()
    n, n_empty = int(np.count_nonzero(short)), int(np.count_nonzero(short & ~never))
    if n_empty:
        text = f"{n_empty} of {n} node{'s' if n != 1 else ''} short of resources could hold it if they were empty"
        return Advice("empty", text, refused.plugin, n_empty, refused.examples(short & ~never), rank=REMARK)
    which = refused.examples(short)[0] if n == 1 else f"none of the {n} nodes short of resources"
    limits = _too_large(refused, short)
    names = nodes.templates.resources.values
    sizes = " and ".join(f"{amount_text(names[r], most)} {names[r]}" for r, most in limits.items())
    why = f" (the largest has {sizes})" if sizes and n > 1 else ""
    could = "could not hold it even empty" if n == 1 else "could hold it even empty"
    change = {"largest": {names[r]: amount_text(names[r], most) for r, most in limits.items()}}
    text = f"{which} {could}{why}: ask for less, or add larger nodes"
    return Advice("never", text, refused.plugin, change=change, rank=REMARK)


def _short(refused: Refused) -> dict[int, int]:
    """Return the requests of which some node has too little."""
    names = refused.nodes.templates.resources.values
    short = {reason.text.removeprefix(_SHORT) for reason, _ in refused.reasons if reason.text.startswith(_SHORT)}
    return {resource: amount for resource, amount in refused.pod.requests if amount and names[resource] in short}


def _too_large(refused: Refused, rows: Bools) -> dict[int, int]:
    """Return the resources of which no node of `rows` is large enough, with the amount of the largest."""
    offered = {r: int(refused.nodes.allocatable(r)[rows].max(initial=0)) for r in _short(refused)}
    return {r: offered[r] for r, amount in _short(refused).items() if offered[r] < amount}
