"""Every predicate over columns says what its slow form says node by node."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legacy_clusters import REGION, ZONE, World, random_world
from legacy_oracle import PREDICATES, check_service_affinity, labels_presence

from kubesched.scheduler.legacy.algorithms import PREDICATES as FACTORIES
from kubesched.scheduler.legacy.predicates.node_facts import CheckNodeLabelPresence
from kubesched.scheduler.legacy.predicates.pods import CheckServiceAffinity
from kubesched.scheduler.legacy.releases import V1_13, V1_17, LegacyContext, LegacyGates

SEEDS = st.integers(0, 1 << 32)
UNRESOLVABLE = frozenset(
    {
        "node(s) didn't match the requested hostname",
        "node(s) didn't match node selector",
        "node(s) were unschedulable",
        "node(s) were not ready",
        "node(s) were out of disk space",
        "node(s) had unavailable network",
        "node(s) had memory pressure",
        "node(s) had disk pressure",
        "node(s) had pid pressure",
        "node(s) had taints that the pod didn't tolerate",
        "node(s) didn't match pod affinity rules",
        "node(s) didn't have the requested labels",
    }
)


def only_one(reasons: list[str]) -> list[str]:
    """Return the reason that 1.17 kept: the first that no eviction helps against, or the first of all."""
    hopeless = [reason for reason in reasons if reason in UNRESOLVABLE]
    return (hopeless or reasons)[:1]


@pytest.mark.parametrize("name", PREDICATES)
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_a_predicate_says_what_its_slow_form_says(name: str, seed: int) -> None:
    world = random_world(seed)
    expected = {node["metadata"]["name"]: PREDICATES[name](world, node) for node in world.nodes}
    gates = LegacyGates(even_pods_spread=True)
    (of_1_13,) = FACTORIES[name](LegacyContext(V1_13, gates), world.handle)
    assert world.reasons(of_1_13) == expected
    (of_1_17,) = FACTORIES[name](LegacyContext(V1_17, gates), world.handle)
    assert world.reasons(of_1_17) == {node: only_one(reasons) for node, reasons in expected.items()}


@settings(max_examples=60, deadline=None)
@given(
    seed=SEEDS,
    present=st.sets(st.sampled_from([ZONE, "disk", "nowhere"])),
    absent=st.sets(st.sampled_from(["pool", "nowhere"])),
)
def test_label_presence_says_what_its_slow_form_says(seed: int, present: set[str], absent: set[str]) -> None:
    world = random_world(seed)
    plugin = CheckNodeLabelPresence(LegacyContext(), world.handle, tuple(present), tuple(absent))
    assert world.reasons(plugin) == {
        node["metadata"]["name"]: labels_presence(world, node, tuple(present), tuple(absent)) for node in world.nodes
    }


@settings(max_examples=120, deadline=None)
@given(seed=SEEDS, wanted=st.lists(st.sampled_from([ZONE, REGION, "disk"]), min_size=1, max_size=3, unique=True))
def test_service_affinity_says_what_its_slow_form_says(seed: int, wanted: list[str]) -> None:
    world = random_world(seed)
    plugin = CheckServiceAffinity(LegacyContext(), world.handle, tuple(wanted))
    visit = world.store.snapshot().order.names
    assert world.reasons(plugin) == {
        node["metadata"]["name"]: check_service_affinity(world, node, wanted, visit) for node in world.nodes
    }


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_general_predicates_are_their_four_parts_with_all_reasons(seed: int) -> None:
    world = random_world(seed)
    (general,) = FACTORIES["GeneralPredicates"](LegacyContext(V1_13), world.handle)
    parts = ("PodFitsResources", "HostName", "PodFitsHostPorts", "MatchNodeSelector")
    assert world.reasons(general) == {
        node["metadata"]["name"]: [reason for part in parts for reason in PREDICATES[part](world, node)] for node in world.nodes
    }


def test_the_random_clusters_reach_every_reason() -> None:
    seen: set[str] = set()
    for seed in range(400):
        world: World = random_world(seed)
        for predicate in PREDICATES.values():
            for node in world.nodes:
                seen.update(predicate(world, node))
        visit = world.store.snapshot().order.names
        for node in world.nodes:
            seen.update(check_service_affinity(world, node, ["disk"], visit))
    assert seen >= UNRESOLVABLE - {"node(s) didn't have the requested labels"} | {
        "Insufficient pods",
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient ephemeral-storage",
        "Insufficient example.com/gpu",
        "node(s) didn't have free ports for the requested pod ports",
        "node(s) didn't match pod topology spread constraints",
        "node(s) didn't match service affinity",
        "node(s) didn't satisfy existing pods anti-affinity rules",
        "node(s) didn't match pod anti-affinity rules",
    }
