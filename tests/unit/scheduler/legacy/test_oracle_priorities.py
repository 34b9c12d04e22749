"""Every priority over columns scores what its slow form scores node by node, in both ranges."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legacy_clusters import REGION, ZONE, World, random_world
from legacy_oracle import (
    PRIORITIES,
    Raw,
    capacity_ratio,
    inter_pod_affinity,
    old_image_locality,
    service_anti_affinity,
    spread,
)

from kubesched.scheduler.legacy.algorithms import PRIORITIES as FACTORIES
from kubesched.scheduler.legacy.priorities.preferences import EqualPriority, NodeLabelPriority
from kubesched.scheduler.legacy.priorities.requested import RequestedToCapacityRatioPriority
from kubesched.scheduler.legacy.priorities.spreading import ServiceAntiAffinity
from kubesched.scheduler.legacy.releases import V1_6, V1_13, V1_17, LegacyContext, Release

SEEDS = st.integers(0, 1 << 32)


def feasible(world: World, seed: int) -> list[Raw]:
    """Return some of the nodes, never none."""
    chance = random.Random(seed)
    return [node for node in world.nodes if chance.random() < 0.7] or world.nodes[:1]


def names(nodes: list[Raw]) -> set[str]:
    return {node["metadata"]["name"] for node in nodes}


@pytest.mark.parametrize("release", [V1_13, V1_17], ids=str)
@pytest.mark.parametrize("name", PRIORITIES)
@settings(max_examples=50, deadline=None)
@given(seed=SEEDS)
def test_a_priority_scores_what_its_slow_form_scores(name: str, release: Release, seed: int) -> None:
    world = random_world(seed)
    chosen = feasible(world, seed)
    context = LegacyContext(release)
    priority = FACTORIES[name](context, world.handle) or EqualPriority(context, world.handle)
    assert world.scores(priority, names(chosen)) == PRIORITIES[name](world, chosen, release.max_score)


@settings(max_examples=80, deadline=None)
@given(seed=SEEDS)
def test_priorities_of_1_6_that_differ(seed: int) -> None:
    world = random_world(seed)
    chosen = feasible(world, seed)
    context = LegacyContext(V1_6)
    for name, expected in (
        ("ImageLocalityPriority", old_image_locality(world, chosen, 10)),
        ("SelectorSpreadPriority", spread(world, chosen, 10, any_of=True)),
        ("ServiceSpreadingPriority", spread(world, chosen, 10, any_of=True, services_only=True)),
    ):
        priority = FACTORIES[name](context, world.handle)
        assert priority is not None
        assert world.scores(priority, names(chosen)) == expected, name


SHAPES = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=4, unique_by=lambda point: point[0]
).map(sorted)


@settings(max_examples=80, deadline=None)
@given(seed=SEEDS, shape=SHAPES, gpu_weight=st.integers(0, 3))
def test_requested_to_capacity_ratio_scores_what_its_slow_form_scores(
    seed: int, shape: list[tuple[int, int]], gpu_weight: int
) -> None:
    world = random_world(seed)
    weights = {"cpu": 2, "memory": 1, **({"example.com/gpu": gpu_weight} if gpu_weight else {})}
    priority = RequestedToCapacityRatioPriority(LegacyContext(), world.handle, shape, weights)
    chosen = feasible(world, seed)
    assert world.scores(priority, names(chosen)) == capacity_ratio(world, chosen, shape, weights)


@settings(max_examples=80, deadline=None)
@given(seed=SEEDS, wanted=st.lists(st.sampled_from([ZONE, REGION, "disk"]), min_size=1, max_size=3, unique=True))
def test_service_anti_affinity_scores_what_its_slow_form_scores(seed: int, wanted: list[str]) -> None:
    world = random_world(seed)
    chosen = feasible(world, seed)
    priority = ServiceAntiAffinity(LegacyContext(), world.handle, tuple(wanted))
    assert world.scores(priority, names(chosen)) == service_anti_affinity(world, chosen, 100, wanted)


@settings(max_examples=50, deadline=None)
@given(seed=SEEDS, weight=st.integers(0, 100))
def test_required_affinity_of_placed_pods_counts_with_the_hard_weight(seed: int, weight: int) -> None:
    world = random_world(seed)
    priority = FACTORIES["InterPodAffinityPriority"](LegacyContext(hard_pod_affinity_weight=weight), world.handle)
    assert priority is not None
    assert world.scores(priority) == inter_pod_affinity(world, world.nodes, 100, weight)


@settings(max_examples=50, deadline=None)
@given(seed=SEEDS, present=st.sets(st.sampled_from([ZONE, "disk"]), min_size=1), absent=st.sets(st.just("pool")))
def test_label_preferences_are_averaged(seed: int, present: set[str], absent: set[str]) -> None:
    world = random_world(seed)
    priority = NodeLabelPriority(LegacyContext(), world.handle, tuple(present), tuple(absent))
    expected = {}
    for node in world.nodes:
        own = node["metadata"]["labels"]
        met = [key in own for key in present] + [key not in own for key in absent]
        expected[node["metadata"]["name"]] = sum(100 * hit for hit in met) // len(met)
    assert world.scores(priority) == expected


def test_the_random_clusters_tell_nodes_apart() -> None:
    differing = dict.fromkeys(PRIORITIES, 0)
    for seed in range(300):
        world = random_world(seed)
        for name, oracle in PRIORITIES.items():
            differing[name] += len(set(oracle(world, world.nodes, 100).values())) > 1
    assert all(count > 5 for name, count in differing.items() if name != "EqualPriority"), differing
