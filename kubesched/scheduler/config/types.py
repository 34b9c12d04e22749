"""The types of KubeSchedulerConfiguration v1: the document, and `Configuration`, the complete one that the scheduler runs with.

`KubeSchedulerConfiguration` and its parts are the wire format: optional where a file may leave a field out, with
kube-scheduler's names and rules about empty fields. `Configuration` is the result of defaulting, merging and validation: no
field is missing, and the plugins are listed for each extension point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import msgspec

from kubesched.scheduler.config.args import Args
from kubesched.scheduler.config.documents.durations import Duration
from kubesched.scheduler.config.documents.wire import Float32, Go, Int32, Int64, Raw, Wire

API_GROUP = "kubescheduler.config.k8s.io"
API_VERSION = f"{API_GROUP}/v1"
KIND = "KubeSchedulerConfiguration"

_Omitted = Go(omit_empty=True)
_Debugging = Go(embedded="DebuggingConfiguration")


class LeaderElection(Wire, frozen=True, rename="camel"):
    """Leader election by a Lease. Zero durations and empty names mean the default."""

    go_type: ClassVar[str] = "v1alpha1.LeaderElectionConfiguration"

    leader_elect: bool = True
    lease_duration: Duration = Duration(0)
    renew_deadline: Duration = Duration(0)
    retry_period: Duration = Duration(0)
    resource_lock: str = ""
    resource_name: str = ""
    resource_namespace: str = ""

    def defaulted(self) -> Self:
        return msgspec.structs.replace(
            self,
            lease_duration=self.lease_duration or Duration.of(seconds=15),
            renew_deadline=self.renew_deadline or Duration.of(seconds=10),
            retry_period=self.retry_period or Duration.of(seconds=2),
            resource_lock=self.resource_lock or "leases",
            resource_name=self.resource_name or "kube-scheduler",
            resource_namespace=self.resource_namespace or "kube-system",
        )


class ClientConnection(Wire, frozen=True, rename="camel"):
    """The connection to the API server. A rate of 0 means the default, a negative rate no limit."""

    go_type: ClassVar[str] = "v1alpha1.ClientConnectionConfiguration"

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: Float32 = 0.0
    burst: Int32 = 0

    def defaulted(self) -> ClientConnection:
        return msgspec.structs.replace(
            self,
            # Kept for what is printed: kube-scheduler's default. Our client speaks JSON whatever stands here.
            content_type=self.content_type or "application/vnd.kubernetes.protobuf",
            qps=self.qps or 50.0,
            burst=self.burst or 100,
        )


class Plugin(Wire, frozen=True, rename="camel"):
    """A plugin by name. The weight matters where it scores; 0 means 1."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(Wire, frozen=True, rename="camel"):
    """The plugins that are enabled and disabled at one extension point; `*` in disabled means all defaults."""

    enabled: tuple[Plugin, ...] | None = None
    disabled: tuple[Plugin, ...] | None = None

    @property
    def enabled_names(self) -> list[str]:
        return [plugin.name for plugin in self.enabled or ()]

    @property
    def disabled_names(self) -> frozenset[str]:
        return frozenset(plugin.name for plugin in self.disabled or ())


class Plugins(Wire, frozen=True, rename="camel"):
    """The plugins of each extension point. `multi_point` enables a plugin at all points that it implements; a point's own list
    comes first and wins (`merging`)."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    pod_group_post_filter: PluginSet | None = None  # None in releases that do not have it

    def at(self, point: str) -> PluginSet:
        found: PluginSet | None = getattr(self, point)
        return found if found is not None else PluginSet()


class PluginConfig(Wire, frozen=True, rename="camel"):
    """The arguments of one plugin. They are decoded in a second step, when the type that the plugin wants is known."""

    name: str = ""
    args: Raw = Raw()


class KubeSchedulerProfile(Wire, frozen=True, rename="camel"):
    """One profile as it stands in a file. An absent name and an empty one differ: only the absent one gets a default."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins | None = None
    plugin_config: tuple[PluginConfig, ...] = ()


class ExtenderManagedResource(Wire, frozen=True, rename="camel"):
    """A resource that an extender is called for; with `ignored_by_scheduler` NodeResourcesFit leaves it out."""

    name: str = ""
    ignored_by_scheduler: Annotated[bool, _Omitted] = False


class ExtenderTLSConfig(Wire, frozen=True, rename="camel"):
    """TLS for an extender; inline data wins over files."""

    insecure: Annotated[bool, _Omitted] = False
    server_name: Annotated[str, _Omitted] = ""
    cert_file: Annotated[str, _Omitted] = ""
    key_file: Annotated[str, _Omitted] = ""
    ca_file: Annotated[str, _Omitted] = ""
    cert_data: Annotated[bytes, _Omitted] = b""
    key_data: Annotated[bytes, _Omitted] = b""
    ca_data: Annotated[bytes, _Omitted] = b""


class Extender(Wire, frozen=True, rename="camel"):
    """A scheduler extender over HTTP; it does not have the verbs that are empty."""

    url_prefix: str = ""
    filter_verb: Annotated[str, _Omitted] = ""
    preempt_verb: Annotated[str, _Omitted] = ""
    prioritize_verb: Annotated[str, _Omitted] = ""
    weight: Annotated[Int64, _Omitted] = 0
    bind_verb: Annotated[str, _Omitted] = ""
    enable_https: Annotated[bool, _Omitted] = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = Duration(0)
    node_cache_capable: Annotated[bool, _Omitted] = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: Annotated[bool, _Omitted] = False


class KubeSchedulerConfiguration(Wire, frozen=True, rename="camel"):
    """The document as it stands in a file."""

    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: Annotated[bool, _Debugging] = True
    # None follows `enable_profiling` (`loading.complete`).
    enable_contention_profiling: Annotated[bool | None, _Debugging] = None
    percentage_of_nodes_to_score: Int32 = 0
    # Backoff doubles with each failed attempt: 1, 2, 4, 8, 10, 10 seconds by default.
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[KubeSchedulerProfile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: Annotated[bool, _Omitted] = False


@dataclass(frozen=True, slots=True)
class Configured:
    """A plugin at an extension point; the weight matters where scores are added."""

    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Profile:
    """A complete profile: one scheduler name with its plugins."""

    scheduler_name: str
    percentage_of_nodes_to_score: int | None  # None: the global value applies
    plugins: Plugins  # merged with the defaults, not yet expanded: what is printed
    points: Mapping[str, tuple[Configured, ...]]  # extension point in snake case: plugins in running order
    args: Mapping[str, Args | Raw]  # of the plugins in use; Raw where the plugin's arguments have no type

    def at(self, point: str) -> tuple[Configured, ...]:
        return self.points[point]

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """Return all plugins of the profile, each once, in the order of the points."""
        return tuple(dict.fromkeys(plugin.name for plugins in self.points.values() for plugin in plugins))


@dataclass(frozen=True, slots=True)
class Configuration:
    """A complete and valid configuration."""

    parallelism: int
    leader_election: LeaderElection
    client_connection: ClientConnection
    enable_profiling: bool
    enable_contention_profiling: bool
    percentage_of_nodes_to_score: int
    pod_initial_backoff_seconds: int
    pod_max_backoff_seconds: int
    profiles: tuple[Profile, ...]
    extenders: tuple[Extender, ...]  # as in the file; calling order: those that are not ignorable first
    delay_cache_until_active: bool
