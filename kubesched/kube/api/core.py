"""The smaller kinds of the core group (namespaces, services, config maps, bindings), events of both groups, and leases."""

from __future__ import annotations

from msgspec import field

from kubesched.kube.api.apps import PodTemplateSpec
from kubesched.kube.api.meta import ObjectReference, TopLevel, Wire, always


class NamespaceStatus(Wire, kw_only=True):
    """Whether the namespace is in use or going away."""

    phase: str = ""


class Namespace(TopLevel, kw_only=True):
    """A namespace; its labels matter to namespace selectors."""

    api_version: str = always("v1")
    kind: str = always("Namespace")
    status: NamespaceStatus = NamespaceStatus()


class ServicePort(Wire, kw_only=True):
    """A port of a service."""

    name: str = ""
    protocol: str = ""
    port: int = 0
    target_port: int | str = 0
    node_port: int = 0


class ServiceSpec(Wire, kw_only=True):
    """A service without selector selects no pods of ours; an empty selector is not the same as none."""

    selector: dict[str, str] | None = None
    ports: tuple[ServicePort, ...] = ()
    cluster_ip: str = field(default="", name="clusterIP")
    type: str = ""


class Service(TopLevel, kw_only=True):
    """Pods that serve together, and so are best spread."""

    api_version: str = always("v1")
    kind: str = always("Service")
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Wire, kw_only=True):
    """How many pods of a kind there are to be."""

    replicas: int | None = None
    selector: dict[str, str] | None = None
    template: PodTemplateSpec | None = None


class ReplicationController(TopLevel, kw_only=True):
    """Keeps a number of equal pods running."""

    api_version: str = always("v1")
    kind: str = always("ReplicationController")
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ConfigMap(TopLevel, kw_only=True):
    """Text under keys; a legacy policy may live in one."""

    api_version: str = always("v1")
    kind: str = always("ConfigMap")
    data: dict[str, str] = field(default_factory=dict)


class EndpointAddress(Wire, kw_only=True):
    """One address of a service."""

    ip: str = ""
    hostname: str = ""
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointPort(Wire, kw_only=True):
    """One port of a service's addresses."""

    name: str = ""
    port: int = 0
    protocol: str = ""


class EndpointSubset(Wire, kw_only=True):
    """Addresses that share ports."""

    addresses: tuple[EndpointAddress, ...] = ()
    not_ready_addresses: tuple[EndpointAddress, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


class Endpoints(TopLevel, kw_only=True):
    """Addresses of a service; old releases kept their leader lock in an annotation of one."""

    api_version: str = always("v1")
    kind: str = always("Endpoints")
    subsets: tuple[EndpointSubset, ...] = ()


class Binding(TopLevel, kw_only=True):
    """The word that puts a pod on a node."""

    api_version: str = always("v1")
    kind: str = always("Binding")
    target: ObjectReference = ObjectReference()


class EventSource(Wire, kw_only=True):
    """Who reports."""

    component: str = ""
    host: str = ""


class EventSeries(Wire, kw_only=True):
    """How often the same thing was seen, and when last."""

    count: int = 0
    last_observed_time: str | None = None


class CoreEvent(TopLevel, kw_only=True):
    """Something that happened, in the old shape; `Event` is the one we write."""

    api_version: str = always("v1")
    kind: str = always("Event")
    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    source: EventSource = EventSource()
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    count: int = 0
    type: str = ""
    event_time: str | None = None
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""


class Event(TopLevel, kw_only=True):
    """Something that happened to an object."""

    api_version: str = always("events.k8s.io/v1")
    kind: str = always("Event")
    event_time: str | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""
    deprecated_source: EventSource = EventSource()
    deprecated_first_timestamp: str | None = None
    deprecated_last_timestamp: str | None = None
    deprecated_count: int = 0


class LeaseSpec(Wire, kw_only=True):
    """The holder and its times, with microseconds."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(TopLevel, kw_only=True):
    """A lock with an expiry."""

    api_version: str = always("coordination.k8s.io/v1")
    kind: str = always("Lease")
    spec: LeaseSpec = LeaseSpec()
