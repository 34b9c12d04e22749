"""A profile that switches off PreFilter or PreScore of a plugin alone: an error where the reference has one, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.kube.api import codec
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.engine.deciding.cycle import Rules, attempt
from kubesched.scheduler.engine.deciding.ties import FirstByName
from kubesched.scheduler.framework.equivalence_cache.cache import EquivalenceCache
from kubesched.scheduler.framework.verdicts import Failed, Placed, Unschedulable
from kubesched.tools.conformance.cases import Cluster

POD = {
    "metadata": {"name": "p", "namespace": "d", "uid": "u"},
    "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
}
FILTERING, SCORING = 'running "{}" filter plugin: {}', 'running Score plugins: plugin "{}" failed with: {}'
ERRORS = [
    ("preFilter", "NodePorts", FILTERING, 'reading "PreFilterNodePorts" from cycleState: not found'),
    ("preFilter", "NodeResourcesFit", FILTERING, 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'),
    ("preFilter", "PodTopologySpread", FILTERING, 'reading "PreFilterPodTopologySpread" from cycleState: not found'),
    ("preFilter", "InterPodAffinity", FILTERING, 'error reading "PreFilterInterPodAffinity" from cycleState: not found'),
    ("preFilter", "VolumeRestrictions", FILTERING, 'cannot read "PreFilterVolumeRestrictions" from cycleState'),
    ("preFilter", "VolumeBinding", FILTERING, "not found"),
    ("preFilter", "DynamicResources", FILTERING, "not found"),
    ("preScore", "TaintToleration", SCORING, 'failed to read "PreScoreTaintToleration" from cycleState: not found'),
    ("preScore", "InterPodAffinity", SCORING, 'failed to read "PreScoreInterPodAffinity" from cycleState: not found'),
    ("preScore", "PodTopologySpread", SCORING, 'error reading "PreScorePodTopologySpread" from cycleState: not found'),
]
CARRY_ON = [
    ("preFilter", "NodeAffinity"),
    ("preFilter", "VolumeZone"),
    ("preFilter", "NodeVolumeLimits"),
    ("preScore", "NodeAffinity"),
    ("preScore", "NodeResourcesFit"),
    ("preScore", "NodeResourcesBalancedAllocation"),
]


def node(name: str, cpu: str = "4") -> dict[str, Any]:
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def decide(point: str, plugin: str, *nodes: dict[str, Any], remembers: bool = False) -> Any:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {point: {"disabled": [{"name": plugin}]}}}],
    }
    cluster = Cluster(nodes, document)
    pod = cluster.store.view(codec.convert(POD, Pod))
    profile = cluster.profile(pod)
    cache = EquivalenceCache(profile) if remembers else None
    return attempt(pod, cluster.store.snapshot(), profile, Rules(FirstByName(), preempts=False), cache).decision


@pytest.mark.parametrize("remembers", [False, True], ids=["plainly", "from memory"])
@pytest.mark.parametrize(("point", "plugin", "frame", "text"), ERRORS, ids=[f"{p} {n}" for p, n, *_ in ERRORS])
def test_the_attempt_ends_in_the_references_error(point: str, plugin: str, frame: str, text: str, remembers: bool) -> None:
    found = decide(point, plugin, node("a"), node("b"), remembers=remembers)
    assert isinstance(found, Failed)
    assert found.message == frame.format(plugin, text)


@pytest.mark.parametrize(("point", "plugin"), CARRY_ON, ids=[f"{p} {n}" for p, n in CARRY_ON])
def test_plugins_that_can_do_without_carry_on(point: str, plugin: str) -> None:
    assert isinstance(decide(point, plugin, node("a"), node("b")), Placed)


def test_a_filter_that_no_node_comes_to_says_nothing() -> None:
    assert isinstance(decide("preFilter", "InterPodAffinity", node("a", cpu="0")), Unschedulable)


def test_a_filter_that_a_node_comes_to_once_pods_are_gone_ends_the_search_for_victims() -> None:
    asks = {"priority": 10, "schedulerName": "default-scheduler", "containers": [{"name": "c", "ports": [{"hostPort": 80}]}]}
    meta = {"name": "placed", "namespace": "d", "uid": "placed"}
    placed = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**asks, "priority": 0, "nodeName": "a"}}
    profile = {"plugins": {"preFilter": {"disabled": [{"name": "NodeResourcesFit"}]}}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    cluster = Cluster([node("a"), placed], document)
    pod = cluster.store.view(codec.convert({**POD, "spec": asks}, Pod))
    found = attempt(pod, cluster.store.snapshot(), cluster.profile(pod), Rules(FirstByName())).decision
    assert found.message.endswith(f"preemption: {FILTERING.format('NodeResourcesFit', ERRORS[1][3])}")
