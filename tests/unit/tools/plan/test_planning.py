"""Plans: where manifests would go, decided by the engine, with nothing written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from kubesched.errors import SchedulerError
from kubesched.kube.api import codec
from kubesched.kube.api.core import Namespace
from kubesched.kube.api.meta import ObjectMeta, OwnerReference
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.policy import ResourceQuota, ResourceQuotaSpec
from kubesched.kube.api.storage import PersistentVolumeClaim, StorageClass
from kubesched.scheduler import config
from kubesched.scheduler.engine.assembly import Ports, default_configuration, registry_with
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.framework.runtime.building import catalogue
from kubesched.testing import node, pod
from kubesched.tools.plan.applying import apply_manifests
from kubesched.tools.plan.manifests import Manifest, read_manifests
from kubesched.tools.plan.plan import Plan
from kubesched.tools.plan.planning import make_plan
from kubesched.tools.snapshots.captured import Captured


def engine(cluster: Captured, ports: Ports, *gates: str) -> Engine:
    switched = config.Gates.parse(gates, emulated=(1, 36))
    return cluster.engine(default_configuration(switched), switched, ports=ports)


COSCHEDULING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: Coscheduling}]}
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
"""


def manifests(text: str, folder: Path) -> list[Manifest]:
    (folder / "x.yaml").write_text(text)
    return read_manifests([folder / "x.yaml"])


@pytest.fixture
def plan(tmp_path: Path) -> Any:
    def made(text: str, *objects: Any, only: bool = False, gates: tuple[str, ...] = ()) -> Plan:
        return make_plan(
            Captured(5.0, list(objects)),
            manifests(text, tmp_path),
            lambda cluster, ports: engine(cluster, ports, *gates),
            only=only,
        )

    return made


def document(kind: str, name: str, version: str = "v1", **fields: Any) -> str:
    return yaml.safe_dump({"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}) + "---\n"


def deployment(name: str, replicas: int, cpu: str = "1", **spec: Any) -> str:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    labels = {"app": name}
    return document(
        "Deployment",
        name,
        "apps/v1",
        spec={
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}},
        },
    )


URGENT = document("PriorityClass", "urgent", "scheduling.k8s.io/v1", value=1000)


def test_pods_go_where_there_is_room_and_the_others_say_why_not(plan: Any) -> None:
    made = plan(
        deployment("web", 5, cpu="1"),
        node("a", cpu="2", zone="z1"),
        node("b", cpu="2", zone="z2"),
        pod("old", on="a", requests={"cpu": "1"}),
    )
    assert made.nodes_of("Deployment/web") == {"a": 1, "b": 2}
    assert made.zones_of("deployment/default/web") == {"z1": 1, "z2": 2}
    assert [(each.pod.name, each.why.partition(" no ")[0]) for each in made.pending] == [
        ("web-4", "0/2 nodes are available: 2 Insufficient cpu."),
        ("web-5", "0/2 nodes are available: 2 Insufficient cpu."),
    ]
    assert made.as_dict()["summary"] == {"pods": 5, "placed": 3, "pending": 2, "ofOtherSchedulers": 0, "victims": 0}


def test_the_same_manifests_give_the_same_bytes(plan: Any) -> None:
    nodes = [node(f"n{i}") for i in range(20)]
    first, second = (json.dumps(plan(deployment("web", 30), *nodes).as_dict()) for _ in range(2))
    assert first == second


def test_an_urgent_pod_pushes_out_another_and_that_is_said(plan: Any) -> None:
    made = plan(
        deployment("web", 1, cpu="3", priorityClassName="urgent") + URGENT,
        node("a", cpu="4"),
        pod("small", on="a", requests={"cpu": "1"}),
        pod("large", on="a", requests={"cpu": "3"}),
    )
    assert made.nodes_of("Deployment/web") == {"a": 1}
    assert [(each.pod.key, each.node, each.by, each.by_workload) for each in made.victims] == [
        ("default/large", "a", "default/web-1", "Deployment/web")
    ]


