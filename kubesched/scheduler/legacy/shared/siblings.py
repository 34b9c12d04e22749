"""The pods that belong with a pod: those that the same services and controllers select.

Unlike today, the owner reference does not matter: all controllers of the namespace that select the pod count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubesched.kube.api import (
    ReplicaSet,
    ReplicationController,
    Selector,
    SelectorError,
    Service,
    StatefulSet,
    compile_selector,
    selector_from_map,
)
from kubesched.scheduler.cluster import Ints, Objects, PodView, Snapshot


def services_of(pod: PodView, objects: Objects) -> list[Service]:
    """Return the services that select a pod, without services that have no selector."""
    return [
        service
        for service in objects.named(Service, pod.namespace).values()
        if service.spec.selector is not None and selector_from_map(service.spec.selector).matches(pod.labels)
    ]


def service_selectors(pod: PodView, objects: Objects) -> list[Selector]:
    """Return the selectors of a pod's services."""
    return [selector_from_map(service.spec.selector or {}) for service in services_of(pod, objects)]


def owner_selectors(pod: PodView, objects: Objects) -> list[Selector]:
    """Return the selectors of the services and controllers that select a pod."""
    if not pod.labels:
        return service_selectors(pod, objects)
    controllers = [
        selector_from_map(controller.spec.selector or {})
        for controller in objects.named(ReplicationController, pod.namespace).values()
    ]
    owners: list[ReplicaSet | StatefulSet] = [
        *objects.named(ReplicaSet, pod.namespace).values(),
        *objects.named(StatefulSet, pod.namespace).values(),
    ]
    for owner in owners:
        try:
            controllers.append(compile_selector(owner.spec.selector))
        except SelectorError:
            continue
    return service_selectors(pod, objects) + [
        selector for selector in controllers if not selector.is_everything and selector.matches(pod.labels)
    ]


def all_of(selectors: Sequence[Selector]) -> list[Selector]:
    """Return one selector with the requirements of all; none if they have no requirement."""
    requirements = tuple(dict.fromkeys(r for selector in selectors for r in selector.requirements))
    return [Selector(requirements)] if requirements else []


def count_matching(selectors: Sequence[Selector], namespace: str, nodes: Snapshot) -> Ints:
    """Return how many pods on each node, of a namespace and not terminating, match one of the selectors."""
    counts = np.zeros(nodes.total, dtype=np.int64)
    counted = np.zeros(len(nodes.templates.label_classes), dtype=np.bool_)
    for other in nodes.slots.by_namespace.get(namespace, ()):
        counted[other.number] = not other.terminating and any(selector.matches(other.labels) for selector in selectors)
    if counted.any():
        rows = nodes.pod_rows()[counted[nodes.pod_classes()]]
        counts += np.bincount(rows, minlength=nodes.total)
    return counts if nodes.rows is None else counts[nodes.rows]
