"""The default selector of PodTopologySpread: the pods that share services or the controller with a pod."""

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
    """The selectors of services by one of their labels, so that a pod is compared only with services that may select it.

    A service with the selector app=web, tier=front is found under (namespace, app, web). Services without a selector are left
    out.
    """

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
        # A service may have several labels in its selector; one is enough to find it, so it is kept under the first by
        # name. Pods are looked up under each of their labels.
        def place(service: Service) -> tuple[str, str, str]:
            assert service.spec.selector
            return service.metadata.namespace, *min(service.spec.selector.items())

        changes = self._reader.changed(self._objects.log(Service))
        if changes is None:
            self._selectors.clear()
            changes = [ObjectChange(None, service) for service in self._objects.all(Service)]
        for old, new in changes:
            if old is not None and old.spec.selector:
                where = place(old)
                del self._selectors[where][old.metadata.name]
                if not self._selectors[where]:
                    del self._selectors[where]
            if new is not None and new.spec.selector:
                self._selectors.setdefault(place(new), {})[new.metadata.name] = new.spec.selector


def default_selector(pod: PodView, objects: Objects) -> Selector:
    """Return the selector of the pods that belong with a pod; EVERYTHING if no service or controller selects it.

    The selectors of all its services are merged by key, and that of its controller is added:
    services app=web and tier=front, ReplicaSet with pod-template-hash=1  ->  app=web, tier=front, pod-template-hash=1
    """
    # Selectors of services can be merged, because they all match the pod: they have no key with two values. A
    # ReplicationController's map is merged into them, and wins where the pod was relabelled since. The selectors of ReplicaSets
    # and StatefulSets may have expressions, so they are added as further requirements.
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
    """Return the selector of a controller; EVERYTHING if it does not exist or its selector is invalid or selects nothing."""
    if controller is None:
        return EVERYTHING
    try:
        selector = compile_selector(controller.spec.selector)
    except SelectorError:
        return EVERYTHING
    return EVERYTHING if selector.is_nothing else selector