def test_it_goes_on_as_if_the_victims_were_gone(plan: Any) -> None:
    made = plan(
        URGENT + deployment("web", 1, cpu="2", priorityClassName="urgent") + deployment("tail", 2, cpu="1"),
        node("a", cpu="4"),
        pod("huge", on="a", requests={"cpu": "4"}),
    )
    assert (len(made.victims), made.nodes_of("Deployment/web"), made.nodes_of("Deployment/tail")) == (1, {"a": 1}, {"a": 2})


def test_the_more_important_are_placed_first_wherever_they_stand(plan: Any) -> None:
    made = plan(deployment("tail", 1, cpu="1") + deployment("web", 1, cpu="4", priorityClassName="urgent") + URGENT, node("a"))
    assert (made.nodes_of("Deployment/web"), [each.key for each in made.pending]) == ({"a": 1}, ["default/tail-1"])


def test_pods_that_waited_before_compete_unless_they_are_left_out(plan: Any) -> None:
    objects = [node("a", cpu="2"), pod("first", requests={"cpu": "2"}, priority=5)]
    made = plan(deployment("web", 1, cpu="1"), *objects)
    assert ([(each.key, each.node) for each in made.others], len(made.pending)) == ([("default/first", "a")], 1)
    made = plan(deployment("web", 1, cpu="1"), *objects, only=True)
    assert (made.others, made.nodes_of("Deployment/web")) == ([], {"a": 1})


def test_pods_of_other_schedulers_are_said_and_not_planned(plan: Any) -> None:
    made = plan(deployment("web", 2, schedulerName="volcano"), node("a"), pod("theirs", scheduler="volcano"))
    assert (made.workload("Deployment/web").scheduler, made.placed, made.pending, made.others) == ("volcano", [], [], [])
    assert made.as_dict()["summary"]["ofOtherSchedulers"] == 2


def test_nodes_of_the_files_are_there_and_unknown_kinds_are_named_once(plan: Any) -> None:
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    made = plan(
        deployment("web", 1)
        + document("Node", "new", status={"capacity": capacity})
        + document("ConfigMap", "c")
        + document("Rollout", "r", "argo.io/v1")
        + document("NetworkAttachment", "l", "x.io/v1")
    )
    assert made.nodes_of("Deployment/web") == {"new": 1}
    assert made.warnings == [
        "kinds that the plan knows nothing of are left out: argo.io/v1/Rollout (1), x.io/v1/NetworkAttachment (1)"
    ]


def test_a_node_of_the_files_may_be_a_change_of_one_that_is_there(plan: Any) -> None:
    node_yaml = "apiVersion: v1\nkind: Node\nmetadata: {name: a, labels: {disk: ssd}}\n---\n"
    asks = deployment("web", 1, nodeSelector={"disk": "ssd"})
    assert (plan(asks, node("a")).placed, plan(asks + node_yaml, node("a")).nodes_of("Deployment/web")) == ([], {"a": 1})


def test_pods_of_the_same_workload_that_wait_are_planned_again_if_others_are_left_out(plan: Any, tmp_path: Path) -> None:
    before = apply_manifests(Captured(5.0, [node("a")]), manifests(deployment("web", 2), tmp_path)).cluster
    made = plan(deployment("web", 2), *before.objects)
    assert (len(made.others), made.placed) == (2, [])
    made = plan(deployment("web", 2), *before.objects, only=True)
    assert (made.others, len(made.placed)) == ([], 2)


def test_what_stands_twice_is_refused(plan: Any) -> None:
    with pytest.raises(SchedulerError, match=r"document 2: Deployment web stands in .*x\.yaml, document 1 too"):
        plan(deployment("web", 1) + deployment("web", 2))


