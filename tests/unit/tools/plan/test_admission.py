"""Admission: objects as an API server stores them, and workloads as the pods that their controllers make."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.errors import SchedulerError
from kubesched.kube.api.meta import ObjectMeta
from kubesched.kube.api.node import Taint
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.policy import (
    LimitRange,
    LimitRangeItem,
    LimitRangeSpec,
    RuntimeClass,
    RuntimeOverhead,
    RuntimeScheduling,
)
from kubesched.kube.api.storage import StorageClass
from kubesched.kube.api.workload import PriorityClass
from kubesched.testing import node
from kubesched.tools.plan.admission import Admission
from kubesched.tools.plan.manifests import Manifest

URGENT = PriorityClass(metadata=ObjectMeta(name="urgent"), value=1000, preemption_policy="Never")
USUAL = PriorityClass(metadata=ObjectMeta(name="usual"), value=10, global_default=True)
SPEC = {"containers": [{"name": "c", "image": "x"}]}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": SPEC}
SELECTOR = {"matchLabels": {"app": "a"}}


def manifest(kind: str, version: str = "v1", name: str = "a", **fields: Any) -> Manifest:
    return Manifest("x.yaml, document 1", {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields})


def pods(admission: Admission, kind: str, version: str, spec: dict[str, Any], *nodes: Any) -> list[Pod]:
    return admission.pods_of(admission.take(manifest(kind, version, spec=spec)), nodes)


def admitted(admission: Admission, **spec: Any) -> Pod:
    (pod,) = pods(admission, "Pod", "v1", {**SPEC, **spec})
    return pod


@pytest.mark.parametrize(
    ("known", "class_name", "priority", "policy"),
    [
        ([], "", 0, "PreemptLowerPriority"),
        ([URGENT], "urgent", 1000, "Never"),
        ([URGENT, USUAL], "", 10, "PreemptLowerPriority"),
        ([], "system-node-critical", 2_000_001_000, "PreemptLowerPriority"),
    ],
    ids=["none", "a class", "the default", "built in"],
)
def test_a_priority_class_becomes_a_priority(known: list[Any], class_name: str, priority: int, policy: str) -> None:
    found = admitted(Admission(known), **({"priorityClassName": class_name} if class_name else {}))
    assert (found.spec.priority, found.spec.preemption_policy) == (priority, policy)


def test_a_class_of_the_same_manifests_counts() -> None:
    admission = Admission()
    admission.take(manifest("PriorityClass", "scheduling.k8s.io/v1", name="new", value=7))
    assert admitted(admission, priorityClassName="new").spec.priority == 7


BOUNDS = LimitRangeItem(
    type="Container", default={"memory": "1Gi"}, default_request={"cpu": "250m", "memory": "1Gi"}, max={"memory": "1Gi"}
)
LIMITS = LimitRange(metadata=ObjectMeta(name="l", namespace="default"), spec=LimitRangeSpec(limits=(BOUNDS,)))
SANDBOX = RuntimeClass(
    metadata=ObjectMeta(name="sandbox"),
    handler="runsc",
    overhead=RuntimeOverhead(pod_fixed={"cpu": "100m"}),
    scheduling=RuntimeScheduling(node_selector={"runtime": "sandbox"}),
)


def test_limits_of_the_namespace_give_defaults_and_refuse() -> None:
    admission = Admission([LIMITS])
    (container,) = admitted(admission).spec.containers
    assert (container.resources.requests["cpu"], container.resources.limits["memory"]) == ("250m", "1Gi")
    greedy = {"name": "c", "image": "x", "resources": {"limits": {"memory": "2Gi"}}}
    with pytest.raises(SchedulerError, match="maximum memory usage per Container is 1Gi, but limit is 2Gi"):
        admitted(admission, containers=[greedy])


def test_a_runtime_class_of_the_cluster_brings_its_overhead_and_its_nodes() -> None:
    spec = admitted(Admission([SANDBOX]), runtimeClassName="sandbox").spec
    assert (spec.overhead, spec.node_selector) == ({"cpu": "100m"}, {"runtime": "sandbox"})


def test_a_runtime_class_that_was_not_read_leaves_a_pod_as_it_is() -> None:
    assert admitted(Admission(), runtimeClassName="later").spec.overhead == {}
    assert admitted(Admission(), runtimeClassName="later", overhead={"cpu": "1"}).spec.overhead == {"cpu": "1"}


def test_limits_become_requests_and_silence_is_tolerated_for_five_minutes() -> None:
    container = {"name": "c", "image": "x", "resources": {"limits": {"cpu": 2}}, "ports": [{"containerPort": 80}]}
    found = admitted(Admission(), containers=[container], hostNetwork=True)
    assert found.spec.containers[0].resources.requests == {"cpu": "2"}
    assert found.spec.containers[0].ports[0].host_port == 80
    assert [(each.key, each.toleration_seconds) for each in found.spec.tolerations] == [
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]
    assert found.spec.scheduler_name == "default-scheduler"


def test_a_claim_gets_the_default_class_of_the_cluster() -> None:
    usual = ObjectMeta(name="fast", annotations={"storageclass.kubernetes.io/is-default-class": "true"})
    admission = Admission([StorageClass(metadata=usual, provisioner="p", volume_binding_mode="Immediate")])
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    assert admission.take(manifest("PersistentVolumeClaim", spec=spec))["spec"]["storageClassName"] == "fast"


@pytest.mark.parametrize(
    ("kind", "version", "spec", "names"),
    [
        ("Deployment", "apps/v1", {"replicas": 2, "selector": SELECTOR, "template": TEMPLATE}, ["a-1", "a-2"]),
        ("ReplicaSet", "apps/v1", {"selector": SELECTOR, "template": TEMPLATE}, ["a-1"]),
        ("ReplicationController", "v1", {"replicas": 2, "template": TEMPLATE}, ["a-1", "a-2"]),
        (
            "StatefulSet",
            "apps/v1",
            {"replicas": 2, "ordinals": {"start": 3}, "serviceName": "a", "selector": SELECTOR, "template": TEMPLATE},
            ["a-3", "a-4"],
        ),
        (
            "Job",
            "batch/v1",
            {"parallelism": 3, "completions": 2, "template": {"spec": {**SPEC, "restartPolicy": "Never"}}},
            ["a-1", "a-2"],
        ),
        (
            "Job",
            "batch/v1",
            {
                "parallelism": 2,
                "completions": 5,
                "completionMode": "Indexed",
                "template": {"spec": {**SPEC, "restartPolicy": "Never"}},
            },
            ["a-0", "a-1"],
        ),
        ("Job", "batch/v1", {"suspend": True, "template": {"spec": {**SPEC, "restartPolicy": "Never"}}}, []),
        (
            "CronJob",
            "batch/v1",
            {
                "schedule": "* * * * *",
                "jobTemplate": {
                    "spec": {"parallelism": 2, "completions": 2, "template": {"spec": {**SPEC, "restartPolicy": "Never"}}}
                },
            },
            ["a-1", "a-2"],
        ),
        ("Pod", "v1", SPEC, ["a"]),
    ],
)
def test_workloads_become_pods(kind: str, version: str, spec: dict[str, Any], names: list[str]) -> None:
    found = pods(Admission(namespace="team"), kind, version, spec)
    assert [pod.key for pod in found] == [f"team/{name}" for name in names]
    assert len({pod.uid for pod in found}) == len(names)
    assert found == pods(Admission(namespace="team"), kind, version, spec), "the same every time"


def test_a_deployment_has_its_pods_through_a_replica_set() -> None:
    (pod,) = pods(Admission(), "Deployment", "apps/v1", {"selector": SELECTOR, "template": TEMPLATE})
    owner = pod.metadata.controller()
    assert owner is not None and owner.kind == "ReplicaSet"
    assert owner.name == f"a-{pod.metadata.labels['pod-template-hash']}"


def test_a_daemon_set_has_a_pod_for_each_node_that_it_matches() -> None:
    spec = {**SPEC, "nodeSelector": {"disk": "ssd"}}
    nodes = [
        node("plain"),
        node("ssd", labels={"disk": "ssd"}),
        node(
            "cordoned",
            labels={"disk": "ssd"},
            cordoned=True,
            taints=[Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")],
        ),
        node("tainted", labels={"disk": "ssd"}, taints=[Taint(key="gpu", effect="NoSchedule")]),
    ]
    template = {"metadata": {"labels": {"app": "a"}}, "spec": spec}
    found = pods(Admission(), "DaemonSet", "apps/v1", {"selector": SELECTOR, "template": template}, *nodes)
    pinned = [
        pod.spec.affinity.node_affinity.required.node_selector_terms[0].match_fields[0].values[0]  # type: ignore[union-attr]
        for pod in found
    ]
    assert pinned == ["ssd", "cordoned"]
    assert {"node.kubernetes.io/unschedulable", "node.kubernetes.io/disk-pressure"} <= {
        each.key for each in found[0].spec.tolerations
    }


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (
            manifest("Deployment", "apps/v1", spec={"replicas": "three"}),
            "deployment a: spec.replicas: invalid value 'three': expected `int | null`, got `str`",
        ),
        (
            manifest("Deployment", "apps/v1", spec={"selector": SELECTOR, "template": {"spec": SPEC}}),
            "spec.template.metadata.labels",
        ),
        (manifest("Pod", spec={**SPEC, "priorityClassName": "nobody"}), "no PriorityClass with name nobody was found"),
        (
            manifest("Pod", spec={"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "lots"}}}]}),
            "spec.containers[0].resources.requests.cpu",
        ),
        (manifest("Pod"), "spec.containers: Required value"),
    ],
    ids=["a wrong type", "labels missing", "no such class", "no quantity", "no spec"],
)
def test_what_would_be_refused_is_refused_with_the_place_where_it_stands(asked: Manifest, complaint: str) -> None:
    with pytest.raises(SchedulerError) as caught:
        Admission().take(asked)
    assert str(caught.value).startswith("x.yaml, document 1: ") and complaint in str(caught.value)


def test_what_was_read_from_a_cluster_can_be_taken_in_again() -> None:
    admission, raw = Admission(), manifest("Pod", spec=SPEC).content
    raw["metadata"] |= {"resourceVersion": "7", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "namespace": "new"}
    (pod,) = admission.pods_of(admission.take(Manifest("x", raw)))
    assert (pod.key, pod.uid == "u", pod.status.phase) == ("new/a", False, "Pending")
