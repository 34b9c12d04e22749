"""What the page may do to a demo's cluster."""

from __future__ import annotations

import pytest

from kubesched.embedded import ObjectStore
from kubesched.embedded.controllers import INSTANT, FakeCluster
from kubesched.errors import SchedulerError
from kubesched.testing import builders
from kubesched.tools.demo.actions import DemoActions, NodeQuestion, ScaleQuestion
from kubesched.tools.demo.sample import node
from kubesched.tools.snapshots.captured import Captured

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}
"""


@pytest.fixture
def store() -> ObjectStore:
    store = ObjectStore(seed=1)
    for i in range(3):
        store.create("nodes", node(i))
    return store


@pytest.fixture
def actions(store: ObjectStore) -> DemoActions:
    return DemoActions(store, FakeCluster(store, INSTANT))


def on(action: str, name: str = "node-001", count: int = 1) -> NodeQuestion:
    return NodeQuestion(action, name, count)


def test_manifests_are_applied_and_applied_again(store: ObjectStore, actions: DemoActions) -> None:
    assert actions.apply(DEPLOYMENT, "kube-public") == "applied Deployment/web"
    actions.apply(DEPLOYMENT.replace("replicas: 2", "replicas: 5"), "kube-public")
    assert store.get("deployments", "web", "kube-public")["spec"]["replicas"] == 5


def test_nodes_are_cordoned_opened_and_removed(store: ObjectStore, actions: DemoActions) -> None:
    assert actions.on_node(on("cordon")) == "node-001 is cordoned"
    assert store.get("nodes", "node-001")["spec"]["unschedulable"] is True
    actions.on_node(on("uncordon"))
    assert not store.get("nodes", "node-001")["spec"].get("unschedulable")
    assert actions.on_node(on("remove")) == "node-001 is gone"
    assert len(store.list("nodes").items) == 2


def test_a_drained_node_has_no_pods(store: ObjectStore, actions: DemoActions) -> None:
    for name in ("one", "two"):
        spec = {"nodeName": "node-001", "containers": [{"name": "c", "image": "i"}]}
        store.create("pods", {"metadata": {"name": name}, "spec": spec})
    assert actions.on_node(on("drain")) == "node-001 is drained: 2 pods evicted"
    assert store.get("nodes", "node-001")["spec"]["unschedulable"] is True
    assert all("deletionTimestamp" in each["metadata"] for each in store.list("pods").items)


def test_nodes_are_added_like_another_under_names_of_their_own(store: ObjectStore, actions: DemoActions) -> None:
    assert actions.on_node(on("add", "node-000", 2)) == "node-003 to node-004 are there"
    made, like = store.get("nodes", "node-004"), store.get("nodes", "node-000")
    assert made["status"]["allocatable"] == like["status"]["allocatable"]
    assert made["metadata"]["labels"]["kubernetes.io/hostname"] == "node-004"


def test_a_workload_is_scaled(store: ObjectStore, actions: DemoActions) -> None:
    actions.apply(DEPLOYMENT, "default")
    assert actions.scale(ScaleQuestion("deployments/web", "default", 9)) == "deployments/web has 9 replicas"
    assert store.get("deployments", "web")["spec"]["replicas"] == 9


def test_a_snapshot_takes_the_place_of_the_cluster(store: ObjectStore, actions: DemoActions) -> None:
    actions.apply(DEPLOYMENT, "default")
    other = Captured(9.0, [builders.node("a"), builders.node("b"), builders.pod("there", on="a"), builders.pod("waits")])
    told = actions.load(b"".join(other.lines()).decode())
    assert told == "the cluster of the snapshot is there: 2 nodes, 2 pods, without their controllers"
    assert [each["metadata"]["name"] for each in store.list("nodes").items] == ["a", "b"]
    assert {each["metadata"]["name"]: each["spec"].get("nodeName") for each in store.list("pods").items} == {
        "there": "a",
        "waits": None,
    }
    assert not store.list("deployments").items


REFUSED = [
    (
        "a kind that nobody serves",
        lambda do: do.apply("apiVersion: v1\nkind: Ship\nmetadata: {name: x}", "default"),
        "knows no v1 Ship",
    ),
    ("a node that is not there", lambda do: do.on_node(on("cordon", "nowhere")), 'nodes "nowhere" not found'),
    ("an action that is none", lambda do: do.on_node(on("explode")), "'explode' is nothing that is done to nodes"),
    ("too many nodes", lambda do: do.on_node(on("add", "node-000", 10**6)), "1 to 1000 can"),
    ("a workload that cannot be scaled", lambda do: do.scale(ScaleQuestion("jobs/x", "default", 1)), "jobs/x cannot be scaled"),
    (
        "a snapshot without nodes",
        lambda do: do.load('{"at": 1.0, "seed": 0, "objects": 0}'),
        "there is no node in the snapshot",
    ),
]


@pytest.mark.parametrize(("act", "error"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_cannot_be_done_is_said(actions: DemoActions, act: object, error: str) -> None:
    with pytest.raises(SchedulerError, match=error):
        act(actions)  # type: ignore[operator]
