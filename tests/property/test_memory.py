"""Decisions are equal with answers remembered and without, whatever happened in between."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.remembering import memories, said
from random_cluster import change_something, named, random_cluster

from kubesched.scheduler.engine.deciding.cycle import Rules, attempt
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.framework.verdicts import Placed
from kubesched.testing import clusters


def play(seed: int, turns: int) -> None:
    random = Random(seed)
    store, profile = random_cluster(random)
    memos = memories(profile)
    rules = Rules(SeededTies(seed), preempts=False)
    kinds = [clusters.random_pod(random, f"kind-{i}") for i in range(3)]
    kinds += [clusters.disguised(random, random.choice(kinds)) for _ in range(3)]  # other classes on the same ground
    kinds += [clusters.resized(random, random.choice(kinds)) for _ in range(3)]
    for turn in range(turns):
        pod = store.view(named(random.choice(kinds), f"p{turn}"))
        plain = attempt(pod, store.snapshot(), profile, rules)
        for memo in memos:
            recalled = attempt(pod, store.snapshot(), profile, rules, memo)
            assert said(recalled) == said(plain), f"seed {seed}, turn {turn}, {type(memo).__name__}, pod {pod.pod}"
        if isinstance(plain.decision, Placed):
            store.assume(pod, plain.decision.node_name)
        if random.random() < 0.4:
            change_something(random, store, turn)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_memory_never_changes_a_decision(seed: int) -> None:
    play(seed, turns=25)


@pytest.mark.nightly
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=3000, deadline=None)
def test_memory_never_changes_a_decision_over_many_histories(seed: int) -> None:
    play(seed, turns=60)
