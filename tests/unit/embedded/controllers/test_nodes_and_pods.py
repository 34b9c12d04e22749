"""Kubelets, node lifecycle, budgets, volumes and device claims in virtual time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kubesched import errors
from kubesched.embedded.controllers import INSTANT, Pace
from kubesched.embedded.verbs.patching import MERGE_PATCH
from kubesched.kube.api.resource import DELETE_PROTECTION_FINALIZER

Cluster = Any  # see conftest.py


def pod(name: str = "p", annotations: dict[str, str] | None = None, **spec: object) -> dict:
    metadata = {"name": name, "labels": {"app": name}, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "img:1"}], **spec}}


def conditions(obj: dict) -> dict[str, str]:
    return {one["type"]: one["status"] for one in obj["status"].get("conditions") or ()}


def test_a_pod_is_pulled_started_and_ready_in_this_order(new_cluster: Cluster, tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path, Pace(pull_seconds=5, start_seconds=2, ready_seconds=3))
    cluster.add_nodes(1)
    cluster.run(1)
    cluster.store.create("pods", pod())
    cluster.run(6.5)
    assert cluster.phases() == ["Pending"]
    cluster.run(1)
    assert cluster.phases() == ["Running"]
    assert conditions(cluster.pods()[0])["Ready"] == "False"
    cluster.run(3)
    assert conditions(cluster.pods()[0])["Ready"] == "True"
    (image,) = cluster.store.get("nodes", "n0")["status"]["images"]
    assert image["names"] == ["img:1"]
    cluster.store.create("pods", pod("q"))
    cluster.run(2.5)
    assert cluster.phases() == ["Running", "Running"], "the image is there already"
    cluster.store.close()


def test_after_a_restart_addresses_are_not_given_out_twice(new_cluster: Cluster, tmp_path: Path) -> None:
    for number in range(2):
        cluster = new_cluster(tmp_path)
        if not number:
            cluster.add_nodes(2)
        cluster.store.create("pods", pod(f"p{number}"))
        cluster.run(10)
        if number:
            cluster.store.create("nodes", {"metadata": {"name": "late"}})
            cluster.run(10)
            assert sorted(one["status"]["podIP"] for one in cluster.pods()) == ["10.244.0.3", "10.244.0.4"]
            nodes = cluster.store.list("nodes").items
            assert [node["status"]["addresses"][0]["address"] for node in nodes] == ["10.100.0.5", "10.100.0.1", "10.100.0.2"]
        cluster.store.close()


def test_nodes_report_ready_with_an_address_and_a_lease(cluster: Cluster) -> None:
    cluster.run(1)
    node = cluster.store.get("nodes", "n1")
    assert conditions(node)["Ready"] == "True"
    assert {one["type"] for one in node["status"]["addresses"]} == {"InternalIP", "Hostname"}
    first = cluster.store.get("leases", "n1", "kube-node-lease")["spec"]["renewTime"]
    cluster.run(30)
    assert cluster.store.get("leases", "n1", "kube-node-lease")["spec"]["renewTime"] > first


def test_a_kubelet_sets_right_who_says_too_late_that_its_pod_is_not_scheduled(cluster: Cluster) -> None:
    cluster.store.create("pods", pod())
    cluster.run()
    late = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}
    cluster.store.patch("pods", "p", {"status": {"conditions": [late]}}, subresource="status")
    cluster.run()
    (said,) = [one for one in cluster.pods()[0]["status"]["conditions"] if one["type"] == "PodScheduled"]
    assert said["status"] == "True" and not said.get("reason") and not said.get("message")


def test_a_deleted_pod_stops_and_is_gone(cluster: Cluster) -> None:
    cluster.store.create("pods", pod())
    cluster.run()
    cluster.store.delete("pods", "p")
    assert "deletionTimestamp" in cluster.pods()[0]["metadata"]
    cluster.run(1)
    assert cluster.pods() == []


ENDS = [
    ("it succeeds", {"kubesched.io/run-seconds": "5"}, "Never", "Succeeded"),
    ("it fails", {"kubesched.io/run-seconds": "5", "kubesched.io/exit-code": "2"}, "Never", "Failed"),
    ("it is restarted", {"kubesched.io/run-seconds": "5", "kubesched.io/exit-code": "2"}, "OnFailure", "Running"),
    ("it never starts", {"kubesched.io/pull-error": "true"}, "Always", "Pending"),
]


@pytest.mark.parametrize(("notes", "policy", "phase"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_how_a_pod_ends_is_told_by_annotations(cluster: Cluster, notes: dict, policy: str, phase: str) -> None:
    cluster.store.create("pods", pod(annotations=notes, restartPolicy=policy))
    cluster.run(12)
    assert cluster.phases() == [phase]
    if policy == "OnFailure":
        cluster.run(300)
        assert cluster.pods()[0]["status"]["containerStatuses"][0]["restartCount"] >= 2


def test_a_pod_fails_on_command(cluster: Cluster) -> None:
    cluster.store.create("pods", pod(restartPolicy="Never"))
    cluster.run()
    cluster.world.fail_pod("default", "p", 137, "OOMKilled")
    (status,) = cluster.pods()[0]["status"]["containerStatuses"]
    assert status["state"]["terminated"]["reason"] == "OOMKilled"
    assert cluster.phases() == ["Failed"]


def test_a_silent_node_is_tainted_and_its_pods_are_evicted(cluster: Cluster) -> None:
    def waits(seconds: int) -> list[dict]:
        silence = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
        return [{**silence, "tolerationSeconds": seconds}]

    cluster.store.create("pods", pod("short", tolerations=waits(0)))
    cluster.store.create("pods", pod("patient", tolerations=waits(60)))
    cluster.store.create("pods", pod("usual"))
    cluster.run(5)
    for name in ("n0", "n1", "n2"):
        cluster.world.fail_node(name)
    cluster.run(55)
    node = cluster.store.get("nodes", "n0")
    assert conditions(node)["Ready"] == "Unknown"
    keys = {(taint["key"], taint["effect"]) for taint in node["spec"]["taints"]}
    assert keys == {("node.kubernetes.io/unreachable", "NoSchedule"), ("node.kubernetes.io/unreachable", "NoExecute")}
    marked = {one["metadata"]["name"]: "deletionTimestamp" in one["metadata"] for one in cluster.pods()}
    assert marked == {"short": True, "patient": False, "usual": False}
    cluster.run(60)
    marked = {one["metadata"]["name"]: "deletionTimestamp" in one["metadata"] for one in cluster.pods()}
    assert marked == {"short": True, "patient": True, "usual": False}
    cluster.run(240)
    assert all("deletionTimestamp" in one["metadata"] for one in cluster.pods()), "five minutes unless it says otherwise"
    cluster.world.recover_node("n0")
    cluster.world.recover_node("n1")
    cluster.world.recover_node("n2")
    cluster.run(60)
    assert cluster.pods() == []
    assert "taints" not in cluster.store.get("nodes", "n0")["spec"]


def test_a_node_can_be_stopped_by_its_annotation(cluster: Cluster) -> None:
    cluster.run(5)
    cluster.store.patch("nodes", "n0", {"metadata": {"annotations": {"kubesched.io/kubelet": "stopped"}}})
    cluster.run(60)
    assert conditions(cluster.store.get("nodes", "n0"))["Ready"] == "Unknown"
    cluster.store.patch("nodes", "n0", {"metadata": {"annotations": {"kubesched.io/kubelet": None}}})
    cluster.run(60)
    assert conditions(cluster.store.get("nodes", "n0"))["Ready"] == "True"


def test_a_cordon_becomes_a_taint(cluster: Cluster) -> None:
    cluster.store.patch("nodes", "n0", {"spec": {"unschedulable": True}})
    cluster.run(1)
    assert cluster.store.get("nodes", "n0")["spec"]["taints"] == [
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    ]
    cluster.store.patch("nodes", "n0", {"spec": {"unschedulable": None}})
    cluster.run(1)
    assert "taints" not in cluster.store.get("nodes", "n0")["spec"]


def test_pods_of_a_deleted_node_are_deleted(cluster: Cluster) -> None:
    cluster.store.create("pods", pod())
    cluster.run()
    cluster.store.delete("nodes", cluster.pods()[0]["spec"]["nodeName"])
    cluster.run()
    assert cluster.pods() == []


def test_a_pod_bound_to_a_node_that_is_gone_is_deleted_after_40_seconds(cluster: Cluster) -> None:
    # Sooner, and a ReplicaSet's pods go in circles for as long as a scheduler has not heard that the node is gone.
    cluster.store.create("pods", pod(nodeName="gone"))
    cluster.run(39)
    assert len(cluster.pods()) == 1
    cluster.run(2)
    assert cluster.pods() == []


BUDGETS = [
    ("two of three must stay", {"minAvailable": 2}, 1),
    ("half of three, rounded up, must stay", {"minAvailable": "50%"}, 1),
    ("one may be down", {"maxUnavailable": 1}, 1),
    ("none may be down", {"maxUnavailable": 0}, 0),
]


@pytest.mark.parametrize(("spec", "allowed"), [row[1:] for row in BUDGETS], ids=[row[0] for row in BUDGETS])
def test_budgets_count_and_forbid(cluster: Cluster, spec: dict, allowed: int) -> None:
    body = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}}
    body["template"] = {"metadata": {"labels": {"app": "web"}}, "spec": pod()["spec"]}
    cluster.store.create("replicasets", {"metadata": {"name": "web"}, "spec": body})
    selector = {"matchLabels": {"app": "web"}}
    cluster.store.create("poddisruptionbudgets", {"metadata": {"name": "b"}, "spec": {"selector": selector, **spec}})
    cluster.run()
    status = cluster.store.get("poddisruptionbudgets", "b")["status"]
    assert status["disruptionsAllowed"] == allowed
    assert status["expectedPods"] == 3
    for _ in range(allowed):
        cluster.store.evict("default", cluster.pods("app=web")[0]["metadata"]["name"])
    with pytest.raises(errors.TooManyRequests, match="violate the pod's disruption budget"):
        cluster.store.evict("default", cluster.pods("app=web")[1]["metadata"]["name"])
    cluster.run()
    assert len(cluster.pods("app=web")) == 3
    assert cluster.store.get("poddisruptionbudgets", "b")["status"]["disruptionsAllowed"] == allowed


def claim(name: str = "c", **spec: object) -> dict:
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}, **spec}
    return {"metadata": {"name": name}, "spec": body}


def volume(name: str, size: str, **spec: object) -> dict:
    body = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "storageClassName": "manual", **spec}
    return {"metadata": {"name": name}, "spec": {**body, "hostPath": {"path": "/x"}}}


def test_a_claim_gets_the_smallest_volume_that_is_large_enough(cluster: Cluster) -> None:
    for name, size in (("small", "1Gi"), ("large", "100Gi"), ("right", "10Gi")):
        cluster.store.create("persistentvolumes", volume(name, size))
    cluster.run(1)
    assert {one["status"]["phase"] for one in cluster.store.list("persistentvolumes").items} == {"Available"}
    cluster.store.create("persistentvolumeclaims", claim(storageClassName="manual"))
    cluster.run(1)
    bound = cluster.store.get("persistentvolumeclaims", "c")
    assert bound["spec"]["volumeName"] == "right"
    assert bound["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"}}
    assert bound["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
    cluster.store.delete("persistentvolumeclaims", "c")
    cluster.run(1)
    assert cluster.store.get("persistentvolumes", "right")["status"]["phase"] == "Released"


def test_a_waiting_claim_is_provisioned_where_the_scheduler_says(cluster: Cluster) -> None:
    cluster.store.patch("nodes", "n1", {"metadata": {"labels": {"topology.kubernetes.io/zone": "z1"}}})
    made = {
        "metadata": {"name": "wait"},
        "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    cluster.store.create("storageclasses", made)
    cluster.store.create("persistentvolumeclaims", claim(storageClassName="wait"))
    cluster.run(10)
    assert cluster.store.get("persistentvolumeclaims", "c")["status"]["phase"] == "Pending"
    chosen = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}}
    cluster.store.patch("persistentvolumeclaims", "c", chosen)
    cluster.run(10)
    bound = cluster.store.get("persistentvolumeclaims", "c")
    assert bound["status"]["phase"] == "Bound"
    made_volume = cluster.store.get("persistentvolumes", bound["spec"]["volumeName"])
    (term,) = made_volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["z1"]
    cluster.store.delete("persistentvolumeclaims", "c")
    cluster.run(10)
    assert cluster.store.list("persistentvolumes").items == [], "its class says delete"


def test_a_wall_clock_that_is_set_back_holds_up_neither_volumes_nor_pods(new_cluster: Cluster, tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path, Pace(pull_seconds=5, provision_seconds=5))
    cluster.add_nodes(1)
    cluster.store.create("storageclasses", {"metadata": {"name": "now"}, "provisioner": "disk.example.com"})
    cluster.store.create("persistentvolumeclaims", claim(storageClassName="now"))
    cluster.store.create("pods", pod())
    cluster.run(1)
    before = cluster.clock.now
    cluster.clock.now = lambda: before() - 3600
    cluster.run(10)
    assert cluster.store.get("persistentvolumeclaims", "c")["status"]["phase"] == "Bound"
    assert cluster.phases() == ["Running"]
    cluster.store.close()


def test_a_volume_the_scheduler_chose_is_bound(cluster: Cluster) -> None:
    made = {"metadata": {"name": "manual"}, "provisioner": "kubernetes.io/no-provisioner"}
    cluster.store.create("storageclasses", {**made, "volumeBindingMode": "WaitForFirstConsumer"})
    cluster.store.create("persistentvolumes", volume("v", "10Gi"))
    asked = cluster.store.create("persistentvolumeclaims", claim(storageClassName="manual"))
    cluster.run(5)
    assert cluster.store.get("persistentvolumeclaims", "c")["status"]["phase"] == "Pending"
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "c", "uid": asked["metadata"]["uid"]}
    cluster.store.patch("persistentvolumes", "v", {"spec": {"claimRef": reference}})
    cluster.run(5)
    assert cluster.store.get("persistentvolumeclaims", "c")["spec"]["volumeName"] == "v"
    assert cluster.store.get("persistentvolumes", "v")["status"]["phase"] == "Bound"


def test_a_pod_gets_the_claim_of_its_template_and_it_ends_with_the_pod(cluster: Cluster) -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    template = {"spec": {"spec": {"devices": {"requests": [request]}}}}
    cluster.store.create("resourceclaimtemplates", {"metadata": {"name": "t"}, **template})
    asks = [{"name": "g", "resourceClaimTemplateName": "t"}]
    made = cluster.store.create("pods", pod(resourceClaims=asks))
    cluster.run(1)
    (entry,) = cluster.store.get("pods", "p")["status"]["resourceClaimStatuses"]
    held = cluster.store.get("resourceclaims", entry["resourceClaimName"])
    assert held["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    reserved = [{"resource": "pods", "name": "p", "uid": made["metadata"]["uid"]}]
    allocate(cluster, held, reserved)
    cluster.run(1)
    assert cluster.store.get("resourceclaims", entry["resourceClaimName"])["status"]["reservedFor"] == reserved
    cluster.store.delete("pods", "p")
    cluster.run(10)
    assert cluster.store.list("resourceclaims").items == []


def test_a_node_looks_as_a_kubelet_leaves_it(cluster: Cluster) -> None:
    cluster.store.create("nodes", {"metadata": {"name": "own", "labels": {"kubernetes.io/arch": "arm64"}}})
    cluster.run(1)
    node = cluster.store.get("nodes", "own")
    labels = node["metadata"]["labels"]
    assert (labels["kubernetes.io/os"], labels["kubernetes.io/hostname"]) == ("linux", "own")
    assert labels["kubernetes.io/arch"] == "arm64", "what was said stays"
    pressures = ("MemoryPressure", "DiskPressure", "PIDPressure")
    assert conditions(node) == {"Ready": "True", **dict.fromkeys(pressures, "False")}
    assert {one["type"] for one in node["status"]["addresses"]} == {"InternalIP", "Hostname"}
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.37.0-rc.1"


def test_a_daemon_set_with_the_usual_node_selector_runs(cluster: Cluster) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"kubernetes.io/os": "linux"}}
    labels = {"app": "agent"}
    body = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}
    cluster.store.create("daemonsets", {"metadata": {"name": "agent"}, "spec": body})
    cluster.run()
    assert cluster.store.get("daemonsets", "agent")["status"]["numberReady"] == 3


def allocate(cluster: Cluster, claim: dict, reserved: list[dict]) -> None:
    """Do what the scheduler does: the finalizer first, then the allocation."""
    name = claim["metadata"]["name"]
    held = cluster.store.patch("resourceclaims", name, {"metadata": {"finalizers": [DELETE_PROTECTION_FINALIZER]}})
    status = {"allocation": {"devices": {}}, "reservedFor": reserved}
    cluster.store.update("resourceclaims", {**held, "status": status}, subresource="status")


def test_a_claim_of_ones_own_loses_its_allocation_and_its_finalizer_and_stays(cluster: Cluster) -> None:
    body = {"metadata": {"name": "mine"}, "spec": {"devices": {}}}
    gone = [{"resource": "pods", "name": "long-gone", "uid": "u"}]
    allocate(cluster, cluster.store.create("resourceclaims", body), gone)
    cluster.run(1)
    held = cluster.store.get("resourceclaims", "mine")
    assert (held["status"], held["metadata"].get("finalizers")) == ({}, None)


def test_a_deleted_claim_that_nobody_reserved_gives_its_allocation_back_and_goes(cluster: Cluster) -> None:
    body = {"metadata": {"name": "mine"}, "spec": {"devices": {}}}
    allocate(cluster, cluster.store.create("resourceclaims", body), [])
    cluster.run(1)
    assert cluster.store.get("resourceclaims", "mine")["status"]["allocation"] == {"devices": {}}
    cluster.store.delete("resourceclaims", "mine")
    cluster.run(1)
    assert cluster.store.list("resourceclaims").items == []


def test_an_instant_world_needs_no_time(new_cluster: Cluster, tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path, INSTANT)
    cluster.add_nodes(2)
    for number in range(20):
        cluster.store.create("pods", pod(f"p{number}"))
    cluster.run(1)
    assert cluster.phases() == ["Running"] * 20
    cluster.store.close()


def test_an_ephemeral_container_joins_a_running_pod(cluster: Cluster) -> None:
    cluster.store.create("pods", pod())
    cluster.run(10)
    body = {"spec": {"ephemeralContainers": [{"name": "debugger", "image": "busybox", "targetContainerName": "c"}]}}
    cluster.store.patch("pods", "p", body, subresource="ephemeralcontainers")
    cluster.run(1)
    held = cluster.store.get("pods", "p")
    assert held["spec"]["ephemeralContainers"][0]["imagePullPolicy"] == "Always"
    (status,) = held["status"]["ephemeralContainerStatuses"]
    assert (status["name"], list(status["state"])) == ("debugger", ["running"])


@pytest.mark.parametrize(
    ("containers", "refusal"),
    [
        ([], 'existing ephemeral containers "first" may not be removed'),
        ([{"name": "first", "image": "other"}], 'existing ephemeral containers "first" may not be changed'),
        ([{"name": "c", "image": "i"}], 'spec.ephemeralContainers[0].name: Duplicate value: "c"'),
        ([{"name": "x", "image": "i", "targetContainerName": "y"}], '[0].targetContainerName: Not found: "y"'),
        ([{"name": "x"}], "spec.ephemeralContainers[0].image: Required value"),
    ],
)
def test_ephemeral_containers_can_only_be_added(cluster: Cluster, containers: list[dict], refusal: str) -> None:
    cluster.store.create("pods", pod())
    first = {"spec": {"ephemeralContainers": [{"name": "first", "image": "i"}]}}
    cluster.store.patch("pods", "p", first, subresource="ephemeralcontainers")
    with pytest.raises(errors.Invalid, match=re.escape(refusal)):
        patch = {"spec": {"ephemeralContainers": containers}}
        cluster.store.patch("pods", "p", patch, patch_type=MERGE_PATCH, subresource="ephemeralcontainers")


def test_a_finalizer_that_is_there_before_the_allocation_stays(cluster: Cluster) -> None:
    # The scheduler protects a claim first and writes its devices then: whoever touches the claim in between makes it fail.
    body = {"metadata": {"name": "mine"}, "spec": {"devices": {"requests": []}}}
    cluster.store.create("resourceclaims", body)
    held = cluster.store.patch("resourceclaims", "mine", {"metadata": {"finalizers": [DELETE_PROTECTION_FINALIZER]}})
    cluster.run(60)
    status = {"allocation": {"devices": {}}}
    cluster.store.update("resourceclaims", {**held, "status": status}, subresource="status")
    assert cluster.store.get("resourceclaims", "mine")["metadata"]["finalizers"] == [DELETE_PROTECTION_FINALIZER]
