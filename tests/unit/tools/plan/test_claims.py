"""What pods bring along: budgets, and claims that find their volumes before a pod is scheduled."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.kube.api import codec
from kubesched.kube.api.policy import PodDisruptionBudget
from kubesched.kube.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.testing import node, pod
from kubesched.tools.plan.claims import provisioned, settled_at_once, with_allowance

PODS = [pod(f"p{i}", labels={"app": "a"}, on="n" if i else "") for i in range(5)] + [pod("x", on="n")]


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"minAvailable": 3}, 1),
        ({"minAvailable": "50%"}, 2),
        ({"minAvailable": 9}, 0),
        ({"maxUnavailable": 1}, 1),
        ({"maxUnavailable": "30%"}, 2),
        ({}, 4),
    ],
    ids=str,
)
def test_a_budget_allows_what_the_healthy_pods_can_spare(spec: dict[str, Any], allowed: int) -> None:
    budget = codec.convert(
        {"metadata": {"name": "b", "namespace": "default"}, "spec": {**spec, "selector": {"matchLabels": {"app": "a"}}}},
        PodDisruptionBudget,
    )
    assert with_allowance(budget, PODS).status.disruptions_allowed == allowed


def claim(**spec: Any) -> PersistentVolumeClaim:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}, "storageClassName": "s", **spec}
    return codec.convert({"metadata": {"name": "c", "namespace": "d", "uid": "u"}, "spec": wanted}, PersistentVolumeClaim)


def volume(name: str, size: str = "5Gi", storage_class: str = "s", **spec: Any) -> PersistentVolume:
    given = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, **spec}
    return codec.convert({"metadata": {"name": name}, "spec": given}, PersistentVolume)


def storage(provisioner: str = "disk", mode: str = "Immediate") -> StorageClass:
    return codec.convert({"metadata": {"name": "s"}, "provisioner": provisioner, "volumeBindingMode": mode}, StorageClass)


FREE = [
    volume("huge", "50Gi"),
    volume("fits", "6Gi"),
    volume("small", "1Gi"),
    volume("other", storage_class="t"),
    volume("taken", claimRef={"namespace": "x", "name": "y"}),
]


@pytest.mark.parametrize(
    ("asked", "volumes", "of_class", "found"),
    [
        (claim(), FREE, storage(), "fits"),
        (claim(), [*FREE, volume("mine", "9Gi", claimRef={"namespace": "d", "name": "c"})], storage(), "mine"),
        (claim(volumeName="huge"), FREE, storage(), "huge"),
        (claim(volumeName="nowhere"), FREE, storage(), None),
        (claim(), FREE, storage(mode="WaitForFirstConsumer"), None),
        (claim(), [], storage("kubernetes.io/no-provisioner"), None),
        (claim(), [], None, None),
    ],
    ids=["the smallest", "kept for it", "by name", "not there", "it waits", "nobody makes one", "no class"],
)
def test_a_claim_that_does_not_wait_is_given_a_volume(
    asked: PersistentVolumeClaim, volumes: list[PersistentVolume], of_class: StorageClass | None, found: str | None
) -> None:
    settled = settled_at_once(asked, volumes, of_class)
    assert (settled[0].spec.volume_name if settled else None) == found
    assert settled is None or settled[1].spec.claim_ref.uid == "u"  # type: ignore[union-attr]


def test_a_new_volume_is_where_its_node_is() -> None:
    made = settled_at_once(claim(), [], storage())
    assert made is not None and made[1].spec.node_affinity is None
    (term,) = provisioned(claim(), storage(), node("a", zone="z")).spec.node_affinity.required.node_selector_terms  # type: ignore[union-attr]
    assert term.match_expressions[0].values == ("z",)
