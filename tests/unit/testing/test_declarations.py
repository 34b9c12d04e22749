"""`check_plugin` names what the answers of a plugin are made of that it does not declare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kubesched.kube.api.core import Namespace, Service
from kubesched.kube.api.resource import DeviceClass
from kubesched.scheduler.framework import Input, Plugin, PodView, Snapshot
from kubesched.testing import check_plugin

Score = Callable[[PodView, Snapshot, Any], Any]


def each(nodes: Snapshot, value: int) -> Any:
    return np.full(nodes.n, value, dtype=np.int64)


def neighbours(nodes: Snapshot) -> Any:
    zones = nodes.everything().codes("topology.kubernetes.io/zone")
    return np.array([int((zones == code).sum()) for code in nodes.codes("topology.kubernetes.io/zone")], dtype=np.int64)


LACKS: dict[str, tuple[Score, tuple[Any, ...], str, tuple[Any, ...]]] = {
    "labels": (lambda pod, nodes, _: each(nodes, len(pod.labels)), (), "POD_TEMPLATE", (Input.POD_TEMPLATE,)),
    "volumes": (lambda pod, nodes, _: each(nodes, len(pod.pod.spec.volumes)), (), "POD_VOLUMES", (Input.POD_VOLUMES,)),
    "device claims": (
        lambda pod, nodes, _: each(nodes, len(pod.pod.spec.resource_claims)),
        (),
        "POD_RESOURCE_CLAIMS",
        (Input.POD_RESOURCE_CLAIMS,),
    ),
    "its node's name": (lambda pod, nodes, _: each(nodes, len(pod.node_name)), (), "POD_NODE_NAME", (Input.POD_NODE_NAME,)),
    "device classes": (lambda _, nodes, it: each(nodes, it.count(DeviceClass)), (), "DeviceClass", (DeviceClass,)),
    "services": (lambda _, nodes, it: each(nodes, it.count(Service)), (Input.NODE,), "Service", (Service,)),
    "namespaces' labels": (
        lambda _, nodes, it: each(nodes, sum(len(each.metadata.labels or ()) for each in it.objects.all(Namespace))),
        (),
        "Namespace",
        (Namespace,),
    ),
    "the node": (lambda _, nodes, it: nodes.allowed_pods % 100, (Input.PODS_ON_NODE,), "NODE", (Input.NODE,)),
    "its pods": (lambda _, nodes, it: nodes.pod_count % 100, (Input.NODE,), "PODS_ON_NODE", (Input.PODS_ON_NODE,)),
    "other nodes": (lambda _, nodes, it: neighbours(nodes), (Input.NODE,), "ALL_NODES", (Input.NODE, Input.ALL_NODES)),
    "pods on other nodes": (
        lambda _, nodes, it: each(nodes, int(nodes.everything().pod_count.sum()) % 100),
        (Input.NODE, Input.PODS_ON_NODE),
        "PODS_ON_NODE",
        (),
    ),
}


def plugin_of(score_of: Score, declared: tuple[Any, ...] | None) -> type[Plugin]:
    class Checked(Plugin):
        depends_on = declared

        @property
        def objects(self) -> Any:
            return self.handle.objects

        def count(self, kind: Any) -> int:
            return self.handle.objects.count(kind)

        def score(self, pod: PodView, nodes: Snapshot, state: Any) -> Any:
            return score_of(pod, nodes, self)

    return Checked


@pytest.mark.parametrize(("score", "declared", "missing", "right"), LACKS.values(), ids=list(LACKS))
def test_what_is_not_declared_is_found(score: Score, declared: tuple[Any, ...], missing: str, right: tuple[Any, ...]) -> None:
    with pytest.raises(AssertionError, match=f"depends_on lacks {missing}, but"):
        check_plugin(plugin_of(score, declared), rounds=8)
    check_plugin(plugin_of(score, None), rounds=2)
    if right:
        check_plugin(plugin_of(score, right), rounds=4)
