"""Hidden names: what is replaced, what stays, and what still refers to what."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubesched.kube.api import codec
from kubesched.testing import node, pod, taint
from kubesched.tools.snapshots.anonymizing import hide_names
from kubesched.tools.snapshots.captured import Captured

UUID = "2f1c8f5e-3a55-4c8e-9d52-0a6f2f1b7c11"


def made(version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Any:
    meta = {"name": name, "namespace": namespace, **fields.pop("metadata", {})}
    return codec.decode({"apiVersion": version, "kind": kind, "metadata": meta, **fields})


def hidden(*objects: Any) -> list[dict[str, Any]]:
    """Return the hidden objects as they stand on the wire."""
    return [codec.to_dict(obj) for obj in hide_names(Captured(7.5, list(objects)))[0].objects]


def term(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def test_a_node_is_the_same_wherever_it_is_named() -> None:
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": [term("metadata.name", "db-host")]}]
            }
        }
    }
    host, placed, waiting, csi, sliced = hidden(
        node("db-host"),
        pod("placed", on="db-host"),
        pod("waiting", affinity=affinity, nominated="db-host"),
        made("storage.k8s.io/v1", "CSINode", "db-host"),
        made(
            "resource.k8s.io/v1",
            "ResourceSlice",
            "slice",
            spec={"driver": "gpu.example.com", "nodeName": "db-host", "pool": {"name": "db-host"}},
        ),
    )
    assert host["metadata"]["name"] == host["metadata"]["labels"]["kubernetes.io/hostname"] == "node-1"
    assert placed["spec"]["nodeName"] == waiting["status"]["nominatedNodeName"] == csi["metadata"]["name"] == "node-1"
    required = waiting["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"][0]["matchFields"] == [term("metadata.name", "node-1")]
    assert (sliced["spec"]["nodeName"], sliced["spec"]["pool"]["name"], sliced["spec"]["driver"]) == (
        "node-1",
        "node-1",
        "gpu.example.com",
    )


def test_claims_volumes_and_their_pods_still_belong_together() -> None:
    claim, volume, claimed, ephemeral, made_for_it = hidden(
        made(
            "v1",
            "PersistentVolumeClaim",
            "data",
            "shop",
            spec={"volumeName": "disk-7", "storageClassName": "fast"},
            metadata={"annotations": {"volume.kubernetes.io/selected-node": "db-host", "note": "call Bob"}},
        ),
        made(
            "v1",
            "PersistentVolume",
            "disk-7",
            spec={
                "claimRef": {"namespace": "shop", "name": "data", "uid": UUID},
                "storageClassName": "fast",
                "nfs": {"server": "files.shop.example"},
            },
        ),
        pod("db", namespace="shop", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]),
        pod("job", namespace="shop", volumes=[{"name": "scratch", "ephemeral": {}}]),
        made("v1", "PersistentVolumeClaim", "job-scratch", "shop"),
    )
    assert claim["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": "node-1"}
    assert volume["spec"]["claimRef"] == {
        "namespace": claim["metadata"]["namespace"],
        "name": claim["metadata"]["name"],
        "uid": UUID,
    }
    assert volume["metadata"]["name"] == claim["spec"]["volumeName"] == "pv-1"
    assert volume["spec"]["storageClassName"] == claim["spec"]["storageClassName"] == "class-1"
    assert volume["spec"]["nfs"] == {}
    assert claimed["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    made_of = f"{ephemeral['metadata']['name']}-{ephemeral['spec']['volumes'][0]['name']}"
    assert made_for_it["metadata"]["name"] == made_of


def test_selectors_select_what_they_did() -> None:
    affinity = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchExpressions": [term("app", "web", "api")]},
                    "topologyKey": "rack",
                    "namespaces": ["shop"],
                }
            ]
        }
    }
    web, budget, replicas, host = hidden(
        pod("web-0", namespace="shop", labels={"app": "web"}, affinity=affinity),
        made("policy/v1", "PodDisruptionBudget", "web", "shop", spec={"selector": {"matchLabels": {"app": "web"}}}),
        made("apps/v1", "ReplicaSet", "web", "shop", spec={"selector": {"matchLabels": {"app": "web"}}}),
        node("a", labels={"rack": "r7"}),
    )
    ((key, value),) = web["metadata"]["labels"].items()
    (wanted,) = web["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (expression,) = wanted["labelSelector"]["matchExpressions"]
    assert (expression["key"], value in expression["values"]) == (key, True)
    assert wanted["namespaces"] == [web["metadata"]["namespace"]]
    assert wanted["topologyKey"] in host["metadata"]["labels"]
    assert budget["spec"]["selector"] == replicas["spec"]["selector"] == {"matchLabels": {key: value}}


def test_names_keep_their_order() -> None:
    names = ["b", "a", "c", *(f"x{i}" for i in range(20))]
    shown = [each["metadata"]["name"] for each in hidden(*(node(name) for name in names))]
    assert sorted(shown) == [shown[names.index(name)] for name in sorted(names)]


VALUES = [
    ("what everybody knows stays", {"kubernetes.io/os": "linux"}, {"kubernetes.io/os": "linux"}),
    ("numbers can be compared and stay", {"rank": "42"}, {"label-1": "42"}),
    ("yes and no stay", {"spot": "true"}, {"label-1": "true"}),
    (
        "topology keys stay, their values do not",
        {"topology.kubernetes.io/zone": "frankfurt"},
        {"topology.kubernetes.io/zone": "zone-1"},
    ),
    (
        "a zone that begins with its region still does",
        {"topology.kubernetes.io/zone": "us-central1-a", "topology.kubernetes.io/region": "us-central1"},
        {"topology.kubernetes.io/zone": "region-1-a", "topology.kubernetes.io/region": "region-1"},
    ),
    ("one's own keys are hidden", {"acme.example/team": "payments"}, {"label-1": "value-1"}),
    ("a role is a name", {"node-role.kubernetes.io/payments": ""}, {"node-role.kubernetes.io/role-1": ""}),
    ("a known role is none", {"node-role.kubernetes.io/worker": ""}, {"node-role.kubernetes.io/worker": ""}),
]


@pytest.mark.parametrize(("sentence", "labels", "shown"), VALUES, ids=[case[0] for case in VALUES])
def test_labels(sentence: str, labels: dict[str, str], shown: dict[str, str]) -> None:
    (found,) = hidden(msgspec.structs.replace(node(), metadata=msgspec.structs.replace(node().metadata, labels=labels)))
    assert found["metadata"]["labels"] == shown


def test_taints_are_tolerated_as_before() -> None:
    mine = taint("acme.example/team", "payments")
    tainted, tolerant = hidden(node(taints=[mine]), pod(tolerates=[mine]))
    (there,), (tolerated,) = tainted["spec"]["taints"], tolerant["spec"]["tolerations"]
    assert there == {"key": "label-1", "value": "value-1", "effect": "NoSchedule"}
    assert tolerated == {**there, "operator": "Equal"}


IMAGES = [
    ("shop", "shop:latest"),
    ("registry:5000/shop", "registry:5000/shop:latest"),
    ("shop:1.2", "shop:1.2"),
    ("shop@sha256:00ff", "shop@sha256:00ff"),
]


@pytest.mark.parametrize(("wanted", "there"), IMAGES)
def test_an_image_without_a_tag_is_still_the_latest(wanted: str, there: str) -> None:
    wanting, having = hidden(pod(image=wanted), node(images={there: 5}))
    asked, (held,) = wanting["spec"]["containers"][0]["image"], having["status"]["images"][0]["names"]
    assert "shop" not in asked + held
    assert held == (asked if ":" in asked else f"{asked}:latest")


def test_uids_stay_unless_they_could_hold_a_name() -> None:
    kept, replaced = hidden(pod("a", uid=UUID), pod("b", uid="uid-of-the-shop"))
    assert kept["metadata"]["uid"] == UUID
    assert "shop" not in replaced["metadata"]["uid"] and len(replaced["metadata"]["uid"]) == len("uid-of-the-shop")


def test_what_nothing_decides_by_is_gone() -> None:
    raw = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a", "annotations": {"owner": "bob"}},
        "spec": {"providerID": "aws:///eu/i-7", "podCIDR": "10.0.0.0/24"},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}],
            "nodeInfo": {"osImage": "AcmeOS"},
            "conditions": [{"type": "Ready", "status": "False", "reason": "Down", "message": "bob pulled the plug"}],
        },
    }
    (found,) = hidden(codec.decode(raw))
    assert found == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-1"},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Down"}]},
    }


def test_device_classes_and_expressions() -> None:
    device_class, claim, asking = hidden(
        made(
            "resource.k8s.io/v1",
            "DeviceClass",
            "acme-gpus",
            spec={"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com' && 'acme-gpus' != \"x\""}}]},
        ),
        made(
            "resource.k8s.io/v1",
            "ResourceClaim",
            "train",
            "shop",
            spec={"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "acme-gpus"}}]}},
        ),
        pod(requests={"deviceclass.resource.kubernetes.io/acme-gpus": "1", "example.com/gpu": "1"}),
    )
    name = device_class["metadata"]["name"]
    assert device_class["spec"]["selectors"][0]["cel"]["expression"] == (f"device.driver == 'value-1' && '{name}' != 'value-2'")
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == name
    asked = asking["spec"]["containers"][0]["resources"]["requests"]
    assert asked == {f"deviceclass.resource.kubernetes.io/{name}": "1", "example.com/gpu": "1"}


def test_who_hides_learns_which_name_became_which() -> None:
    _, names = hide_names(Captured(7.5, [node("db-host"), pod("web", namespace="shop", on="db-host")]))
    assert (names["db-host"], names["web"], names["shop"]) == ("node-1", "pod-1", "ns-1")


def test_a_drivers_name_stays_wherever_it_stands() -> None:
    sliced, host, device_class = hidden(
        made(
            "resource.k8s.io/v1",
            "ResourceSlice",
            "s",
            spec={
                "driver": "gpu.example.com",
                "pool": {"name": "p"},
                "devices": [{"name": "d", "attributes": {"model": {"string": "a100"}, "host": {"string": "db-host"}}}],
            },
        ),
        node("db-host", labels={"model": "a100"}, taints=[taint("gpu.example.com")]),
        made(
            "resource.k8s.io/v1",
            "DeviceClass",
            "gpus",
            spec={"selectors": [{"cel": {"expression": "device.attributes['gpu.example.com'].model == 'a100'"}}]},
        ),
    )
    assert host["spec"]["taints"][0]["key"] == sliced["spec"]["driver"] == "gpu.example.com"
    assert device_class["spec"]["selectors"][0]["cel"]["expression"] == (
        "device.attributes['gpu.example.com'].model == 'value-1'"
    )
    (device,) = sliced["spec"]["devices"]
    assert device["attributes"] == {"model": {"string": "value-1"}, "host": {"string": host["metadata"]["name"]}}
    assert host["metadata"]["labels"]["label-1"] == "value-1"


EXPRESSIONS = [
    ("a version stays", "device.attributes['d.example.com'].v.isGreaterThan(semver('1.2.3'))", "semver('1.2.3')"),
    ("an amount stays", "device.capacity[\"d.example.com\"].m.compareTo(quantity('10Gi')) > 0", "quantity('10Gi')"),
    (
        "however it is quoted",
        "device.attributes['d.example.com'].a in ['secret', \"secret\", r'secret', '''secret''']",
        "value-1",
    ),
    ("with an escaped quote", "device.attributes['d.example.com'].a == 'se\\'cret'", "'value-1'"),
    ("as an argument", "device.attributes['d.example.com'].a.startsWith('secret')", "startsWith('value-1')"),
]


@pytest.mark.parametrize(("why", "expression", "expected"), EXPRESSIONS, ids=[case[0] for case in EXPRESSIONS])
def test_texts_in_selectors_are_hidden(why: str, expression: str, expected: str) -> None:
    warnings: list[str] = []
    raw = made("resource.k8s.io/v1", "DeviceClass", "c", spec={"selectors": [{"cel": {"expression": expression}}]})
    (found,) = hide_names(Captured(7.5, [raw]), warnings.append)[0].objects
    text = codec.to_dict(found)["spec"]["selectors"][0]["cel"]["expression"]
    assert expected in text and "cret" not in text and "d.example.com" in text
    assert bool(warnings) == ("startsWith" in expression)


def test_finalizers_that_only_some_know_are_hidden() -> None:
    known = "kubernetes.io/pvc-protection"
    raw = node("n")
    meta = msgspec.structs.replace(raw.metadata, finalizers=(known, "acme.kubernetes.io/project-x", "bob"))
    (found,) = hidden(msgspec.structs.replace(raw, metadata=meta))
    assert found["metadata"]["finalizers"] == [known, "finalizer-1", "finalizer-2"]
