"""How long the solver takes for the questions that autoscalers and deschedulers ask.

In: which questions. Out: a row of figures for each. Pods of the cluster are replicas of 50 applications; a fit is asked for
pods of one more. The pods of `estimate` are those of the benchmark of cluster-autoscaler's estimator: 50,000 of 50m and 1,000
of 95m, nodes of one core, none there at first.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Collection, Iterator
from random import Random
from typing import Any

from kubesched.kube.api import Container, Node, ObjectMeta, Pod, PodSpec, ResourceRequirements
from kubesched.kube.values import ZONE
from kubesched.scheduler.engine import spare_the_collector
from kubesched.solver import Cluster, NodeTemplate
from kubesched.solver.node_groups import NodeGroup, make_node

Figures = dict[str, Any]
_REPEATS = 5
COLUMNS = ("question", "what", "count", "cpu_s", "us_each", "s", "found")


def run(questions: Collection[str], shrink: int = 1) -> Iterator[Figures]:
    """Yield the figures of the questions, in the order in which they are listed below; all sizes are divided by `shrink`."""
    for name, measure in QUESTIONS.items():
        if name in questions:
            for figures in measure(shrink):
                yield dict.fromkeys(COLUMNS, "") | {"question": name, **figures}
            gc.unfreeze()
            gc.collect()


def _cluster(n_nodes: int, pods_each: int) -> Cluster:
    group = NodeGroup(
        name="node", capacity={"cpu": "32", "memory": "128Gi", "pods": 110}, labels={ZONE: "zone-{i%3}"}, max=n_nodes
    )
    nodes = [make_node(group, i) for i in range(n_nodes)]
    pods = (_pod(f"pod-{i}", f"app-{i % 50}", "500m", "1Gi", on=nodes[i % n_nodes].name) for i in range(n_nodes * pods_each))
    cluster = Cluster([*nodes, *pods])
    spare_the_collector()
    return cluster


def _pod(name: str, app: str, cpu: str, memory: str, on: str = "") -> Pod:
    container = Container(name="main", image="app", resources=ResourceRequirements(requests={"cpu": cpu, "memory": memory}))
    meta = ObjectMeta(name=name, namespace="default", uid=f"uid-{name}", labels={"app": app})
    return Pod(metadata=meta, spec=PodSpec(containers=(container,), node_name=on))


def _timed(ask: Callable[[int], object], count: int) -> Figures:
    """Return the figures of the quickest of some repeats of a question; by this thread's processor time."""
    best = float("inf")
    for _ in range(_REPEATS):
        started = time.thread_time()
        for i in range(count):
            ask(i)
        best = min(best, time.thread_time() - started)
    return {"count": count, "cpu_s": round(best, 4), "us_each": round(best / count * 1e6, 1)}


def _once(ask: Callable[[], str], count: int) -> Figures:
    started, cpu_started = time.perf_counter(), time.thread_time()
    found = ask()
    cpu = time.thread_time() - cpu_started
    seconds = time.perf_counter() - started
    return {
        "count": count,
        "cpu_s": round(cpu, 4),
        "us_each": round(cpu / count * 1e6, 1),
        "s": round(seconds, 3),
        "found": found,
    }


