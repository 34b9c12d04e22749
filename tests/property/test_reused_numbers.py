"""A number that is used again changes no answer: what lived through a history decides as what has only seen how it ended."""

import gc
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.remembering import memories

from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.cluster.changelog import ChangeLog
from kubesched.scheduler.cluster.journal import Journal
from kubesched.scheduler.engine.deciding.cycle import Attempt, Rules, attempt
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.framework.verdicts import Placed
from kubesched.testing import clusters
from kubesched.tools.conformance.cases import Cluster

_with = msgspec.structs.replace


def own_labels(random: Random, pod: Pod, turn: int) -> Pod:
    """Return a pod with a label that few others have."""
    return _with(pod, metadata=_with(pod.metadata, labels={**pod.metadata.labels, "hash": f"h{turn // random.choice((1, 4))}"}))


def own_values(random: Random, node: Node, turn: int) -> Node:
    """Return a node with a zone, a rank, a label and a resource that few others have."""
    key = random.choice(("topology.kubernetes.io/zone", "rank", f"own/{turn}"))
    labels = {**node.metadata.labels, key: f"v{turn}"}
    offer = {**node.status.allocatable, f"example.com/r{turn}": "3"}
    return _with(node, metadata=_with(node.metadata, labels=labels), status=_with(node.status, allocatable=offer))


def answer(made: Attempt) -> dict[str, object]:
    """Return every node's verdict and total by name."""
    nodes = made.nodes
    feasible = made.decision.feasible if isinstance(made.decision, Placed) else 0
    totals = {} if made.ranking is None else dict(zip(nodes.names, made.ranking.totals.tolist(), strict=True))
    best = max(totals.values(), default=0)
    return {
        "feasible": feasible,
        "best": {name for name, total in totals.items() if total == best},
        "kind": type(made.decision),
    }


def rebuilt(old: Store) -> Cluster:
    """Return a cluster that has only seen what there is now."""
    cluster = Cluster([])
    for namespace in clusters.namespaces():
        cluster.store.objects.put(namespace)
    for node in old.nodes.objects:
        cluster.store.put_node(node)
    for pod in old.pods():
        cluster.store.put_pod(pod.pod)
    return cluster


def play(seed: int, turns: int) -> None:
    random = Random(seed)
    cluster = Cluster([])
    store = cluster.store
    for namespace in clusters.namespaces():
        store.objects.put(namespace)
    for i in range(random.randrange(2, 8)):
        store.put_node(clusters.random_node(random, f"n{i}"))
    (profile,) = cluster.profiles.values()
    memo, _ = memories(profile)
    memo.budget_bytes = 100_000
    rules = Rules(SeededTies(seed), preempts=False)
    highest = 0
    for turn in range(turns):
        pod = own_labels(random, clusters.random_pod(random, f"p{turn}"), turn)
        if random.random() < 0.3:
            pod = _with(pod, spec=_with(pod.spec, priority=turn))
        fresh = rebuilt(store)
        (new_profile,) = fresh.profiles.values()
        expected = answer(attempt(fresh.store.view(pod), fresh.store.snapshot(), new_profile, rules))
        view = store.view(pod)
        made = attempt(view, store.snapshot(), profile, rules, memo)
        plain = attempt(view, store.snapshot(), profile, rules)
        assert answer(plain) == expected, f"seed {seed}, turn {turn}, pod {pod}"
        assert type(made.decision) is type(plain.decision)
        if isinstance(made.decision, Placed):
            assert made.decision.node_name in expected["best"] or not expected["best"]  # type: ignore[operator]
            store.assume(view, made.decision.node_name)
        placed = [one.uid for one in store.pods()]
        while len(placed) > 6:
            store.remove_pod(placed.pop(random.randrange(len(placed))))
        names = list(store.nodes.rows)
        roll = random.random()
        if roll < 0.3:
            store.put_node(own_values(random, clusters.random_node(random, random.choice(names)), turn))
        elif roll < 0.4:
            store.put_node(own_values(random, clusters.random_node(random, f"extra-{turn}"), turn))
        elif roll < 0.5 and len(names) > 2:
            store.remove_node(random.choice(names))
        if random.random() < 0.05:
            gc.collect()
        highest = max(highest, view.template.label_class.number)
    assert highest < turns // 2, "numbers were used again"


@pytest.fixture
def short_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let logs keep nothing alive for long."""
    monkeypatch.setattr(ChangeLog, "longest", 8)
    monkeypatch.setattr(Journal, "longest", 8)


@pytest.mark.usefixtures("short_logs")
@pytest.mark.parametrize("collects", [True, False], ids=["with the cycle collector", "by counts of references alone"])
@pytest.mark.parametrize("seed", range(6))
def test_reused_numbers_change_no_answer(seed: int, *, collects: bool) -> None:
    if not collects:
        gc.disable()
    try:
        play(seed, turns=80)
    finally:
        gc.enable()


@pytest.mark.nightly
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=300, deadline=None)
def test_reused_numbers_change_no_answer_in_many_histories(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChangeLog, "longest", 8)
        patch.setattr(Journal, "longest", 8)
        play(seed, turns=200)
