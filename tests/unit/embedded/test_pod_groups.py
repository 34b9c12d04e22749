"""Pod groups of scheduling.k8s.io in all the versions that releases of Kubernetes serve: kept once, shown in each."""

from typing import Any

import pytest

from kubesched.embedded import ObjectStore
from kubesched.errors import ApiError

GROUPS = "podgroups.scheduling.k8s.io"
OLD = "podgroups.v1alpha2.scheduling.k8s.io"
GANG = {"schedulingPolicy": {"gang": {"minCount": 2}}}


def group(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "train", "namespace": "default"}, "spec": {**GANG, **spec}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"disruptionMode": "PodGroup"}, {"disruptionMode": {"all": {}}}),
        ({"disruptionMode": "Pod"}, {"disruptionMode": {"single": {}}}),
        (
            {"podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}},
            {"workloadRef": {"workloadName": "w", "templateName": "t"}},
        ),
    ],
)
def test_v1alpha2_and_v1beta1_are_two_ways_to_write_one_group(old: dict[str, Any], new: dict[str, Any]) -> None:
    for written, spec in ((OLD, old), (GROUPS, new)):
        store = ObjectStore()
        store.create(written, group(**spec))
        for read, shown, version in ((OLD, old, "v1alpha2"), (GROUPS, new, "v1beta1")):
            found = store.get(read, "train", "default")
            assert found["apiVersion"] == f"scheduling.k8s.io/{version}"
            assert found["spec"] == {**GANG, **shown, "priority": 0}


def test_a_group_gets_the_priority_of_its_class() -> None:
    store = ObjectStore()
    store.create("priorityclasses", {"metadata": {"name": "high"}, "value": 7})
    assert store.create(GROUPS, group(priorityClassName="high"))["spec"]["priority"] == 7
    with pytest.raises(ApiError, match=r"priority set in the pod group \(9\) must match the priority computed \(7\)"):
        store.create(GROUPS, {**group(priorityClassName="high", priority=9), "metadata": {"name": "b", "namespace": "default"}})


def test_only_min_count_changes() -> None:
    store = ObjectStore()
    store.create(GROUPS, group())
    smaller = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    assert store.update(GROUPS, group(priority=0, **smaller))["spec"] == {**smaller, "priority": 0}
    with pytest.raises(ApiError, match="immutable"):
        store.update(GROUPS, group(priority=0, priorityClassName="other", **smaller))


def test_groups_of_groups_are_kept_in_v1alpha3() -> None:
    store = ObjectStore()
    spec = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    made = store.create("compositepodgroups", {"metadata": {"name": "all", "namespace": "default"}, "spec": spec})
    assert (made["apiVersion"], made["spec"]["priority"]) == ("scheduling.k8s.io/v1alpha3", 0)
    assert store.create(GROUPS, group(parentCompositePodGroupName="all"))["spec"]["parentCompositePodGroupName"] == "all"


def test_a_group_without_a_spec_is_stored_with_the_default_priority() -> None:
    store = ObjectStore()
    store.create(GROUPS, {"metadata": {"name": "bare", "namespace": "default"}})
    assert store.get(GROUPS, "bare", "default")["spec"] == {"priority": 0}
