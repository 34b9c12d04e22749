"""What a predicate says about an imagined cluster is what it says about a real one that is the same."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legacy_clusters import ZONE, World, random_world
from legacy_oracle import PREDICATES

from kubesched.scheduler.framework import CycleState, Plugin, Profile
from kubesched.scheduler.framework.preemption.whatif import WhatIf
from kubesched.scheduler.legacy.algorithms import PREDICATES as FACTORIES
from kubesched.scheduler.legacy.predicates.pods import CheckServiceAffinity
from kubesched.scheduler.legacy.releases import V1_13, LegacyContext


def built(name: str, world: World) -> Plugin:
    if name == "CheckServiceAffinity":
        return CheckServiceAffinity(LegacyContext(V1_13), world.handle, (ZONE, "disk"))
    (plugin,) = FACTORIES[name](LegacyContext(V1_13), world.handle)
    return plugin


def shares_a_port(pod: dict[str, Any], placed: list[dict[str, Any]]) -> bool:
    """Return whether another pod on the same node holds one of the pod's host ports."""

    def ports(raw: dict[str, Any]) -> set[tuple[Any, ...]]:
        return {
            (port.get("hostIP", ""), port.get("protocol", "TCP"), port["hostPort"])
            for container in raw["spec"]["containers"]
            for port in container.get("ports", ())
            if port.get("hostPort")
        }

    neighbours = [raw for raw in placed if raw is not pod and raw["spec"]["nodeName"] == pod["spec"]["nodeName"]]
    return any(ports(pod) & ports(raw) for raw in neighbours)


def leads_its_company(other: dict[str, Any], world: World) -> bool:
    """Return whether a pod is the first of several that the incoming pod would follow."""
    plugin, state = built("CheckServiceAffinity", world), CycleState()
    plugin.pre_filter(world.view(), world.store.snapshot(), state)
    members = state.read(plugin.name).members
    return len(members) > 1 and members[0][0] == other["metadata"]["uid"]


@pytest.mark.parametrize("name", [*PREDICATES, "GeneralPredicates", "CheckServiceAffinity"])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32), comes=st.booleans())
def test_a_pod_that_is_imagined_to_come_or_go(name: str, seed: int, comes: bool) -> None:
    world = random_world(seed)
    if not world.placed:
        return
    other = world.placed[seed % len(world.placed)]
    if not comes and shares_a_port(other, world.placed):
        return  # a what-if takes the port as free once either holder goes, as the reference does; a real removal does not
    if comes and name == "CheckServiceAffinity" and leads_its_company(other, world):
        return  # a pod that is imagined to come joins at the end, as in the reference; a real one where its node is visited
    without = World([raw for raw in world.objects if raw is not other], copy.deepcopy(world.incoming))
    before, after, sign = (without, world, 1) if comes else (world, without, -1)

    plugin, pod, snapshot = built(name, before), before.view(), before.store.snapshot()
    needed = [(plugin, 0)] if plugin.implements("pre_filter") else []
    profile = Profile("test", {"pre_filter": needed, "filter": [(plugin, 0)]})
    state = CycleState()
    assert profile.pre_filter(pod, snapshot, state).status is None
    node_name = other["spec"]["nodeName"]
    row = snapshot.row(node_name)
    imagined = WhatIf.of(snapshot, [row])
    view = before.view(other) if comes else before.store.pod(other["metadata"]["uid"])
    assert view is not None
    imagined.move(view, sign)
    profile.adjust(pod, view, row, sign, snapshot, state)
    found = profile.filter(pod, imagined, state).statuses()
    reasons = list(found[node_name].reasons) if node_name in found else []
    assert reasons == after.reasons(built(name, after))[node_name]