def test_a_deployment_and_a_job_may_have_the_same_name(plan: Any) -> None:
    job = document(
        "Job",
        "web",
        "batch/v1",
        spec={"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}},
    )
    made = plan(deployment("web", 1) + job, node("a"))
    assert [each.key for each in made.placed] == ["default/web-1", "default/web-1-job"]


def test_a_pod_behind_a_gate_says_so(plan: Any) -> None:
    made = plan(deployment("web", 1, schedulingGates=[{"name": "quota"}]), node("a"))
    assert [each.why for each in made.pending] == ["waiting for scheduling gates: [quota]"]


def test_a_workload_that_is_there_is_planned_for_what_it_adds(plan: Any, tmp_path: Path) -> None:
    before = apply_manifests(Captured(5.0, [node("a"), node("b")]), manifests(deployment("web", 2), tmp_path)).cluster
    there = [obj if not isinstance(obj, Pod) else pod_on(obj, "a") for obj in before.objects]
    made = plan(deployment("web", 3), *there)
    assert ([each.key for each in made.placed], made.workload("Deployment/web").note) == (
        ["default/web-3"],
        "2 pods of 3 are there already",
    )


def pod_on(planned: Pod, name: str) -> Pod:
    return replace(planned, spec=replace(planned.spec, node_name=name))


def test_old_pods_of_a_stateful_set_make_room_for_the_new_ones(plan: Any, tmp_path: Path) -> None:
    def stateful(image: str) -> str:
        container = {"name": "c", "image": image, "resources": {"requests": {"cpu": "3"}}}
        return document(
            "StatefulSet",
            "db",
            "apps/v1",
            spec={
                "serviceName": "db",
                "selector": {"matchLabels": {"app": "db"}},
                "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [container]}},
            },
        )

    before = apply_manifests(Captured(5.0, [node("a")]), manifests(stateful("x"), tmp_path)).cluster
    there = [obj if not isinstance(obj, Pod) else pod_on(obj, "a") for obj in before.objects]
    made = plan(stateful("z"), *there)
    assert (made.nodes_of("StatefulSet/db"), made.workload("StatefulSet/db").note) == (
        {"a": 1},
        "another template: the pod of the old one goes first",
    )


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "s"}


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
def test_claims_get_their_volumes_as_the_controllers_would_give_them(mode: str, plan: Any) -> None:
    stateful = document(
        "StatefulSet",
        "db",
        "apps/v1",
        spec={
            "serviceName": "db",
            "replicas": 2,
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}],
        },
    )
    scratch = deployment("scratch", 1, volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}])
    made = plan(
        stateful + scratch + document("StorageClass", "s", "storage.k8s.io/v1", provisioner="disk", volumeBindingMode=mode),
        node("a", zone="z"),
    )
    assert (made.pending, made.nodes_of("StatefulSet/db"), made.nodes_of("Deployment/scratch")) == ([], {"a": 2}, {"a": 1})


def test_a_volume_is_given_once(plan: Any) -> None:
    volume = document(
        "PersistentVolume",
        "pv",
        spec={
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "s",
            "local": {"path": "/x"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]}]}
                    ]
                }
            },
        },
    )
    storage = StorageClass(
        metadata=ObjectMeta(name="s"), provisioner="kubernetes.io/no-provisioner", volume_binding_mode="WaitForFirstConsumer"
    )
    made = plan(
        volume + deployment("web", 2, volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}]),
        node("a"),
        node("b"),
        storage,
    )
    assert (made.nodes_of("Deployment/web"), len(made.pending)) == ({"b": 1}, 1)


def test_a_bound_claim_of_the_cluster_stays_as_it_is(tmp_path: Path) -> None:
    claim = PersistentVolumeClaim(metadata=ObjectMeta(name="data", namespace="default", uid="mine"))
    applied = apply_manifests(
        Captured(5.0, [claim]), manifests(document("PersistentVolumeClaim", "data", spec=CLAIM), tmp_path)
    )
    assert [each.uid for each in applied.cluster.of(PersistentVolumeClaim)] == ["mine"]