def _worlds(shrink: int) -> Iterator[Figures]:
    """Worlds and fits on 5,000 nodes with 100,000 pods."""
    cluster, n = _cluster(5000 // shrink, 20), 500 // shrink
    asked = [_pod(f"asked-{i}", "new", "2", "4Gi") for i in range(n)]

    def open_world(i: int) -> None:
        with cluster.what_if():
            pass

    def move(i: int) -> None:
        with cluster.what_if() as world:
            world.delete(f"pod-{i}")
            world.place((asked[i],))

    def grow(i: int) -> None:
        with cluster.what_if() as world:
            world.add_nodes(cluster.engine.store.nodes.objects[0])
            world.place((asked[i],))

    def come_and_go(i: int) -> None:
        placed = _pod(f"came-{i}", "new", "1m", "1Mi", on="node-0")
        cluster.apply(None, placed)
        cluster.apply(placed, None)

    yield {"what": "take in a pod that comes and goes", **_timed(come_and_go, n)}
    yield {"what": "open and close a world", **_timed(open_world, n)}
    yield {"what": "fits: node and count", **_timed(lambda i: cluster.fits(asked[i], nodes=False), n)}
    yield {"what": "fits: every node", **_timed(lambda i: cluster.fits(asked[i]), max(n // 10, 1))}
    yield {"what": "world: delete a pod, place a pod", **_timed(move, n)}
    yield {"what": "world: add a node, place a pod", **_timed(grow, max(n // 10, 1))}
    yield {"what": "memory of a world that places so many pods", "count": n, **_memory(cluster, asked)}


def _memory(cluster: Cluster, pods: list[Pod]) -> Figures:
    """Return what an open world keeps: once empty, once with pods placed."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        with cluster.what_if() as world:
            empty = tracemalloc.get_traced_memory()[0] - before
            world.place(pods)
            full = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    return {"found": f"{empty / 1024:.1f} KiB empty, {full / 1024:.0f} KiB with them"}


def _estimate(shrink: int) -> Iterator[Figures]:
    """The nodes that 51,000 pods of two shapes need."""
    cluster, n = Cluster(), 51_000 // shrink
    template = NodeTemplate(
        make_node(NodeGroup(name="node", capacity={"cpu": "1", "memory": "5000Mi", "pods": 100}, max=1), 0), name="node"
    )
    pods = [_pod(f"pod-{i}", "app", "95m" if i < n // 51 else "50m", "100") for i in range(n)]
    spare_the_collector()
    yield {"what": "nodes for pods of 2 shapes", **_once(lambda: repr(cluster.cheapest_nodes(pods, [template])), n)}


def _groups(shrink: int) -> Iterator[Figures]:
    """The cheapest of 30 groups for 10,000 pods of 200 shapes, on 2,000 nodes that are nearly full."""
    cluster, random, n = _cluster(2000 // shrink, 60), Random(1), 10_000 // shrink
    templates = []
    for i in range(30):
        cpu = random.choice((4, 8, 16, 32, 64))
        capacity: dict[str, Any] = {"cpu": cpu, "memory": f"{cpu * random.choice((2, 4, 8))}Gi", "pods": 110}
        node: Node = make_node(NodeGroup(name=f"group-{i}", capacity=capacity, labels={ZONE: f"zone-{i % 3}"}, max=1), 0)
        templates.append(NodeTemplate(node, round(cpu * random.uniform(0.8, 1.2), 3), name=f"group-{i}"))
    shapes = [(f"{random.randrange(1, 40) * 100}m", f"{random.randrange(1, 64) * 128}Mi") for _ in range(200)]
    pods = [_pod(f"waits-{i}", f"app-{i % 200}", *shapes[i % 200]) for i in range(n)]
    yield {
        "what": "cheapest of 30 groups for pods of 200 shapes",
        **_once(lambda: repr(cluster.cheapest_nodes(pods, templates)), n),
    }
    yield {"what": "place the same pods", **_once(lambda: repr(cluster.place(pods)), n)}


def _drains(shrink: int) -> Iterator[Figures]:
    """5,000 times: could this node go? On 2,000 nodes with 20 pods each."""
    cluster, n = _cluster(2000 // shrink, 20), 5000 // shrink
    names = list(cluster.engine.store.nodes.names)

    def ask() -> str:
        free = 0
        for i in range(n):
            with cluster.what_if() as world:
                world.drain(names[i % len(names)])
                free += not world.place().unplaced
        return f"{free} times it could"

    yield {"what": "drain one node and place its 20 pods", **_once(ask, n)}


QUESTIONS: dict[str, Callable[[int], Iterator[Figures]]] = {
    "worlds": _worlds,
    "estimate": _estimate,
    "groups": _groups,
    "drains": _drains,
}
