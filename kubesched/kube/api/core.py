"""Smaller kinds of the core group (namespaces, services, config maps, bindings), Events of both groups, and Leases."""

from __future__ import annotations

from msgspec import field

from kubesched.kube.api.apps import PodTemplateSpec
from kubesched.kube.api.meta import ObjectReference, TopLevel, Wire, always


class NamespaceStatus(Wire, kw_only=True):
    """The phase of a namespace."""

    phase: str = ""  # Active or Terminating


class Namespace(TopLevel, kw_only=True):
    """A namespace. Its labels are read by namespace selectors of affinity terms."""

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
    """Selector and ports of a service. Without a selector it selects no pods; an empty selector is not the same."""

    selector: dict[str, str] | None = None
    ports: tuple[ServicePort, ...] = ()
    cluster_ip: str = field(default="", name="clusterIP")
    type: str = ""


class Service(TopLevel, kw_only=True):
    """A service. The pods that it selects are spread by default."""

    api_version: str = always("v1")
    kind: str = always("Service")
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Wire, kw_only=True):
    """The pods of a ReplicationController."""

    replicas: int | None = None
    selector: dict[str, str] | None = None
    template: PodTemplateSpec | None = None


class ReplicationController(TopLevel, kw_only=True):
    """A number of equal pods; the predecessor of the ReplicaSet."""

    api_version: str = always("v1")
    kind: str = always("ReplicationController")
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ConfigMap(TopLevel, kw_only=True):
    """Texts under keys. Old releases read their policy from one."""

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
    """Addresses with the same ports."""

    addresses: tuple[EndpointAddress, ...] = ()
    not_ready_addresses: tuple[EndpointAddress, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


class Endpoints(TopLevel, kw_only=True):
    """The addresses of a service. Old releases keep their leader election record in an annotation of one."""

    api_version: str = always("v1")
    kind: str = always("Endpoints")
    subsets: tuple[EndpointSubset, ...] = ()


class Binding(TopLevel, kw_only=True):
    """The request that assigns a pod to a node."""

    api_version: str = always("v1")
    kind: str = always("Binding")
    target: ObjectReference = ObjectReference()


class EventSource(Wire, kw_only=True):
    """The component that reports an Event."""

    component: str = ""
    host: str = ""


class EventSeries(Wire, kw_only=True):
    """How often an Event was repeated, and when last."""

    count: int = 0
    last_observed_time: str | None = None


class CoreEvent(TopLevel, kw_only=True):
    """An Event of the core group, as old releases write it."""

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
    """An Event of events.k8s.io, which is what the scheduler writes."""

    api_version: str = always("events.k8s.io/v1")
    kind: str = always("Event")
    event_time: str | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = ObjectReference()  # the object that the Event is about
    related: ObjectReference | None = None
    note: str = ""  # the message
    type: str = ""
    deprecated_source: EventSource = EventSource()
    deprecated_first_timestamp: str | None = None
    deprecated_last_timestamp: str | None = None
    deprecated_count: int = 0


class LeaseSpec(Wire, kw_only=True):
    """Holder and times of a Lease. The times have microseconds."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None  # how often the holder has changed
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(TopLevel, kw_only=True):
    """A lock that expires: leader election holds one."""

    api_version: str = always("coordination.k8s.io/v1")
    kind: str = always("Lease")
    spec: LeaseSpec = LeaseSpec()
