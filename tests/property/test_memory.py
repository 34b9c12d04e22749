"""Decisions are equal with answers remembered and without, whatever happened in between."""

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.remembering import memories, said

from kubesched.kube.api.node import Node
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.engine.deciding.cycle import Rules, attempt
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.framework.verdicts import Placed
from kubesched.testing import clusters
from kubesched.tools.conformance.cases import Cluster


def changed(random: Random, old: Node) -> Node:
    """Return a node with another part, or with everything other than before."""
    new = clusters.random_node(random, old.metadata.name)
    parts = random.choice((("metadata",), ("spec",), ("status",), ("metadata", "spec", "status")))
    return msgspec.structs.replace(old, **{part: getattr(new, part) for part in parts})


def change_something(random: Random, store: Store, turn: int) -> None:
    """Let one thing happen to the cluster."""
    names = list(store.nodes.rows)
    placed = list(store.pods())
    roll = random.random()
    if roll < 0.15 or not names:
        store.put_node(clusters.random_node(random, f"extra-{turn}"))
    elif roll < 0.22 and len(names) > 2:
        store.remove_node(random.choice(names))
    elif roll < 0.5:
        store.put_node(changed(random, store.nodes.objects[store.nodes.rows[random.choice(names)]]))
    elif roll < 0.7 and placed:
        store.remove_pod(random.choice(placed).uid)
    elif roll < 0.8:
        labels = {"team": random.choice("ab")} if random.random() < 0.5 else {}
        for namespace in clusters.namespaces():
            store.objects.put(
                msgspec.structs.replace(namespace, metadata=msgspec.structs.replace(namespace.metadata, labels=labels))
            )
    else:
        store.put_pod(clusters.random_pod(random, f"other-{turn}", on=random.choice(names)))


def play(seed: int, turns: int) -> None:
    random = Random(seed)
    cluster = Cluster([])
    store = cluster.store
    for namespace in clusters.namespaces():
        store.objects.put(namespace)
    for i in range(random.randrange(1, 12)):
        store.put_node(clusters.random_node(random, f"n{i}"))
    (profile,) = cluster.profiles.values()
    memos = memories(profile)
    rules = Rules(SeededTies(seed), preempts=False)
    kinds = [clusters.random_pod(random, f"kind-{i}") for i in range(3)]
    kinds += [clusters.disguised(random, random.choice(kinds)) for _ in range(3)]  # other classes on the same ground
    kinds += [clusters.resized(random, random.choice(kinds)) for _ in range(3)]
    for turn in range(turns):
        kind = random.choice(kinds)
        meta = msgspec.structs.replace(kind.metadata, name=f"p{turn}", uid=f"uid-p{turn}")
        pod = store.view(msgspec.structs.replace(kind, metadata=meta))
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
