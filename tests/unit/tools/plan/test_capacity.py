"""Capacity: how many more fit, and what stops the next one."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.errors import SchedulerError
from kubesched.kube.api.meta import ObjectMeta, OwnerReference
from kubesched.kube.api.storage import StorageClass
from kubesched.scheduler import config
from kubesched.scheduler.engine.assembly import Ports, default_configuration
from kubesched.scheduler.engine.loop import Engine
from kubesched.solver import Cluster
from kubesched.solver.filling import MOST_ONE_BY_ONE, Filling
from kubesched.testing import even, node, pod
from kubesched.tools.plan.capacity import Capacity, measure
from kubesched.tools.plan.manifests import Manifest
from kubesched.tools.snapshots.captured import Captured


def engine(cluster: Captured, ports: Ports) -> Engine:
    gates = config.Gates.defaults()
    return cluster.engine(default_configuration(gates), gates, ports=ports)


def manifest(kind: str = "Pod", version: str = "v1", name: str = "p", **fields: Any) -> Manifest:
    return Manifest("x.yaml, document 1", {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields})


def asking(cpu: str = "1", **spec: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}], **spec}


def count(asked: Manifest, *objects: Any, **options: Any) -> Capacity:
    return measure(Captured(5.0, list(objects)), [asked], engine, **options)


def test_it_counts_until_nothing_fits_and_says_what_is_short() -> None:
    found = count(
        manifest(spec=asking()),
        node("a", cpu="2", zone="y"),
        node("b", cpu="3", zone="z"),
        pod("old", on="b", requests={"cpu": "2"}),
        pod("waiting", requests={"cpu": "1"}),
    )
    assert (found.count, found.nodes, found.zones, found.is_limited) == (3, {"a": 2, "b": 1}, {"y": 2, "z": 1}, False)
    told = found.as_dict()["stoppedBy"]
    assert told["message"] == "0/2 nodes are available: 2 Insufficient cpu."
    assert told["reasons"] == [{"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "nodes": 2, "examples": ["a", "b"]}]


def test_the_limit_ends_the_count() -> None:
    found = count(manifest(spec=asking("1m")), node("a", pods=10_000), limit=700)
    assert (found.count, found.is_limited, found.stopped_by) == (700, True, None)
    assert "stoppedBy" not in found.as_dict()


def test_copies_stand_in_each_others_way() -> None:
    spread = [even({"app": "w"}, "kubernetes.io/hostname")]
    template = {"metadata": {"labels": {"app": "w"}}, "spec": asking("1", topologySpreadConstraints=spread)}
    asked = manifest(
        "Deployment", "apps/v1", spec={"replicas": 9, "selector": {"matchLabels": {"app": "w"}}, "template": template}
    )
    found = count(asked, node("a", cpu="8"), node("b", cpu="2"))
    assert found.nodes == {"a": 3, "b": 2}
    assert found.workload == "Deployment/default/p"


@pytest.mark.parametrize(
    ("kind", "version", "spec"),
    [
        ("ReplicationController", "v1", {"replicas": 0, "template": {"metadata": {"labels": {"a": "b"}}, "spec": asking()}}),
        ("Job", "batch/v1", {"suspend": True, "template": {"spec": asking(restartPolicy="Never")}}),
        (
            "CronJob",
            "batch/v1",
            {
                "schedule": "* * * * *",
                "suspend": True,
                "jobTemplate": {"spec": {"template": {"spec": asking(restartPolicy="Never")}}},
            },
        ),
        (
            "DaemonSet",
            "apps/v1",
            {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": asking()}},
        ),
        (
            "StatefulSet",
            "apps/v1",
            {
                "serviceName": "s",
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": asking()},
            },
        ),
        ("Pod", "v1", asking(nodeName="a")),
    ],
)
def test_of_a_workload_the_template_is_taken(kind: str, version: str, spec: dict[str, Any]) -> None:
    assert count(manifest(kind, version, spec=spec), node("a", cpu="4")).count == 4


def test_nobody_is_evicted() -> None:
    found = count(
        manifest(spec=asking(priorityClassName="system-node-critical")),
        node("a", cpu="2"),
        pod("old", on="a", requests={"cpu": "1"}),
    )
    assert found.count == 1


def test_a_lost_node_takes_its_pods_with_it() -> None:
    objects = [node("a", cpu="4"), node("b", cpu="4"), pod("one", on="a", requests={"cpu": "3"})]
    found = count(manifest(spec=asking()), *objects, without=["a"])
    assert (found.count, found.lost, found.drained, found.n_nodes) == (4, ["default/one"], [], 1)


def test_the_pods_of_a_drained_node_are_placed_first_and_those_that_do_not_fit_are_named() -> None:
    daemon = pod("agent", on="a")
    owner = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="agent", uid="u", controller=True)
    daemon = replace(daemon, metadata=replace(daemon.metadata, owner_references=(owner,)))
    found = count(
        manifest(spec=asking()),
        node("a", cpu="9"),
        node("b", cpu="4"),
        pod("fits", on="a", requests={"cpu": "3"}),
        pod("whale", on="a", requests={"cpu": "6"}),
        daemon,
        drain=["a"],
    )
    assert [(each.key, each.node) for each in found.drained] == [("default/fits", "b"), ("default/whale", "")]
    assert found.drained[1].why == "0/1 nodes are available: 1 Insufficient cpu."
    assert (found.count, found.lost) == (1, ["default/agent"])


def test_a_node_that_is_not_there_cannot_be_lost() -> None:
    with pytest.raises(SchedulerError, match="there is no node b"):
        count(manifest(spec=asking()), node("a"), drain=["b"])


def test_of_several_workloads_one_must_be_named() -> None:
    both = [manifest(spec=asking()), manifest(name="q", spec=asking("2"))]
    cluster = Captured(5.0, [node("a", cpu="4")])
    with pytest.raises(SchedulerError, match=r"2 workloads; say which with --workload: Pod/p, Pod/q"):
        measure(cluster, both, engine)
    assert measure(cluster, both, engine, workload="pod/q").count == 2
    with pytest.raises(SchedulerError, match="Job/q is not in the files"):
        measure(cluster, both, engine, workload="Job/q")


def test_each_copy_of_a_stateful_set_has_claims_of_its_own() -> None:
    claim = {"accessModes": ["ReadWriteOncePod"], "storageClassName": "s", "resources": {"requests": {"storage": "1Gi"}}}
    spec = {
        "serviceName": "s",
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": asking()},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    for mode in ("Immediate", "WaitForFirstConsumer"):
        storage = StorageClass(metadata=ObjectMeta(name="s"), provisioner="disk", volume_binding_mode=mode)
        assert count(manifest("StatefulSet", "apps/v1", spec=spec), node("a", cpu="4"), storage).count == 4


def test_a_gate_is_what_stops_the_first_one() -> None:
    found = count(manifest(spec=asking(schedulingGates=[{"name": "quota"}])), node("a"))
    assert found.stopped_by is not None
    assert (found.count, found.stopped_by.message) == (0, "waiting for scheduling gates: [quota]")


def test_the_pods_of_another_scheduler_are_not_counted() -> None:
    with pytest.raises(SchedulerError, match="a scheduler that is not configured here"):
        count(manifest(spec=asking(schedulerName="volcano")), node("a"))


def test_what_the_pod_needs_may_stand_in_the_files() -> None:
    urgent = manifest("PriorityClass", "scheduling.k8s.io/v1", name="urgent", value=5)
    asked = manifest(spec=asking(priorityClassName="urgent"))
    assert measure(Captured(5.0, [node("a", cpu="2")]), [asked, urgent], engine).count == 2


@pytest.mark.parametrize("seed", range(40))
def test_each_node_asked_at_once_takes_as_many_as_copies_decided_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    asked = {"cpu": f"{random.choice([0, 50, 333])}m", "memory": f"{random.choice([0, 64, 100])}Mi"}
    if random.random() < 0.5:
        asked["example.com/gpu"] = "1"
    nodes = [
        node(
            f"n{i}",
            cpu=f"{random.randint(0, 3000)}m",
            memory=f"{random.randint(0, 3000)}Mi",
            pods=random.randint(0, 12),
            cordoned=random.random() < 0.2,
            offers={"example.com/gpu": str(random.randint(0, 3))} if random.random() < 0.7 else {},
        )
        for i in range(8)
    ]
    there = [pod(f"p{i}", on=f"n{random.randrange(8)}", requests={"cpu": f"{random.randint(0, 900)}m"}) for i in range(9)]
    container = {"name": "c", "image": "x", "resources": {"requests": asked, "limits": asked}}
    wanted = manifest(spec={"containers": [container]})
    limits: list[int] = []
    at_once = count(wanted, *nodes, *there, one_by_one=limits.append)
    assert not limits
    monkeypatch.setattr(Filling, "fill_at_once", lambda *_: None)
    assert at_once.as_dict() == count(wanted, *nodes, *there, one_by_one=limits.append).as_dict()
    assert limits == [MOST_ONE_BY_ONE]


def test_a_million_copies_are_counted_at_once() -> None:
    nodes = [node(f"n{i}", cpu="64", pods=1_000_000) for i in range(20)]
    found = count(manifest(spec=asking("1m")), *nodes)
    assert (found.count, found.is_limited) == (20 * 64_000, False)
    assert found.as_dict()["stoppedBy"]["message"] == "0/20 nodes are available: 20 Insufficient cpu."


def test_what_a_limit_leaves_open_is_decided_one_by_one() -> None:
    found = count(manifest(spec=asking("1m")), node("a", cpu="64", pods=1000), node("b", cpu="1", pods=1000), limit=10)
    assert (found.count, found.is_limited) == (10, True)


@pytest.mark.parametrize("limit", [None, 2])
def test_the_python_api_prints_the_same_document(limit: int | None) -> None:
    objects = [node("a", cpu="4", zone="east"), node("b", cpu="2"), pod("there", on="b", requests={"cpu": "1"})]
    asked = count(manifest(spec=asking()), *objects, limit=limit)
    copy = pod("p", requests={"cpu": "1"}, image="x")
    assert Cluster(objects, at=5.0).capacity(copy, limit=limit).as_dict() == asked.as_dict()
