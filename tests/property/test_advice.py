"""Advice is exact: who does what it says finds as many nodes as it promises."""

from __future__ import annotations

from random import Random

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.kube.api import codec
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Affinity, Pod, Toleration
from kubesched.scheduler import config
from kubesched.scheduler.engine.assembly import default_configuration
from kubesched.scheduler.engine.explaining.explain import Explanation, explain_now
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.framework.advice import Advice
from kubesched.testing import clusters
from kubesched.tools.snapshots.captured import Captured

GATES = config.Gates.defaults()
CONFIGURATION = default_configuration(GATES)


def told(cluster: Captured, pod: Pod) -> tuple[Engine, Explanation]:
    engine = cluster.engine(CONFIGURATION, GATES)
    return engine, explain_now(engine, engine.store.view(pod))


def n_feasible(cluster: Captured, pod: Pod) -> int:
    return told(cluster, pod)[1].n_feasible


def with_spec(pod: Pod, **changes: object) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **changes))


def uncordoned(cluster: Captured) -> Captured:
    def opened(node: Node) -> Node:
        return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=False))

    return Captured(cluster.at, [opened(obj) if isinstance(obj, Node) else obj for obj in cluster.objects])


def smaller(pod: Pod, requests: dict[str, str]) -> Pod:
    (only,) = pod.spec.containers
    asked = msgspec.structs.replace(only.resources, requests={**only.resources.requests, **requests})
    return with_spec(pod, containers=(msgspec.structs.replace(only, resources=asked),))


def followed(advice: Advice, cluster: Captured, pod: Pod) -> int | None:
    """Return how many nodes take the pod after the advice was followed; None for advice that names no change."""
    spec = pod.spec
    if advice.kind == "tolerate":
        more = [codec.convert(each, Toleration) for each in advice.change["tolerations"]]
        return n_feasible(cluster, with_spec(pod, tolerations=(*spec.tolerations, *more)))
    if advice.kind == "uncordon":
        return n_feasible(uncordoned(cluster), pod)
    if advice.kind == "lower":
        return n_feasible(cluster, smaller(pod, advice.change["requests"]))
    if advice.kind == "selector" and advice.text.startswith("without nodeSelector "):
        left = {key: value for key, value in (spec.node_selector or {}).items() if key != advice.change["key"]}
        return n_feasible(cluster, with_spec(pod, node_selector=left or None))
    if advice.kind == "constraint" and "maxSkew" in advice.change and len(spec.topology_spread_constraints) == 1:
        return n_feasible(cluster, with_spec(pod, topology_spread_constraints=()))
    if advice.kind == "constraint" and "pods" in advice.change:
        left = msgspec.structs.replace(spec.affinity or Affinity(), pod_affinity=None, pod_anti_affinity=None)
        return n_feasible(cluster, with_spec(pod, affinity=left))
    return None


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_following_advice_finds_as_many_nodes_as_it_says(seed: int) -> None:
    random = Random(seed)
    nodes = [clusters.random_node(random, f"n{i}") for i in range(random.randrange(1, 9))]
    placed = [clusters.random_pod(random, f"placed-{i}", on=random.choice(nodes).metadata.name) for i in range(12)]
    cluster = Captured(7.5, [*clusters.namespaces(), *nodes, *placed])
    for i in range(4):
        pod = clusters.random_pod(random, f"new-{i}")
        _, found = told(cluster, pod)
        if found.n_feasible:
            assert not found.suggestions
            continue
        assert found.suggestions, "whoever is refused everywhere is told something"
        for advice in found.suggestions:
            n = followed(advice, cluster, pod)
            assert n is None or n == advice.n_nodes, (advice, n, pod)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_a_pod_that_could_fit_empty_nodes_fits_them_when_they_are_empty(seed: int) -> None:
    random = Random(seed)
    nodes = [clusters.random_node(random, f"n{i}") for i in range(random.randrange(1, 9))]
    placed = [clusters.random_pod(random, f"placed-{i}", on=random.choice(nodes).metadata.name) for i in range(20)]
    pod = with_spec(clusters.random_pod(random, "new"), affinity=None, topology_spread_constraints=())
    _, found = told(Captured(7.5, [*nodes, *placed]), pod)
    engine, empty = told(Captured(7.5, list(nodes)), pod)
    if found.ever is not None:
        assert found.ever.n_open == empty.n_feasible
        rooms = np.ones(len(nodes), dtype=np.bool_)
        for resource, amount in engine.store.view(pod).requests:
            rooms &= (amount == 0) | (engine.store.snapshot().allocatable(resource) >= amount)
        assert found.ever.n_large == np.count_nonzero(rooms)
