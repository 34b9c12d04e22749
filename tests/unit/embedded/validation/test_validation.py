"""Validation, defaulting and admission: what is refused and with which words, and what is filled in."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched import errors
from kubesched.embedded import ManualClock, ObjectStore


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore(ManualClock(), seed=1)


def pod(container: dict | None = None, **spec: Any) -> dict:
    return {
        "metadata": {"name": "p", "labels": {"app": "web", "v": "2"}},
        "spec": {"containers": [{"name": "c", "image": "i", **(container or {})}], **spec},
    }


TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
WRONG_PODS = [
    ("no containers", {"containers": []}, "spec.containers: Required value"),
    (
        "two of one name",
        {"containers": [{"name": "c", "image": "i"}] * 2},
        'spec.containers[1].name: Duplicate value: "c"',
    ),
    ("no image", {"containers": [{"name": "c"}]}, "spec.containers[0].image: Required value"),
    ("restart policy", {"restartPolicy": "Maybe"}, 'spec.restartPolicy: Unsupported value: "Maybe"'),
    ("node selector key", {"nodeSelector": {"a b": "c"}}, 'spec.nodeSelector: Invalid value: "a b"'),
    ("toleration without key", {"tolerations": [{"value": "x"}]}, "operator must be Exists when `key` is empty"),
    (
        "toleration with a value to exist",
        {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]},
        "value must be empty",
    ),
    (
        "toleration seconds",
        {"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]},
        "effect must be 'NoExecute'",
    ),
    (
        "skew",
        {"topologySpreadConstraints": [{**TERM, "maxSkew": 0, "whenUnsatisfiable": "DoNotSchedule"}]},
        "must be greater than zero",
    ),
    ("spread action", {"topologySpreadConstraints": [{**TERM, "maxSkew": 1}]}, "whenUnsatisfiable: Unsupported value"),
    (
        "no topology key",
        {"affinity": {"podAffinity": {REQUIRED: [{}]}}},
        "topologyKey: Required value: can not be empty",
    ),
    ("no node terms", {"affinity": {"nodeAffinity": {REQUIRED: {}}}}, "must have at least one node selector term"),
    (
        "gates on an assigned pod",
        {"schedulingGates": [{"name": "g"}], "nodeName": "n"},
        "cannot be set until all schedulingGates",
    ),
    (
        "a mount of nothing",
        {"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/"}]}]},
        'Not found: "v"',
    ),
    (
        "a volume of two kinds",
        {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]},
        "more than 1 volume type",
    ),
    (
        "a port",
        {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 70000}]}]},
        "must be between 1 and 65535",
    ),
    (
        "a negative request",
        {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "-1"}}}]},
        "must be greater than or equal to 0",
    ),
    (
        "more than the limit",
        {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}}]},
        "must be less than or equal to cpu limit of 1500m",
    ),
    ("an unknown class", {"priorityClassName": "no"}, "no PriorityClass with name no was found"),
    ("a priority of one's own", {"priority": 7}, "the integer value of priority (7) must not be provided"),
]


@pytest.mark.parametrize(("spec", "text"), [row[1:] for row in WRONG_PODS], ids=[row[0] for row in WRONG_PODS])
def test_wrong_pods_are_refused_with_the_api_s_words(store: ObjectStore, spec: dict, text: str) -> None:
    with pytest.raises((errors.Invalid, errors.Forbidden)) as found:
        store.create("pods", {"metadata": {"name": "p"}, "spec": {**pod()["spec"], **spec}})
    assert text in found.value.message


def test_every_cause_is_listed(store: ObjectStore) -> None:
    with pytest.raises(errors.Invalid) as found:
        store.create("pods", pod(restartPolicy="x", nodeSelector={"a b": "c"}))
    assert found.value.message.startswith('Pod "p" is invalid: [')
    assert [cause["field"] for cause in found.value.details["causes"]] == ["spec.restartPolicy", "spec.nodeSelector"]


QUALITIES = [
    ("nothing asked", {}, "BestEffort"),
    ("some asked", {"requests": {"cpu": "1"}}, "Burstable"),
    ("all limited", {"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
    (
        "the same in other units",
        {"requests": {"cpu": "1000m", "memory": "1024Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
        "Guaranteed",
    ),
    (
        "less asked than limited",
        {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
        "Burstable",
    ),
]


@pytest.mark.parametrize(("resources", "expected"), [row[1:] for row in QUALITIES], ids=[row[0] for row in QUALITIES])
def test_quality_of_service(store: ObjectStore, resources: dict, expected: str) -> None:
    assert store.create("pods", pod({"resources": resources}))["status"]["qosClass"] == expected


def test_limits_become_requests(store: ObjectStore) -> None:
    made = store.create("pods", pod({"resources": {"limits": {"cpu": 2}, "requests": {"memory": "1Gi"}}}))
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"memory": "1Gi", "cpu": "2"}


def test_priority_comes_from_the_class(store: ObjectStore) -> None:
    store.create("priorityclasses", {"metadata": {"name": "high"}, "value": 100, "preemptionPolicy": "Never"})
    made = store.create("pods", pod(priorityClassName="high"))
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (100, "Never")
    store.create("priorityclasses", {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True})
    plain = {**pod(), "metadata": {"name": "q"}}
    assert store.create("pods", plain)["spec"]["priorityClassName"] == "usual"
    with pytest.raises(errors.Forbidden, match="already marked as globalDefault"):
        store.create("priorityclasses", {"metadata": {"name": "other"}, "value": 6, "globalDefault": True})
    assert (
        store.create("pods", {**pod(priorityClassName="system-node-critical"), "metadata": {"name": "s"}})["spec"]["priority"]
        == 2_000_001_000
    )


def test_a_gated_pod_says_so(store: ObjectStore) -> None:
    (condition,) = store.create("pods", pod(schedulingGates=[{"name": "g"}]))["status"]["conditions"]
    assert (condition["reason"], condition["status"]) == ("SchedulingGated", "False")
    assert condition["message"] == "Scheduling is blocked due to non-empty scheduling gates"


def test_label_keys_are_merged_into_selectors(store: ObjectStore) -> None:
    term = {**TERM, "matchLabelKeys": ["v", "absent"], "mismatchLabelKeys": ["app"]}
    spread = {**TERM, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["v"]}
    made = store.create("pods", pod(affinity={"podAffinity": {REQUIRED: [term]}}, topologySpreadConstraints=[spread]))
    merged = made["spec"]["affinity"]["podAffinity"][REQUIRED][0]["labelSelector"]["matchExpressions"]
    assert merged == [
        {"key": "v", "operator": "In", "values": ["2"]},
        {"key": "app", "operator": "NotIn", "values": ["web"]},
    ]
    constraint = made["spec"]["topologySpreadConstraints"][0]
    assert constraint["labelSelector"]["matchExpressions"] == [{"key": "v", "operator": "In", "values": ["2"]}]


CHANGES = [
    ("an image", {"containers": [{"name": "c", "image": "j"}]}, ""),
    ("a toleration more", {"tolerations": [{"key": "a", "operator": "Exists"}]}, ""),
    ("a deadline", {"activeDeadlineSeconds": 5}, ""),
    (
        "another container",
        {"containers": [{"name": "d", "image": "i"}]},
        "pod updates may not change fields other than",
    ),
    ("a node selector", {"nodeSelector": {"a": "b"}}, "pod updates may not change fields other than"),
    ("a node", {"nodeName": "n"}, "pod updates may not change fields other than"),
    ("a gate", {"schedulingGates": [{"name": "g"}]}, "only deletion is allowed, but found new scheduling gate"),
]


@pytest.mark.parametrize(("patch", "refusal"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_what_a_pod_may_still_change(store: ObjectStore, patch: dict, refusal: str) -> None:
    store.create("pods", pod())
    if not refusal:
        store.patch("pods", "p", {"spec": patch})
        return
    with pytest.raises(errors.Invalid) as found:
        store.patch("pods", "p", {"spec": patch})
    assert refusal in found.value.message


def test_gates_are_removed_one_by_one_and_rules_narrowed_meanwhile(store: ObjectStore) -> None:
    store.create("pods", pod(schedulingGates=[{"name": "a"}, {"name": "b"}]))
    store.patch("pods", "p", {"spec": {"nodeSelector": {"disk": "ssd"}}})
    store.patch("pods", "p", {"spec": {"schedulingGates": [{"name": "a", "$patch": "delete"}]}})
    left = store.patch("pods", "p", {"spec": {"schedulingGates": [{"name": "b", "$patch": "delete"}]}})
    assert left["spec"]["schedulingGates"] == []


WRONG_OTHERS: list[tuple[str, str, dict, str]] = [
    (
        "a budget with both bounds",
        "poddisruptionbudgets",
        {"spec": {"minAvailable": 1, "maxUnavailable": 1}},
        "cannot be both set",
    ),
    (
        "a budget of nonsense",
        "poddisruptionbudgets",
        {"spec": {"minAvailable": "x"}},
        "a valid percent string must be",
    ),
    (
        "a deployment without selector",
        "deployments",
        {"spec": {"template": {"spec": pod()["spec"]}}},
        "spec.selector: Required value",
    ),
    (
        "a selector that misses",
        "deployments",
        {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": pod()["spec"]}}},
        "`selector` does not match template `labels`",
    ),
    (
        "a job that restarts",
        "jobs",
        {"spec": {"template": {"spec": pod()["spec"]}}},
        "spec.template.spec.restartPolicy: Required value: valid values",
    ),
    (
        "a taint without effect",
        "nodes",
        {"spec": {"taints": [{"key": "a"}]}},
        "metadata.taints[0].effect: Required value",
    ),
    ("a taint twice", "nodes", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}}, "Duplicate value"),
    ("a claim of nothing", "persistentvolumeclaims", {"spec": {}}, "at least 1 access mode is required"),
    ("a class without provisioner", "storageclasses", {}, "provisioner: Required value"),
    ("a lease of no time", "leases", {"spec": {"leaseDurationSeconds": 0}}, "must be greater than 0"),
    (
        "a priority too high",
        "priorityclasses",
        {"value": 2_000_000_000},
        "maximum allowed value of a user defined priority",
    ),
    ("a bad label", "nodes", {"metadata": {"labels": {"a": "-"}}}, "metadata.labels: Invalid value"),
    (
        "an owner without a kind",
        "nodes",
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "name": "x", "uid": "u"}]}},
        'metadata.ownerReferences.kind: Invalid value: "": must not be empty',
    ),
]


@pytest.mark.parametrize(("kind", "body", "text"), [row[1:] for row in WRONG_OTHERS], ids=[row[0] for row in WRONG_OTHERS])
def test_other_kinds_are_judged_too(store: ObjectStore, kind: str, body: dict, text: str) -> None:
    with pytest.raises(errors.Invalid) as found:
        store.create(kind, {**body, "metadata": {"name": "x", **body.get("metadata", {})}})
    assert text in found.value.message


def test_immutable_fields_stay(store: ObjectStore) -> None:
    store.create("priorityclasses", {"metadata": {"name": "c"}, "value": 5})
    with pytest.raises(errors.Invalid, match="may not be changed in an update"):
        store.patch("priorityclasses", "c", {"value": 6})
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    store.create("persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": claim})
    with pytest.raises(errors.Invalid, match="spec is immutable after creation"):
        store.patch("persistentvolumeclaims", "c", {"spec": {"accessModes": ["ReadWriteMany"]}})


def test_a_default_storage_class_is_filled_in(store: ObjectStore) -> None:
    note = {"storageclass.kubernetes.io/is-default-class": "true"}
    store.create("storageclasses", {"metadata": {"name": "std", "annotations": note}, "provisioner": "x"})
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = store.create("persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": claim})
    assert made["spec"]["storageClassName"] == "std"


def test_a_namespace_on_its_way_out_takes_nothing_in(store: ObjectStore) -> None:
    store.create("namespaces", {"metadata": {"name": "team"}})
    store.delete("namespaces", "team")
    with pytest.raises(errors.Forbidden, match="because it is being terminated"):
        store.create("pods", pod(), "team")
    with pytest.raises(errors.Forbidden, match="this namespace may not be deleted"):
        store.delete("namespaces", "kube-system")
