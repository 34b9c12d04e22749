"""Which pods belong together, judged by the services and controllers that select them."""

from __future__ import annotations

from kubesched.api.apps import ReplicaSet, StatefulSet
from kubesched.api.core import ReplicationController, Service
from kubesched.api.matching import EVERYTHING, Selector, SelectorError, compile_selector, selector_from_map
from kubesched.cluster import Objects, PodView


def default_selector(pod: PodView, objects: Objects) -> Selector:
    """Return the selector of the pods that are a pod's siblings; Everything if nobody selects it.

    The selectors of all services that match the pod are merged key by key, then its controller's selector is added.
    """
    merged: dict[str, str] = {}
    for service in objects.named(Service, pod.namespace).values():
        wanted = service.spec.selector
        if wanted is not None and all(pod.labels.get(key) == value for key, value in wanted.items()):
            merged.update(wanted)
    owner = pod.pod.metadata.controller()
    extra: Selector = EVERYTHING
    if owner is not None:
        kind = (owner.api_version, owner.kind)
        if kind == ("v1", "ReplicationController"):
            controller = objects.get(ReplicationController, owner.name, pod.namespace)
            merged.update(controller.spec.selector or {} if controller is not None else {})
        elif kind == ("apps/v1", "ReplicaSet"):
            replica_set = objects.get(ReplicaSet, owner.name, pod.namespace)
            extra = _selector_of(replica_set)
        elif kind == ("apps/v1", "StatefulSet"):
            stateful_set = objects.get(StatefulSet, owner.name, pod.namespace)
            extra = _selector_of(stateful_set)
    if not merged and extra is EVERYTHING:
        return EVERYTHING
    return Selector((*selector_from_map(merged).requirements, *extra.requirements))


def _selector_of(controller: ReplicaSet | StatefulSet | None) -> Selector:
    """Return what a controller selects; one that is gone, or whose selector cannot be read, adds nothing."""
    if controller is None:
        return EVERYTHING
    try:
        selector = compile_selector(controller.spec.selector)
    except SelectorError:
        return EVERYTHING
    return EVERYTHING if selector.is_nothing else selector