def test_devices_asked_for_by_template_are_claimed(plan: Any) -> None:
    request = {
        "devices": {
            "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}]
        }
    }
    template = document("ResourceClaimTemplate", "one", "resource.k8s.io/v1", spec={"spec": request})
    devices = document("DeviceClass", "gpu", "resource.k8s.io/v1", spec={}) + document(
        "ResourceSlice",
        "a",
        "resource.k8s.io/v1",
        spec={
            "driver": "gpu.example.com",
            "nodeName": "a",
            "devices": [{"name": "g0"}, {"name": "g1"}],
            "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
        },
    )
    asks = deployment("train", 3, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}])
    made = plan(asks + template + devices, node("a"), node("b"))
    assert (made.nodes_of("Deployment/train"), len(made.pending)) == ({"a": 2}, 1)
    known = codec.decode(yaml.safe_load(template.replace("name: one", "name: one\n  namespace: default").removesuffix("---\n")))
    made = plan(asks + devices, node("a"), known)
    assert (made.nodes_of("Deployment/train"), len(made.pending)) == ({"a": 2}, 1), "the template is in the cluster"
    made = plan(asks + devices, node("a"))
    assert {each.why for each in made.pending} == {
        "ResourceClaimTemplate default/one is neither in the files nor in the cluster"
    }


def test_a_budget_of_the_files_protects_what_it_selects(plan: Any) -> None:
    budget = document(
        "PodDisruptionBudget", "b", "policy/v1", spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
    )
    made = plan(
        URGENT + budget + deployment("web", 1, cpu="4", priorityClassName="urgent"),
        node("a"),
        node("b"),
        pod("kept", on="a", requests={"cpu": "4"}, labels={"app": "kept"}),
        pod("other", on="b", requests={"cpu": "4"}),
    )
    assert [each.key for each in made.victims] == ["default/other"]


def test_a_gang_that_does_not_fit_as_a_whole_is_not_placed_in_part(plan: Any) -> None:
    group = document("PodGroup", "g", "scheduling.k8s.io/v1alpha2", spec={"schedulingPolicy": {"gang": {"minCount": 3}}})
    gates = ("GenericWorkload=true", "GangScheduling=true")
    asks = deployment("train", 3, cpu="2", schedulingGroup={"podGroupName": "g"})
    made = plan(group + asks, node("a", cpu="4"), gates=gates)
    assert (made.placed, len(made.pending)) == ([], 3)
    made = plan(group + asks, node("a", cpu="4"), node("b", cpu="4"), gates=gates)
    assert len(made.placed) == 3


