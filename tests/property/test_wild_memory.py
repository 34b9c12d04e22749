"""The equivalence cache changes no decision in odd clusters, with odd changes and nominations between the decisions."""

from __future__ import annotations

from random import Random

import pytest
from oracles.comparing import Ours, Scene
from oracles.fuzzer import THEMES, Fuzzer
from oracles.remembering import memories, said
from random_cluster import named

from kubesched.scheduler.engine.deciding.cycle import Attempt, Rules, attempt
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.framework.verdicts import Placed


def conclusion(made: Attempt) -> tuple[object, object]:
    return said(made), getattr(made.decision, "nomination", None)


class Same:
    """A source of chance that always returns the same number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def randrange(self, stop: int) -> int:
        return self.number % stop


def change(ours: Ours, wild: Fuzzer, turn: int) -> None:
    """Make one random change to the cluster."""
    random, store = wild.random, ours.store
    names, placed = list(store.nodes.rows), [pod.uid for pod in store.pods()]
    what = random.choice(
        ("node", "node", "new node", "no node", "pod", "pod", "no pod", "around", "nominate", "nominate", "denominate")
    )
    if what == "node" and names:
        ours.put(wild.node(random.choice(names)))
    elif what == "new node":
        ours.put(wild.node(f"extra-{turn}"))
    elif what == "no node" and len(names) > 1:
        store.remove_node(random.choice(names))
    elif what == "pod" and names:
        ours.put(wild.pod(f"late-{turn}", on=random.choice([*names, "gone"])))
    elif what == "no pod" and placed:
        store.remove_pod(random.choice(placed))
    elif what == "around":
        for raw in wild.surroundings():
            ours.put(raw)
    elif what == "nominate" and names:
        ours.nominations.put(ours.view(wild.pod(f"nominated-{random.randrange(4)}")), random.choice([*names, "gone"]))
    elif what == "denominate":
        ours.nominations.drop(f"uid-nominated-{random.randrange(4)}")


def live_through(seed: int, turns: int) -> None:
    scene, random = Scene(seed), Random(seed)
    wild = Fuzzer(random, random.choice(tuple(THEMES)))
    ours = Ours(scene)
    memos = memories(ours.profile)
    ours.handle.random = Same(seed)
    rules = Rules(SeededTies(seed), ours.nominations, preempts=seed % 2 == 0)
    kinds = [ours.view(pod) for pod in scene.pods]
    for turn in range(turns):
        pod = ours.store.view(named(random.choice(kinds).pod, f"twin-{turn}"))
        plain = attempt(pod, ours.store.snapshot(), ours.profile, rules)
        for memo in memos:
            recalled = attempt(pod, ours.store.snapshot(), ours.profile, rules, memo)
            assert conclusion(recalled) == conclusion(plain), f"seed {seed}, turn {turn}, {type(memo).__name__}, {pod}"
        if isinstance(plain.decision, Placed) and not pod.node_name:
            ours.store.assume(pod, plain.decision.node_name)
        if random.random() < 0.5:
            change(ours, wild, turn)


@pytest.mark.parametrize("block", range(3))
def test_memory_changes_no_decision_in_odd_clusters(block: int) -> None:
    for seed in range(block * 25, block * 25 + 25):
        live_through(seed, turns=20)


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(20))
def test_memory_changes_no_decision_in_very_many_odd_clusters(block: int) -> None:
    for seed in range(10_000 + block * 100, 10_000 + block * 100 + 100):
        live_through(seed, turns=50)
