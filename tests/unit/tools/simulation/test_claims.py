"""Claims in simulations: volumes are provisioned, templates make claims, and what was made for a pod goes with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kubesched.tools.simulation.build import build_simulation
from kubesched.tools.simulation.scenario import read_scenario
from kubesched.tools.simulation.simulation import Simulation

CLASS: dict[str, Any] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "disk.example.com",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CLAIM = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}


def simulated(folder: Path, manifests: list[dict[str, Any]], workloads: list[dict[str, Any]]) -> Simulation:
    (folder / "m.yaml").write_text(yaml.safe_dump_all(manifests))
    capacity = {"cpu": 4, "memory": "8Gi"}
    zones = {"topology.kubernetes.io/zone": "z-{i%2}"}
    scenario = {
        "duration": 100,
        "cluster": {"nodes": [{"name": "n", "count": 2, "capacity": capacity, "labels": zones}], "manifests": ["m.yaml"]},
        "workloads": workloads,
    }
    (folder / "s.yaml").write_text(yaml.safe_dump(scenario))
    return build_simulation(read_scenario(folder / "s.yaml"))


def of_kind(sim: Simulation, kind: str) -> list[Any]:
    return [obj for (each, _, _), obj in sim.world.objects.items() if each == kind]


def test_a_stateful_set_gets_its_claims_and_volumes_where_its_pods_are(tmp_path: Path) -> None:
    template = {
        "metadata": {"labels": {"app": "db"}},
        "spec": {"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]},
    }
    spec = {
        "replicas": 2,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": template,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}],
    }
    stateful = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}
    sim = simulated(tmp_path, [CLASS, stateful], [])
    assert sim.run(100)["pods"]["running"] == 2
    claims = {claim.metadata.name: claim for claim in of_kind(sim, "PersistentVolumeClaim")}
    assert set(claims) == {"data-db-0", "data-db-1"} and all(claim.status.phase == "Bound" for claim in claims.values())
    volumes = {volume.metadata.name: volume for volume in of_kind(sim, "PersistentVolume")}
    for name, claim in claims.items():
        term = volumes[claim.spec.volume_name].spec.node_affinity.required.node_selector_terms[0]
        assert term.match_expressions[0].values == (sim.pods[f"default/{name.removeprefix('data-')}"].zone,)


def test_claims_of_ephemeral_volumes_and_for_devices_come_and_go_with_their_pods(tmp_path: Path) -> None:
    devices = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpus"}}]}}
    slice_spec = {
        "driver": "gpu.example.com",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n-1",
        "devices": [{"name": "only"}],
    }
    manifests = [
        CLASS,
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpus"}, "spec": {}},
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": slice_spec},
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "t"},
            "spec": {"spec": devices},
        },
    ]
    pod = {
        "spec": {
            "containers": [{"resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
            "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}],
        }
    }
    workload = {"name": "w", "restarts": False, "runs": 10, "arrivals": {"at": [0, 1]}, "pod": pod}
    sim = simulated(tmp_path, manifests, [workload])
    sim.run(5)
    assert {record.node for record in sim.pods.values()} == {"n-1", ""}, "one device: the second waits"
    assert len(of_kind(sim, "ResourceClaim")) == len(of_kind(sim, "PersistentVolumeClaim")) == 2
    figures = sim.run(100)
    assert figures["pods"]["finished"] == 2, "the first gave its device back"
    assert of_kind(sim, "ResourceClaim") == of_kind(sim, "PersistentVolumeClaim") == []
