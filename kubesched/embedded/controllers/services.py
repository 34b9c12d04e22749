"""The controllers of Services: their endpoints, as EndpointSlices and as the older Endpoints, and load balancers.

In: Services with a selector, and their pods. Out: for each Service, slices of at most 100 endpoints, one group of slices for
each set of ports that its pods have; and one Endpoints object of at most 1,000 addresses. A slice that is right is not
written, so a pod that comes or goes changes one slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubesched.embedded.controllers.shared.context import ControllerContext
from kubesched.embedded.controllers.shared.controller import Controller
from kubesched.embedded.controllers.shared.pods import MANY, is_finished, is_ready, owned_by, split
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.storage.selectors import selects
from kubesched.embedded.storage.watch import Change
from kubesched.errors import NotFound
from kubesched.kube.values import ZONE

MAX_PER_SLICE = 100  # as in kube-controller-manager
MAX_PER_ENDPOINTS = 1_000  # likewise; an annotation says that the rest was cut off
SERVICE_NAME = "kubernetes.io/service-name"
_MANAGED_SLICE = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
_MANAGED_ENDPOINTS = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
_TRUNCATED = {"endpoints.kubernetes.io/over-capacity": "truncated"}
_HEADLESS = {"service.kubernetes.io/headless": ""}
_SLICES = "endpointslices.discovery.k8s.io"

Ports = tuple[tuple[str, str, int, str], ...]  # name, protocol, number, appProtocol


class ServiceEndpoints(Controller):
    """Keeps the EndpointSlices and Endpoints of Services."""

    resource_name = "services"
    component = "endpoint-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._slices = self._store.context.resource(_SLICES)
        self._n_pods: dict[str, int] = {}  # by service

    def start(self) -> None:
        super().start()
        self._store.listen("pods", self._pod_changed)
        self._store.listen(self._slices, self._slice_changed)

    def changed(self, change: Change) -> None:
        """Queue a service, also a deleted one: its Endpoints have no owner and must be removed."""
        self._work.add(change.key)

    def _pod_changed(self, change: Change) -> None:
        """Queue the services that select a pod, if anything that they show of it has changed."""
        old, new = (None if entry is None else entry.obj for entry in (change.old, change.new))
        if old is not None and new is not None and _seen_of(old) == _seen_of(new):
            return
        for service in self._store.context.table(self._resource).in_namespace(change.namespace):
            if any(pod is not None and _selects(service.obj, pod) for pod in (old, new)):
                n_pods = self._n_pods.get(service.key, 0)
                self._work.add(service.key, 0.0 if n_pods < MANY else min(1.0, n_pods / 5_000))

    def _slice_changed(self, change: Change) -> None:
        """Queue the service of a slice that somebody deleted."""
        if change.new is None and change.old is not None:
            name = (change.old.obj["metadata"].get("labels") or {}).get(SERVICE_NAME)
            if name:
                self._work.add(f"{change.namespace}/{name}")

    def _sync_key(self, key: str) -> float | None:
        try:
            return super()._sync_key(key)
        except NotFound:
            self._n_pods.pop(key, None)
            self._drop_endpoints(*split(key))  # slices have an owner, and go with it
            return None

    def sync(self, obj: Object) -> float | None:
        service, metadata = obj, obj["metadata"]
        if not service["spec"].get("selector") or service["spec"]["type"] == "ExternalName":
            return None
        pods = [
            pod
            for pod in self._pods.in_namespace(metadata["namespace"])
            if _selects(service, pod) and not is_finished(pod) and (pod.get("status") or {}).get("podIP")
        ]
        self._n_pods[f"{metadata['namespace']}/{metadata['name']}"] = len(pods)
        self._write_slices(service, pods)
        self._write_endpoints(service, pods)
        return None

    # EndpointSlices

    def _write_slices(self, service: Object, pods: list[Object]) -> None:
        """Bring the slices of a service up to date."""
        wanted: dict[Ports, dict[str, Object]] = {}
        for pod in pods:
            wanted.setdefault(_ports(service, pod), {})[pod["metadata"]["uid"]] = self._endpoint(service, pod)
        held: dict[Ports, list[Object]] = {}
        for one in self._slices_of(service):
            held.setdefault(_ports_of(one), []).append(one)
        if not wanted:  # a service without pods has one slice that says so
            wanted[()] = {}
        labels = {**_labels(service), SERVICE_NAME: service["metadata"]["name"], **_MANAGED_SLICE}
        for ports, endpoints in wanted.items():
            before = held.pop(ports, [])
            for slice_, content in _shared_out(before, endpoints):
                self._write_slice(service, labels, ports, slice_, content)
        for outdated in held.values():
            for old in outdated:
                self._store.delete_if_there(self._slices, old)

    def _write_slice(
        self, service: Object, labels: dict[str, str], ports: Ports, held: Object | None, content: list[Object]
    ) -> None:
        """Create, change or delete one slice."""
        namespace = service["metadata"]["namespace"]
        if held is None:
            metadata = {
                "generateName": f"{service['metadata']['name']}-",
                "namespace": namespace,
                "labels": labels,
                "ownerReferences": [owned_by(service)],
            }
            body = {"metadata": metadata, "addressType": "IPv4", "ports": _written(ports), "endpoints": content}
            self._store.create(self._slices, body)
        elif not content and ports:
            self._store.delete_if_there(self._slices, held)
        elif (held.get("endpoints") or []) != content or held["metadata"].get("labels") != labels:
            metadata = {**held["metadata"], "labels": labels}
            self._store.update(self._slices, {**held, "metadata": metadata, "endpoints": content})

    def _slices_of(self, service: Object) -> Iterator[Object]:
        mine = (_MANAGED_SLICE | {SERVICE_NAME: service["metadata"]["name"]}).items()
        for entry in self._store.context.table(self._slices).in_namespace(service["metadata"]["namespace"]):
            if mine <= (entry.obj["metadata"].get("labels") or {}).items():
                yield entry.obj

    def _endpoint(self, service: Object, pod: Object) -> Object:
        """Return a pod as an endpoint of a slice."""
        metadata, spec = pod["metadata"], pod["spec"]
        serving, terminating = is_ready(pod), "deletionTimestamp" in metadata
        ready = bool(service["spec"].get("publishNotReadyAddresses")) or (serving and not terminating)
        endpoint: Object = {
            "addresses": [pod["status"]["podIP"]],
            "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
            "targetRef": _reference(pod),
        }
        if spec.get("hostname") and spec.get("subdomain") == service["metadata"]["name"]:
            endpoint["hostname"] = spec["hostname"]
        if spec.get("nodeName"):
            endpoint["nodeName"] = spec["nodeName"]
            node = self._store.find("nodes", spec["nodeName"])
            zone = (node["metadata"].get("labels") or {}).get(ZONE) if node is not None else None
            if zone:
                endpoint["zone"] = zone
        return endpoint

    # Endpoints

    def _write_endpoints(self, service: Object, pods: Iterable[Object]) -> None:
        """Bring the Endpoints object of a service up to date."""
        there = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        subsets: dict[Ports, Object] = {}
        not_ready_too = bool(service["spec"].get("publishNotReadyAddresses"))
        for pod in there[:MAX_PER_ENDPOINTS]:
            ports = _ports(service, pod)
            subset = subsets.setdefault(ports, {})
            group = "addresses" if not_ready_too or is_ready(pod) else "notReadyAddresses"
            address = {"ip": pod["status"]["podIP"], "nodeName": pod["spec"].get("nodeName"), "targetRef": _reference(pod)}
            subset.setdefault(group, []).append({key: value for key, value in address.items() if value})
        written = [{**subset, **({"ports": _written(ports)} if ports else {})} for ports, subset in subsets.items()]
        namespace, name = service["metadata"]["namespace"], service["metadata"]["name"]
        labels = {**_labels(service), **_MANAGED_ENDPOINTS}
        annotations = _TRUNCATED if len(there) > MAX_PER_ENDPOINTS else {}
        before = self._store.find("endpoints", name, namespace)
        metadata: Object = {"name": name, "namespace": namespace, "labels": labels}
        if annotations:
            metadata["annotations"] = annotations
        body: Object = {"metadata": metadata, **({"subsets": written} if written else {})}
        if before is None:
            self._store.create("endpoints", body)
            return
        held = before["metadata"]
        if (before.get("subsets") or [], held.get("labels"), held.get("annotations") or {}) != (written, labels, annotations):
            kept = {key: value for key, value in held.items() if key != "annotations"}
            self._store.update("endpoints", {**before, "subsets": written, "metadata": {**kept, **metadata}})

    def _drop_endpoints(self, namespace: str, name: str) -> None:
        held = self._store.find("endpoints", name, namespace)
        if held is not None and _MANAGED_ENDPOINTS.items() <= (held["metadata"].get("labels") or {}).items():
            self._store.delete("endpoints", name, namespace)


class LoadBalancers(Controller):
    """Gives Services of type LoadBalancer an address of 172.18.0.0/16, unless a loadBalancerClass names another controller."""

    resource_name = "services"
    component = "service-controller"
    syncs_deleted = True

    def sync(self, obj: Object) -> float | None:
        spec, status = obj["spec"], obj.get("status") or {}
        given = (status.get("loadBalancer") or {}).get("ingress")
        wanted = spec["type"] == "LoadBalancer" and "deletionTimestamp" not in obj["metadata"]
        if bool(given) == wanted or spec.get("loadBalancerClass"):
            return None
        if wanted:
            self.record(obj, "EnsuringLoadBalancer", "Ensuring load balancer")
            address = {"ip": self._free_address(spec.get("loadBalancerIP", "")), "ipMode": "VIP"}
            self.report(obj, {**status, "loadBalancer": {"ingress": [address]}})
            self.record(obj, "EnsuredLoadBalancer", "Ensured load balancer")
        else:
            self.report(obj, {**status, "loadBalancer": {}})
        return None

    def _free_address(self, wanted: str) -> str:
        if wanted:
            return wanted
        taken = {
            one.get("ip")
            for entry in self._store.context.table(self._resource).entries.values()
            for one in ((entry.obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        }
        return next(ip for ip in (f"172.18.{n >> 8}.{n & 255}" for n in range(1, 65_535)) if ip not in taken)


def _selects(service: Object, pod: Object) -> bool:
    selector = (service.get("spec") or {}).get("selector")
    return bool(selector) and selects({"matchLabels": selector}, pod["metadata"].get("labels"))


def _seen_of(pod: Object) -> tuple[object, ...]:
    """Return what endpoints show of a pod."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    node = pod["spec"].get("nodeName")
    return metadata.get("labels"), node, status.get("podIP"), is_finished(pod), is_ready(pod), "deletionTimestamp" in metadata


