"""Limits, quotas, runtime classes and service accounts decide about new pods as on a cluster; ordinary kinds are kept."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched import errors
from kubesched.embedded import ObjectStore
from kubesched.embedded.clock import RealClock
from kubesched.embedded.printing.tables import encode_table
from kubesched.embedded.verbs.reading import Listing
from kubesched.errors import ApiError


def pod(name: str = "p", requests: dict | None = None, limits: dict | None = None, **spec: Any) -> dict:
    amounts = {side: given for side, given in (("requests", requests), ("limits", limits)) if given}
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i", "resources": amounts}], **spec}}


def refusal(store: ObjectStore, obj: dict, resource: str = "pods") -> str:
    with pytest.raises(ApiError) as error:
        store.create(resource, obj)
    return error.value.message


def limit(store: ObjectStore, **item: Any) -> None:
    store.create("limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", **item}]}})


# --- LimitRange


def test_a_limit_range_gives_defaults_and_says_so(store: ObjectStore) -> None:
    limit(store, default={"cpu": "1"}, defaultRequest={"cpu": "100m", "memory": "64Mi"}, max={"memory": "1Gi"})
    made = store.create("pods", pod(requests={"cpu": "200m"}))
    resources = made["spec"]["containers"][0]["resources"]
    assert resources == {"requests": {"cpu": "200m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    text = "LimitRanger plugin set: memory request for container c; cpu, memory limit for container c"
    assert made["metadata"]["annotations"] == {"kubernetes.io/limit-ranger": text}
    assert made["status"]["qosClass"] == "Burstable"


@pytest.mark.parametrize(
    ("item", "asked", "why"),
    [
        ({"max": {"cpu": "1"}}, pod(limits={"cpu": "2"}), "maximum cpu usage per Container is 1, but limit is 2"),
        ({"min": {"cpu": "1"}}, pod(requests={"cpu": "1m"}), "minimum cpu usage per Container is 1, but request is 1m"),
        (
            {"type": "Pod", "max": {"memory": "1Gi"}},
            pod(requests={"memory": "1Gi"}),
            "maximum memory usage per Pod is 1Gi.  No limit is specified",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            pod(requests={"cpu": "1"}, limits={"cpu": "3"}),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            {"type": "Pod", "min": {"cpu": "1", "memory": "1Gi"}},
            pod(requests={"cpu": "1m"}),
            "[minimum cpu usage per Pod is 1, but request is 1m, "
            "minimum memory usage per Pod is 1Gi.  No request is specified]",
        ),
    ],
    ids=["max", "min", "pod without limit", "ratio", "two at once"],
)
def test_a_pod_out_of_bounds_is_refused(store: ObjectStore, item: dict, asked: dict, why: str) -> None:
    limit(store, **item)
    assert refusal(store, asked) == f'pods "p" is forbidden: {why}'


def test_a_claim_out_of_bounds_is_refused(store: ObjectStore) -> None:
    limit(store, type="PersistentVolumeClaim", max={"storage": "1Gi"})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    why = "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"
    body = {"metadata": {"name": "c"}, "spec": spec}
    assert refusal(store, body, "persistentvolumeclaims") == f'persistentvolumeclaims "c" is forbidden: {why}'


def test_a_limit_range_that_contradicts_itself_is_refused(store: ObjectStore) -> None:
    body = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]}}
    assert 'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1' in refusal(
        store, body, "limitranges"
    )


# --- ResourceQuota


def quota(store: ObjectStore, hard: dict[str, str], **spec: Any) -> str:
    return str(store.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}})["kind"])


def test_a_quota_is_exceeded_in_the_words_of_the_plugin(store: ObjectStore) -> None:
    quota(store, {"pods": "2", "requests.cpu": "1", "limits.memory": "2Gi"})
    asked = {"requests": {"cpu": "600m"}, "limits": {"memory": "1Gi"}}
    store.create("pods", pod("a", **asked))
    why = "exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1"
    assert refusal(store, pod("b", **asked)) == f'pods "b" is forbidden: {why}'
    assert store.context.quotas.used("default/q") == {"pods": "1", "requests.cpu": "600m", "limits.memory": "1Gi"}
    store.delete("pods", "a")
    store.create("pods", pod("b", **asked))


def test_a_quota_wants_to_know(store: ObjectStore) -> None:
    quota(store, {"requests.cpu": "1", "limits.memory": "1Gi"})
    why = "failed quota: q: must specify limits.memory for: c; requests.cpu for: c"
    assert refusal(store, pod()) == f'pods "p" is forbidden: {why}'


@pytest.mark.parametrize(
    ("scope", "counted"),
    [
        ({"scopes": ["BestEffort"]}, 1),
        ({"scopes": ["NotBestEffort"]}, 0),
        ({"scopes": ["Terminating"]}, 0),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["x"]}]}}, 0),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "NotTerminating", "operator": "Exists"}]}}, 1),
    ],
)
def test_a_quota_counts_what_is_in_its_scope(store: ObjectStore, scope: dict, counted: int) -> None:
    quota(store, {"pods": "5"}, **scope)
    store.create("pods", pod())
    assert store.context.quotas.used("default/q") == {"pods": str(counted)}


def test_quotas_count_what_was_there_before_them_and_every_kind(store: ObjectStore) -> None:
    store.create("configmaps", {"metadata": {"name": "c"}})
    ports = [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
    store.create("services", {"metadata": {"name": "s"}, "spec": {"type": "LoadBalancer", "ports": ports}})
    hard = {"count/configmaps": "1", "services.loadbalancers": "3", "services.nodeports": "9", "count/deployments.apps": "1"}
    quota(store, hard)
    used = {"count/configmaps": "1", "services.loadbalancers": "1", "services.nodeports": "2", "count/deployments.apps": "0"}
    assert store.context.quotas.used("default/q") == used
    assert "exceeded quota: q, requested: count/configmaps=1" in refusal(store, {"metadata": {"name": "d"}}, "configmaps")


def test_a_pod_that_has_ended_gives_its_share_back(store: ObjectStore) -> None:
    quota(store, {"pods": "1"})
    made = store.create("pods", pod())
    store.update("pods", {**made, "status": {"phase": "Succeeded"}}, subresource="status")
    assert store.context.quotas.used("default/q") == {"pods": "0"}
    store.create("pods", pod("next"))


# --- RuntimeClass and ServiceAccount


def test_a_runtime_class_brings_overhead_nodes_and_tolerations(store: ObjectStore) -> None:
    toleration = {"key": "gvisor", "operator": "Exists"}
    scheduling = {"nodeSelector": {"runtime": "gvisor"}, "tolerations": [toleration]}
    body = {"metadata": {"name": "g"}, "handler": "runsc", "overhead": {"podFixed": {"cpu": "250m"}}}
    store.create("runtimeclasses", {**body, "scheduling": scheduling})
    made = store.create("pods", pod(runtimeClassName="g", nodeSelector={"disk": "ssd"}))["spec"]
    assert (made["overhead"], made["nodeSelector"]) == ({"cpu": "250m"}, {"disk": "ssd", "runtime": "gvisor"})
    assert toleration in made["tolerations"]
    why = "conflict: runtimeClass.scheduling.nodeSelector[runtime] = gvisor; pod.spec.nodeSelector[runtime] = other"
    assert why in refusal(store, pod("q", runtimeClassName="g", nodeSelector={"runtime": "other"}))
    why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    assert why in refusal(store, pod("q", runtimeClassName="g", overhead={"cpu": "1"}))


def test_a_pod_runs_as_an_account_where_there_are_accounts(store: ObjectStore) -> None:
    assert "serviceAccountName" not in store.create("pods", pod())["spec"]
    store.create("serviceaccounts", {"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "s"}]})
    made = store.create("pods", pod("q"))["spec"]
    assert (made["serviceAccountName"], made["imagePullSecrets"]) == ("default", [{"name": "s"}])
    why = 'error looking up service account default/robot: serviceaccount "robot" not found'
    assert why in refusal(store, pod("r", serviceAccountName="robot"))


# --- priorities, storage classes, namespaces


def test_priority_comes_from_the_class(store: ObjectStore) -> None:
    store.create("priorityclasses", {"metadata": {"name": "high"}, "value": 100, "preemptionPolicy": "Never"})
    made = store.create("pods", pod("high", priorityClassName="high"))
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (100, "Never")
    store.create("priorityclasses", {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True})
    assert store.create("pods", pod())["spec"]["priorityClassName"] == "usual"
    with pytest.raises(errors.Forbidden, match="already marked as globalDefault"):
        store.create("priorityclasses", {"metadata": {"name": "other"}, "value": 6, "globalDefault": True})
    system = store.create("pods", pod("s", priorityClassName="system-node-critical"))
    assert system["spec"]["priority"] == 2_000_001_000


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


# --- kinds that charts bring

BACKEND = {"service": {"name": "web", "port": {"number": 80}}}
HOOK = {"name": "a.b.c", "clientConfig": {"url": "https://x"}, "admissionReviewVersions": ["v1"], "sideEffects": "None"}
JOB = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
KINDS: list[tuple[str, dict, list[str]]] = [
    ("cronjobs", {"spec": {"schedule": "@hourly", "jobTemplate": {"spec": JOB}}}, ["@hourly", "<none>", "False"]),
    ("horizontalpodautoscalers", {"spec": {"scaleTargetRef": TARGET, "maxReplicas": 3}}, ["cpu: <unknown>/80%", "1"]),
    ("limitranges", {"spec": {"limits": []}}, []),
    ("resourcequotas", {"spec": {"hard": {"pods": "1"}}}, []),
    ("ingresses", {"spec": {"rules": [{"host": "h"}], "tls": [{}], "defaultBackend": BACKEND}}, ["h", "80, 443"]),
    ("ingressclasses", {"spec": {"controller": "x/y"}}, ["x/y"]),
    ("networkpolicies", {"spec": {"podSelector": {"matchLabels": {"a": "b"}}, "egress": [{}]}}, ["a=b"]),
    ("runtimeclasses", {"handler": "runsc"}, ["runsc"]),
    ("validatingwebhookconfigurations", {"webhooks": [HOOK]}, []),
    ("mutatingwebhookconfigurations", {"webhooks": [HOOK]}, []),
    ("validatingadmissionpolicies", {"spec": {"validations": [{"expression": "true"}]}}, ["<unset>"]),
    ("validatingadmissionpolicybindings", {"spec": {"policyName": "p"}}, ["p"]),
    ("mutatingadmissionpolicies", {"spec": {"mutations": []}}, []),
    ("apiservices", {"spec": {"groupPriorityMinimum": 1, "versionPriority": 1}}, ["Local"]),
    ("rolebindings", {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]}, ["Role/r", "u"]),
    ("endpointslices", {"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"]}]}, ["IPv4", "1.2.3.4"]),
]


@pytest.mark.parametrize(("resource", "body", "cells"), KINDS, ids=[one[0] for one in KINDS])
def test_a_kind_is_kept_listed_and_applied_again_without_a_change(
    store: ObjectStore, resource: str, body: dict, cells: list[str]
) -> None:
    made = store.create(resource, {"metadata": {"name": "x"}, **body})
    listing: Listing = store.list(resource)
    table = encode_table(store.context.resource(resource), listing, RealClock().now(), "None").decode()
    for cell in ["x", *cells]:
        assert f'"{cell}"' in table
    again = store.patch(resource, "x", body)
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    store.delete(resource, "x")
    assert store.list(resource).items == []


@pytest.mark.parametrize(
    ("resource", "body", "why"),
    [
        ("cronjobs", {"spec": {"schedule": "soon", "jobTemplate": {"spec": JOB}}}, "spec.schedule: Invalid value"),
        ("cronjobs", {"spec": {"schedule": "TZ=UTC * * * * *", "jobTemplate": {"spec": JOB}}}, "cannot use TZ or CRON_TZ"),
        (
            "cronjobs",
            {"spec": {"schedule": "@daily", "timeZone": "Mars/North", "jobTemplate": {"spec": JOB}}},
            'spec.timeZone: Invalid value: "Mars/North": unknown time zone Mars/North',
        ),
        ("ingresses", {"spec": {}}, "either `defaultBackend` or `rules` must be specified"),
        (
            "ingresses",
            {"spec": {"rules": [{"http": {"paths": [{"path": "/", "backend": BACKEND}]}}]}},
            "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
        ),
        ("resourcequotas", {"spec": {"hard": {"apples": "1"}}}, "must be a standard resource for quota"),
        ("horizontalpodautoscalers", {"spec": {"scaleTargetRef": TARGET}}, "spec.maxReplicas: Required value"),
    ],
)
def test_a_kind_that_is_wrong_is_refused(store: ObjectStore, resource: str, body: dict, why: str) -> None:
    assert why in refusal(store, {"metadata": {"name": "x"}, **body}, resource)


def test_a_default_ingress_class_is_filled_in(store: ObjectStore) -> None:
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"}
    store.create("ingressclasses", {"metadata": {"name": "nginx", "annotations": annotations}, "spec": {"controller": "x/y"}})
    made = store.create("ingresses", {"metadata": {"name": "i"}, "spec": {"defaultBackend": BACKEND}})
    assert made["spec"]["ingressClassName"] == "nginx"
