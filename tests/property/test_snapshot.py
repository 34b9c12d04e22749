"""The columns do not depend on the road taken: after any history they equal those built from the objects that remain."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.fuzzer import THEMES, Fuzzer

from kubesched.kube.api import codec
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.cluster import Store
from kubesched.testing import clusters


def described(store: Store) -> dict[str, Any]:
    """Return everything a decision can read of the nodes and their pods, by name and in words."""
    nodes = store.snapshot()
    resources = sorted(nodes.templates.resources.values)
    rows = {}
    for row, name in enumerate(nodes.names):
        rows[name] = {
            "offers": {
                r: nodes.allocatable_at(nodes.resource(r), row)
                for r in resources
                if nodes.allocatable_at(nodes.resource(r), row)
            },
            "asked": {
                r: nodes.requested_at(nodes.resource(r), row) for r in resources if nodes.requested_at(nodes.resource(r), row)
            },
            "counted": [nodes.non_zero_requested_at(r, row) for r in (0, 1)],
            "pods": (int(nodes.pod_count[row]), int(nodes.allowed_pods[row])),
            "taints": nodes.taint_sets[nodes.taint_set[row]],
            "cordoned": bool(nodes.is_unschedulable[row]),
            "features": nodes.feature_sets[nodes.feature_set[row]],
            "labels": {
                key: column.values.values[code]
                for key, column in store.nodes.labels.items()
                if (code := int(nodes.codes(key)[row])) >= 0
            },
            "images": {image: state.size for image, state in store.nodes.images.items() if row in state.rows},
            "uids": sorted(pod.uid for pod in nodes.pods_on(row)),
        }
    table = (
        sorted(
            (view.uid, nodes.names[row], nodes.templates.label_classes[class_id], affinity)
            for view, row, class_id, affinity in zip(
                store.slots.views,
                nodes.pod_rows().tolist(),
                nodes.pod_classes().tolist(),
                nodes.pod_affinities().tolist(),
                strict=True,
            )
            if view is not None
        )
        if nodes.n
        else []
    )
    return {
        "rows": rows,
        "table": [
            (uid, node, cls.namespace, sorted(cls.labels.items()), cls.terminating, affinity > 0)
            for uid, node, cls, affinity in table
        ],
        "classes": {
            name: sorted(sorted(one.labels.items()) for one in alive) for name, alive in store.slots.by_namespace.items()
        },
        "ports": {
            (key, ip): sorted(store.slots.views[s].uid for s in slots)  # type: ignore[union-attr]
            for key, by_ip in store.slots.ports.items()
            for ip, slots in by_ip.items()
        },
    }


def rebuilt(store: Store) -> Store:
    """Return a new store with the objects that remain."""
    fresh = Store()
    for node in store.nodes.objects:
        fresh.put_node(node)
    for pod in store.pods():
        fresh.put_pod(pod.pod)
    return fresh


def live_through(random: Random, source: Any, turns: int, seed: int) -> None:
    """Let things happen to a store, and compare after each."""
    store = Store()
    pending = [store.view(source.random_pod(random, f"p{i}")) for i in range(30)]
    for turn in range(turns):
        nodes, placed = list(store.nodes.rows), list(store.pods())
        roll = random.random()
        name = f"n{random.randrange(8)}"
        if roll < 0.3:
            store.put_node(source.random_node(random, name))
        elif roll < 0.4 and nodes:
            store.remove_node(random.choice(nodes))
        elif roll < 0.6 and pending:
            store.assume(pending.pop(), name)  # also onto a node that is not here
        elif roll < 0.7:
            store.put_pod(source.random_pod(random, f"q{random.randrange(20)}", on=name))  # also one that was elsewhere
        elif roll < 0.8 and placed:
            chosen = random.choice(placed)
            if store.is_assumed(chosen.uid):
                store.put_pod(chosen.pod) if random.random() < 0.5 else store.forget(chosen.uid)
        elif roll < 0.9 and placed:
            store.remove_pod(random.choice(placed).uid)
        assert without_sizes(described(store)) == without_sizes(described(rebuilt(store))), f"seed {seed}, turn {turn}"


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=120, deadline=None)
def test_columns_do_not_depend_on_the_road_taken(seed: int) -> None:
    live_through(Random(seed), clusters, turns=60, seed=seed)


class Odd:
    """Odd objects instead of tame ones."""

    def __init__(self, random: Random) -> None:
        self.wild = Fuzzer(random, random.choice(tuple(THEMES)))

    def random_node(self, random: Random, name: str) -> Node:
        return codec.convert(self.wild.node(name), Node)

    def random_pod(self, random: Random, name: str, *, on: str = "") -> Pod:
        raw = self.wild.pod(name, on=on)
        if not on:
            raw["spec"].pop("nodeName", None)
        return codec.convert(raw, Pod)


def without_sizes(found: dict[str, Any]) -> dict[str, Any]:
    """Return a description without what does depend on the road: an image has the size that its first holder reported."""
    for row in found["rows"].values():
        row["images"] = sorted(row["images"])
    return found


def check_odd(seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)
        live_through(random, Odd(random), turns=40, seed=seed)


@pytest.mark.parametrize("block", range(2))
def test_nor_do_they_with_odd_objects(block: int) -> None:
    check_odd(range(block * 15, block * 15 + 15))


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(10))
def test_nor_do_they_with_very_many_odd_objects(block: int) -> None:
    check_odd(range(1000 + block * 100, 1100 + block * 100))
