"""Devices and volumes are columns of nodes like cpu and memory, and what is in use follows the pods."""

from typing import Any

import pytest

from kubesched.scheduler.engine.loop import Engine
from kubesched.server.web.page.node_columns import facts, fingerprint, one_node, usage, usage_version
from kubesched.tools.bench import workloads
from kubesched.tools.bench.engine import Bench, build_engine

KINDS = [("dra", "devices driver.example.com", 10), ("csi", "volumes ebs.csi.aws.com", 39)]


def filled(kind: str, n_pods: int) -> Engine:
    """Return an engine that has placed pods which each take one of them."""
    engine = build_engine(Bench(kind))
    for each in workloads.cluster(kind, 4, 0, n_pods):
        engine.intake.apply(each.kind, None, each)
    engine.failures.writes = False
    engine.bookings.hand_over = lambda binding: engine.queue.done(binding.booked.uid)
    for pod in workloads.pods(n_pods, kind, 4):
        engine.intake.apply("Pod", None, pod)
    while engine.step():
        pass
    return engine


@pytest.mark.parametrize(("kind", "name", "each_offers"), KINDS)
def test_they_are_resources_of_the_map(kind: str, name: str, each_offers: int) -> None:
    nodes = filled(kind, 4).store.snapshot()
    resources: list[dict[str, Any]] = facts(nodes)["resources"]
    names = [each["name"] for each in resources]
    assert names.index(name) > names.index("pods")
    assert resources[names.index(name)]["allocatable"] == [each_offers] * 4
    assert sum(usage(nodes)[names.index(name)]) == 4 == int(nodes.pod_count.sum())
    assert usage(nodes)[names.index(name)] == nodes.pod_count.tolist()
    told = one_node(nodes, nodes.name(0))
    assert told is not None
    shown = {each["name"]: (each["requested"], each["allocatable"]) for each in told["resources"]}
    assert shown[name] == (str(nodes.pod_count[0]), str(each_offers))


@pytest.mark.parametrize("kind", ["dra", "csi"])
def test_versions_move_with_them(kind: str) -> None:
    engine = filled(kind, 0)
    nodes = engine.store.snapshot()
    before = fingerprint(nodes), usage_version(nodes)
    assert (fingerprint(nodes), usage_version(nodes)) == before
    more = [each for each in workloads.cluster(kind, 5, 0, 1) if each.kind in ("ResourceSlice", "CSINode")][-1]
    engine.intake.apply(more.kind, None, more)
    assert fingerprint(engine.store.snapshot()) != before[0]


def test_a_cluster_without_any_shows_none() -> None:
    nodes = filled("basic", 3).store.snapshot()
    assert [each["name"] for each in facts(nodes)["resources"]][-1] == "pods"
