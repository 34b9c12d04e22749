"""Which pods belong together, judged by the services and controllers that select them."""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.kube.api import (
    EVERYTHING,
    ReplicaSet,
    ReplicationController,
    Selector,
    SelectorError,
    Service,
    StatefulSet,
    compile_selector,
    selector_from_map,
)
from kubesched.scheduler.cluster import ObjectChange, Objects, PodView, Reader


class ServicesByLabel:
    """The selectors of services by one label that they ask for, so that a pod is compared only with those it may belong to. One
    that asks for nothing selects every pod and says nothing about it, so it is left out."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._reader: Reader[ObjectChange] = Reader()
        self._selectors: dict[tuple[str, str, str], dict[str, Mapping[str, str]]] = {}
        """By namespace, label and value, and then by the service's name."""

    def selecting(self, pod: PodView) -> list[Mapping[str, str]]:
        """Return the selectors of the services that select a pod."""
        self._follow()
        labels, namespace, found = pod.labels, pod.namespace, list[Mapping[str, str]]()
        for key, value in labels.items():
            candidates = self._selectors.get((namespace, key, value))
            if candidates is not None:
                found += (wanted for wanted in candidates.values() if wanted.items() <= labels.items())
        return found

    def _follow(self) -> None:
        changes = self._reader.changed(self._objects.log(Service))
        if changes is None:
            self._selectors.clear()
            changes = [ObjectChange(None, service) for service in self._objects.all(Service)]
        for old, new in changes:
            if old is not None and old.spec.selector:
                place = _place(old)
                del self._selectors[place][old.metadata.name]
                if not self._selectors[place]:
                    del self._selectors[place]
            if new is not None and new.spec.selector:
                self._selectors.setdefault(_place(new), {})[new.metadata.name] = new.spec.selector


def _place(service: Service) -> tuple[str, str, str]:
    assert service.spec.selector
    return service.metadata.namespace, *min(service.spec.selector.items())


def default_selector(pod: PodView, objects: Objects) -> Selector:
    """Return the selector of the pods that are a pod's siblings; Everything if nobody selects it.

    The selectors of all services that match the pod are merged key by key, then its controller's selector is added.
    """
    merged: dict[str, str] = {}
    for wanted in objects.shared(ServicesByLabel).selecting(pod):
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
