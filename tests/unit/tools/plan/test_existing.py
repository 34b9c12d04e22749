"""What is in the cluster already is not planned again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubesched.kube.api import codec
from kubesched.kube.api.pod import Container, Pod
from kubesched.solver.objects import renamed
from kubesched.testing import node
from kubesched.tools.plan.admission import Admission
from kubesched.tools.plan.existing import Addition, ExistingPods, kept_by
from kubesched.tools.plan.manifests import Manifest

NODES = [node("a"), node("b"), node("c")]


def workload(
    admission: Admission, kind: str = "Deployment", *, image: str = "x", cpu: str = "1", **spec: Any
) -> dict[str, Any]:
    containers = [{"name": "c", "image": image, "resources": {"limits": {"cpu": cpu}}}]
    template = {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": containers}}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": {"app": "w"}}
    if kind == "StatefulSet":
        spec["serviceName"] = "w"
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    raw = {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "w"},
        "spec": {**spec, "template": template},
    }
    return admission.take(Manifest("x", raw))


def placed(pods: list[Pod], *, names: str = "") -> list[Pod]:
    """Return pods as a cluster has them: on nodes, and some under names that nobody could foretell."""
    found = []
    for number, pod in enumerate(pods):
        labels = {**pod.metadata.labels, "topology.kubernetes.io/zone": "z"}
        found.append(
            msgspec.structs.replace(
                pod,
                spec=msgspec.structs.replace(pod.spec, node_name="abc"[number % 3]),
                metadata=msgspec.structs.replace(pod.metadata, labels=labels),
            )
        )
    return [renamed(pod, f"{names}{number}") for number, pod in enumerate(found)] if names else found


def addition(there: dict[str, Any], wanted: dict[str, Any], kind: str = "Deployment") -> Addition:
    admission = Admission()
    old = placed(admission.pods_of(workload(admission, kind, **there), NODES), names="w-xyz-" if kind != "StatefulSet" else "")
    return ExistingPods(old).addition(workload(admission, kind, **wanted), admission, NODES)


def names(pods: list[Pod]) -> list[str]:
    return [pod.name for pod in pods]


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_of_the_same_template_only_what_is_missing_is_added(kind: str) -> None:
    found = addition({"replicas": 2}, {"replicas": 4, "cpu": "1000m"}, kind)
    assert (names(found.pods), found.gone, found.note) == (["w-3", "w-4"], [], "2 pods of 4 are there already")
    assert (
        {pod.metadata.controller().name for pod in found.pods}
        == {  # type: ignore[union-attr]
            pod.metadata.controller().name for pod in found.pods[:1]
        }
    )  # type: ignore[union-attr]


def test_more_pods_belong_to_the_replica_set_that_is_there() -> None:
    admission = Admission()
    old = placed(admission.pods_of(workload(admission, replicas=1)), names="w-xyz-")
    owner = msgspec.structs.replace(old[0].metadata.owner_references[0], name="w-abc")
    meta = msgspec.structs.replace(old[0].metadata, owner_references=(owner,), labels={"app": "w", "pod-template-hash": "abc"})
    found = ExistingPods([msgspec.structs.replace(old[0], metadata=meta)]).addition(
        workload(admission, replicas=2), admission, NODES
    )
    (pod,) = found.pods
    assert (pod.metadata.owner_references, pod.metadata.labels["pod-template-hash"]) == ((owner,), "abc")
    assert found.others == []


def test_fewer_replicas_add_nothing_and_take_nothing_away() -> None:
    found = addition({"replicas": 3}, {"replicas": 1})
    assert (found.pods, found.gone) == ([], [])
    assert found.note == "scaled down: 2 of 3 pods would go, and are still counted"


def test_another_template_comes_beside_the_old_one() -> None:
    found = addition({"replicas": 2}, {"replicas": 2, "image": "y"})
    assert (len(found.pods), found.gone) == (2, [])
    assert found.note == "another template: beside the 2 pods of the old one, as at the height of a rolling update"


def test_a_deployment_that_recreates_lets_the_old_pods_go_first() -> None:
    found = addition({"replicas": 2}, {"replicas": 2, "image": "y", "strategy": {"type": "Recreate"}})
    assert (len(found.pods), len(found.gone), found.note) == (2, 2, "another template: the 2 pods of the old one go first")


def test_a_stateful_set_goes_by_ordinals() -> None:
    found = addition({"replicas": 2}, {"replicas": 3}, "StatefulSet")
    assert (names(found.pods), found.gone) == (["w-2"], [])
    found = addition({"replicas": 2}, {"replicas": 3, "image": "y"}, "StatefulSet")
    assert (names(found.pods), names(found.gone)) == (["w-0", "w-1", "w-2"], ["w-0", "w-1"])
    assert found.note == "another template: the 2 pods of the old one go first"


def test_a_daemon_set_goes_by_nodes() -> None:
    admission = Admission()
    old = placed(admission.pods_of(workload(admission, "DaemonSet"), NODES), names="w-xyz-")
    found = ExistingPods(old[:2]).addition(workload(admission, "DaemonSet"), admission, NODES)
    assert (names(found.pods), found.gone, found.note) == (["w-3"], [], "2 pods of 3 are there already")
    found = ExistingPods(old[:2]).addition(workload(admission, "DaemonSet", image="y"), admission, NODES)
    assert (len(found.pods), [pod.spec.node_name for pod in found.gone]) == (3, ["a", "b"])


def test_pods_that_have_ended_or_are_ending_do_not_count() -> None:
    admission = Admission()
    old = placed(admission.pods_of(workload(admission, "Job", parallelism=2)), names="w-xyz-")
    ended = msgspec.structs.replace(old[0], status=msgspec.structs.replace(old[0].status, phase="Succeeded"))
    ending = msgspec.structs.replace(
        old[1], metadata=msgspec.structs.replace(old[1].metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    )
    assert len(ExistingPods([ended, ending]).addition(workload(admission, "Job", parallelism=2), admission, NODES).pods) == 2
    assert len(ExistingPods(old).addition(workload(admission, "Job", parallelism=2), admission, NODES).pods) == 0


def test_a_pod_that_is_there_is_said_to_be() -> None:
    admission = Admission()
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    (pod,) = admission.pods_of(admission.take(Manifest("x", raw)))
    found = ExistingPods(placed([pod])).addition(admission.take(Manifest("x", raw)), admission, NODES)
    assert (found.pods, found.note) == ([], "it is on node a already")


def test_templates_are_compared_where_they_are_known_as_pods_may_be_changed_on_their_way_in() -> None:
    admission = Admission()
    there = workload(admission, replicas=2)
    sidecar = {"name": "proxy", "image": "proxy"}
    old = placed(admission.pods_of(workload(admission, replicas=2)), names="w-xyz-")
    changed = [
        msgspec.structs.replace(
            pod, spec=msgspec.structs.replace(pod.spec, containers=(*pod.spec.containers, codec.convert(sidecar, Container)))
        )
        for pod in old
    ]
    assert ExistingPods(changed).addition(there, admission, NODES).note.startswith("another template")
    (kept,) = kept_by(there, admission)
    assert ExistingPods([*changed, kept]).addition(there, admission, NODES).note == "2 pods of 2 are there already"
    assert (
        ExistingPods([*changed, kept])
        .addition(workload(admission, image="z"), admission, NODES)
        .note.startswith("another template")
    )