def _shared_out(slices: list[Object], wanted: dict[str, Object]) -> Iterator[tuple[Object | None, list[Object]]]:
    """Yield each slice with its new content.

    A slice keeps the endpoints it has. New ones fill up the slices that have room, then new slices. So most slices stay as
    they are.
    """
    new = dict(wanted)
    contents = []
    for one in slices:
        uids = [endpoint["targetRef"]["uid"] for endpoint in one.get("endpoints") or ()]
        contents.append([new.pop(uid) for uid in uids if uid in new])
    rest = list(new.values())
    for content in contents:
        room = MAX_PER_SLICE - len(content)
        content += rest[:room]
        del rest[:room]
    yield from zip(slices, contents, strict=True)
    for start in range(0, len(rest), MAX_PER_SLICE):
        yield None, rest[start : start + MAX_PER_SLICE]
    if not slices and not wanted:
        yield None, []


def _labels(service: Object) -> dict[str, str]:
    """Return the labels of a service's slices: its own, and one for a headless service."""
    headless = _HEADLESS if service["spec"].get("clusterIP") == "None" else {}
    return {**(service["metadata"].get("labels") or {}), **headless}


def _reference(pod: Object) -> Object:
    metadata = pod["metadata"]
    return {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}


def _ports(service: Object, pod: Object) -> Ports:
    """Return a service's ports as numbers of a pod. A named port that the pod does not have is left out."""
    found = []
    for port in service["spec"].get("ports") or ():
        number = _number(port, pod)
        if number is not None:
            found.append((port.get("name", ""), port.get("protocol", "TCP"), number, port.get("appProtocol", "")))
    return tuple(found)


def _number(port: Object, pod: Object) -> int | None:
    """Return the number of a port, by its name in the containers if it is a name."""
    target: int | str = port["targetPort"]
    if not isinstance(target, str):
        return target
    sidecars = [one for one in pod["spec"].get("initContainers") or () if one.get("restartPolicy") == "Always"]
    for container in [*sidecars, *pod["spec"]["containers"]]:
        for one in container.get("ports") or ():
            if one.get("name") == target and one.get("protocol", "TCP") == port.get("protocol", "TCP"):
                return int(one["containerPort"])
    return None


def _ports_of(slice_: Object) -> Ports:
    """Return the ports of a slice."""
    return tuple(
        (one.get("name", ""), one.get("protocol", "TCP"), one["port"], one.get("appProtocol", ""))
        for one in slice_.get("ports") or ()
    )


def _written(ports: Ports) -> list[Object]:
    """Return ports as slices and Endpoints list them."""
    fields = ("name", "protocol", "port", "appProtocol")
    return [{key: value for key, value in zip(fields, port, strict=True) if value or key == "name"} for port in ports]
