"""Compare two configurations on the same scenario or cluster: which pods move, and how the figures change.

In: two simulations that have run, or a captured cluster to decide again. Out: one document with the figures of both, and the
pods that they placed on different nodes, by workload. Pods are matched by namespace and name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from kubesched.kube.api import Pod, PodStatus, ResourceClaim, ResourceClaimStatus, is_finished
from kubesched.kube.values import MIRROR_POD
from kubesched.scheduler import config as configs
from kubesched.scheduler.framework import Registry
from kubesched.tools.simulation.simulation import Simulation
from kubesched.tools.snapshots.captured import Captured, after_what_it_needs

_APART_SECONDS = 0.001
_with = msgspec.structs.replace


class Moves(msgspec.Struct, rename="camel"):
    """The pods of one workload under both configurations."""

    workload: str
    placed: int = 0
    """Placed by both."""
    moved: int = 0
    """On different nodes."""
    other_zone: int = 0
    only_a: int = 0
    """Placed by the first only."""
    only_b: int = 0


def compare(a: Simulation, b: Simulation) -> dict[str, Any]:
    """Return the figures of two simulations that have run, and what moved from the first to the second."""
    by_workload: dict[str, Moves] = {}
    moved: list[dict[str, str]] = []
    ours, theirs = a.pods, b.pods
    for key in dict.fromkeys((*ours, *theirs)):
        mine, other = ours.get(key), theirs.get(key)
        is_placed = mine is not None and mine.placed is not None
        is_placed_too = other is not None and other.placed is not None
        if not (is_placed or is_placed_too):
            continue
        some = mine or other
        assert some is not None
        moves = by_workload.setdefault(some.workload, Moves(some.workload))
        if not (is_placed and is_placed_too):
            moves.only_a += is_placed
            moves.only_b += is_placed_too
            continue
        assert mine is not None and other is not None
        moves.placed += 1
        moves.other_zone += mine.zone != other.zone
        if mine.node != other.node:
            moves.moved += 1
            moved.append({"pod": key, "workload": mine.workload, "a": mine.node, "b": other.node})
    rows = sorted(by_workload.values(), key=lambda row: (-row.moved - row.only_a - row.only_b, row.workload))
    workloads = [msgspec.to_builtins(row) for row in rows]
    summary = {name: sum(row[name] for row in workloads) for name in Moves.__struct_encode_fields__[1:]}
    return {"a": a.metrics(), "b": b.metrics(), "moves": {**summary, "workloads": workloads, "pods": moved}}


def decide_both(
    cluster: Captured, policies: Iterable[tuple[configs.Configuration, configs.Gates, Registry]], *, reschedule: bool
) -> list[Simulation]:
    """Return a simulation for each configuration. Only pods of schedulers that all configurations have are moved."""
    policies = list(policies)
    movable = set.intersection(*({profile.scheduler_name for profile in each.profiles} for each, _, _ in policies))
    return [
        decide_anew(
            cluster, reschedule=reschedule, movable=movable, configuration=configuration, gates=gates, registry=registry
        )
        for configuration, gates, registry in policies
    ]


def decide_anew(
    cluster: Captured,
    *,
    reschedule: bool = False,
    movable: Collection[str] = (),
    configuration: configs.Configuration | None = None,
    gates: configs.Gates | None = None,
    registry: Registry | None = None,
) -> Simulation:
    """Return a simulation of a captured cluster in which its pending pods are about to be decided.

    With `reschedule`, the pods of the schedulers named in `movable` are taken off their nodes first, and all come again one
    after the other, oldest first, with the devices that only they had claimed free again. Pods that are ending, and those
    that a kubelet runs by itself, stay.
    """
    sim = Simulation(config=configuration, seed=cluster.seed, gates=gates, registry=registry, epoch=cluster.at)
    coming = [obj for obj in cluster.of(Pod) if reschedule and not is_finished(obj) and _may_move(obj, movable)]
    moved = {pod.uid for pod in coming}
    for obj in sorted(cluster.objects, key=after_what_it_needs):
        if isinstance(obj, Pod) and (is_finished(obj) or obj.uid in moved):
            continue
        users = {user.uid for user in obj.status.reserved_for} if isinstance(obj, ResourceClaim) else set()
        sim.add(_with(obj, status=ResourceClaimStatus()) if users and users <= moved else obj)
    coming.sort(key=lambda pod: (pod.metadata.creation_timestamp or "", pod.key))
    for number, pod in enumerate(coming, 1):
        # The claims that were made for a pod are its own wherever it goes.
        status = PodStatus(resource_claim_statuses=pod.status.resource_claim_statuses)
        sim.submit(_with(pod, spec=_with(pod.spec, node_name=""), status=status), at=number * _APART_SECONDS)
    return sim


def _may_move(pod: Pod, schedulers: Collection[str]) -> bool:
    """Return whether a pod may be decided again: not terminating, not a static pod, of one of these schedulers."""
    meta = pod.metadata
    return (
        pod.spec.scheduler_name in schedulers and meta.deletion_timestamp is None and MIRROR_POD not in (meta.annotations or {})
    )
