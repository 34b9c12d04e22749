"""Made-up usage: what `kubectl top` is told about nodes and running pods."""

from __future__ import annotations

import pytest

from kubesched.embedded import ManualClock, ObjectStore
from kubesched.embedded.admission.amounts import amount
from kubesched.embedded.printing.usage_metrics import get_metrics, list_metrics
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.verbs.reading import ListQuery
from kubesched.errors import NotFound


@pytest.fixture
def store() -> ObjectStore:
    made = ObjectStore(ManualClock(), seed=1)
    made.create("nodes", {"metadata": {"name": "n"}})
    for name, app, phase in (("a", "web", "Running"), ("b", "db", "Running"), ("c", "web", "Pending")):
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
        pod = made.create(
            "pods",
            {"metadata": {"name": name, "labels": {"app": app}}, "spec": {"nodeName": "n", "containers": [container]}},
        )
        made.update("pods", {**pod, "status": {"phase": phase}}, subresource="status")
    return made


def listed(store: ObjectStore, plural: str, **query: str) -> list[Object]:
    return list_metrics(store.context, store.context.resource(f"{plural}.metrics.k8s.io"), ListQuery(**query)).items


def test_running_pods_use_a_share_of_what_they_ask_for(store: ObjectStore) -> None:
    pods = listed(store, "pods", namespace="default")
    assert [one["metadata"]["name"] for one in pods] == ["a", "b"]
    for pod in pods:
        (container,) = pod["containers"]
        assert 0 < amount(container["usage"]["cpu"]) < amount("1")
        assert 0 < amount(container["usage"]["memory"]) < amount("1Gi")
    assert pods == listed(store, "pods", namespace="default"), "the same for everybody who asks"
    assert [one["metadata"]["name"] for one in listed(store, "pods", label_selector="app=db")] == ["b"]


def test_a_node_uses_what_its_pods_use_and_something_for_itself(store: ObjectStore) -> None:
    (node,) = listed(store, "nodes")
    used = sum(amount(pod["containers"][0]["usage"]["cpu"]) for pod in listed(store, "pods"))
    assert amount(node["usage"]["cpu"]) == used + amount("100m")


def test_a_pod_that_does_not_run_has_no_metrics(store: ObjectStore) -> None:
    resource = store.context.resource("pods.metrics.k8s.io")
    assert get_metrics(store.context, resource, "default", "a").obj["kind"] == "PodMetrics"
    for name in ("c", "nobody"):
        with pytest.raises(NotFound, match=f'pods.metrics.k8s.io "{name}" not found'):
            get_metrics(store.context, resource, "default", name)
