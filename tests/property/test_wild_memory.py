"""Remembered answers stay true in odd clusters that change in odd ways, beside pods that are nominated and denominated."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from oracles.comparing import Ours, Scene
from oracles.fuzzer import THEMES, Fuzzer
from oracles.remembering import memories
from random_cluster import named

from kubesched.scheduler.engine.deciding.cycle import Attempt, Rules, attempt
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.framework.verdicts import Failed, Placed, Unschedulable


def said(made: Attempt) -> tuple[Any, ...]:
    """Return what an attempt concludes, in words."""
    decision = made.decision
    if isinstance(decision, Placed):
        return "placed", decision.node_name, decision.feasible
    if isinstance(decision, Unschedulable):
        return "unschedulable", decision.message, decision.nomination, sorted(decision.diagnosis.unschedulable_plugins)
    assert isinstance(decision, Failed)
    return "failed", decision.message


class Same:
    """Draws the same number again and again, however often it is asked."""

    def __init__(self, number: int) -> None:
        self.number = number

    def randrange(self, stop: int) -> int:
        return self.number % stop


def change(ours: Ours, wild: Fuzzer, turn: int) -> None:
    """Let one thing happen to the cluster."""
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
            assert said(recalled) == said(plain), f"seed {seed}, turn {turn}, {type(memo).__name__}, {pod}"
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