def test_gangs_by_a_plugin_are_planned_too(tmp_path: Path) -> None:
    gates = config.Gates.defaults()
    configuration = config.load(COSCHEDULING, gates=gates, registry=catalogue(registry_with()))
    text = document("PodGroup", "g", "scheduling.x-k8s.io/v1alpha1", spec={"minMember": 3})
    for name, number in (("a", 1), ("b", 3)):
        labels = {"app": name, "scheduling.x-k8s.io/pod-group": "g"}
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}}}
        text += document(
            "Deployment",
            name,
            "apps/v1",
            spec={
                "replicas": number,
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        )
    for nodes, n_placed in (([node("a")], 0), ([node("a"), node("b")], 4)):
        made = make_plan(
            Captured(5.0, nodes),
            manifests(text, tmp_path),
            lambda cluster, ports: cluster.engine(configuration, gates, ports=ports),
        )
        assert (len(made.placed), len(made.pending)) == (n_placed, 4 - n_placed)
        assert all("odGroup default/g" in each.why for each in made.pending)


def test_a_workload_is_found_by_its_name_or_the_names_are_listed(plan: Any) -> None:
    made = plan(deployment("web", 1), node("a"))
    with pytest.raises(SchedulerError, match="Job/web: not one of the planned workloads: Deployment/default/web"):
        made.nodes_of("Job/web")


def test_the_cluster_is_left_as_it_was(tmp_path: Path) -> None:
    cluster = Captured(5.0, [node("a", cpu="4"), pod("old", on="a", requests={"cpu": "4"})])
    before = list(cluster.objects)
    make_plan(cluster, manifests(URGENT + deployment("web", 1, cpu="4", priorityClassName="urgent"), tmp_path), engine)
    assert cluster.objects == before and len(cluster.of(Node)) == 1


UNKNOWN_FIELDS = [
    (
        "in a workload's template",
        deployment("web", 1, priorityClassNam="x"),
        'Deployment in version "v1" cannot be handled as a Deployment: '
        'strict decoding error: unknown field "spec.template.spec.priorityClassNam"',
    ),
    (
        "in a pod, two of them",
        document("Pod", "p", spec={"foo": 1, "bar": {}, "containers": [{"name": "c", "image": "x"}]}),
        'strict decoding error: unknown field "spec.bar", unknown field "spec.foo"',
    ),
    (
        "in a kind that no placement depends on",
        deployment("web", 1) + document("ConfigMap", "c", dat={"a": "b"}),
        'document 2: ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dat"',
    ),
    (
        "the same key twice",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {}\nspec: {}\n",
        'document 1: line 5: key "spec" already set in map',
    ),
]


@pytest.mark.parametrize(("text", "error"), [case[1:] for case in UNKNOWN_FIELDS], ids=[case[0] for case in UNKNOWN_FIELDS])
def test_an_unknown_field_is_refused_in_the_api_servers_words(plan: Any, text: str, error: str) -> None:
    with pytest.raises(SchedulerError) as raised:
        plan(text, node("a"))
    assert error in str(raised.value)


def test_a_namespace_that_is_not_there_is_warned_of(plan: Any) -> None:
    there = Namespace(metadata=ObjectMeta(name="kube-system"))
    assert plan(deployment("web", 1), node("a"), there).warnings == [
        'namespaces "default" not found: planned as if it were there'
    ]
    brought = document("Namespace", "default")
    assert plan(brought + deployment("web", 1), node("a"), there).warnings == []
    assert plan(deployment("web", 1), node("a")).warnings == [], "namespaces could not be listed"


def test_a_daemon_set_that_matches_no_node_says_so_also_where_it_had_pods(plan: Any) -> None:
    spec = {"nodeSelector": {"disk": "ssd"}, "containers": [{"name": "c", "image": "x"}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    text = document("DaemonSet", "agent", "apps/v1", spec={"selector": {"matchLabels": {"a": "b"}}, "template": template})
    owner = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="agent", uid="u", controller=True)
    standing = pod("agent-x", on="a", labels={"a": "b"})
    standing = replace(standing, metadata=replace(standing.metadata, owner_references=(owner,)))
    assert plan(text, node("a")).workload("DaemonSet/agent").note == "no node matches it"
    assert "no node matches it" in plan(text, node("a"), standing).workload("DaemonSet/agent").note


QUOTA = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: small}
spec: {hard: {pods: "3", requests.cpu: "2"}}
---
"""


def test_what_a_quota_leaves_no_room_for_could_not_be_created(plan: Any) -> None:
    found = plan(QUOTA + deployment("web", 4, cpu="500m"), node("n", cpu="8"), pod("there", on="n", requests={"cpu": "500m"}))
    assert [each.why for each in found.pending] == [
        "exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3",
        "exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3",
    ]
    assert len(found.placed) == 2


def test_a_quota_of_the_cluster_counts_what_is_there_and_wants_requests(plan: Any) -> None:
    quota = ResourceQuota(
        metadata=ObjectMeta(name="q", namespace="default"), spec=ResourceQuotaSpec(hard={"requests.cpu": "1"})
    )
    found = plan(deployment("web", 2, cpu="500m"), node("n", cpu="8"), pod("there", on="n", requests={"cpu": "500m"}), quota)
    assert len(found.placed) == 1 and "used: requests.cpu=1, limited: requests.cpu=1" in found.pending[0].why
    silent = plan(deployment("web", 1, cpu="0").replace("cpu: '0'", "memory: 1Mi"), node("n", cpu="8"), quota)
    assert silent.pending[0].why == "failed quota: q: must specify requests.cpu for: c"
