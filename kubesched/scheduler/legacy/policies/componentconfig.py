"""The configuration file of old releases: KubeSchedulerConfiguration of `kubescheduler.config.k8s.io/v1alpha1`, from 1.10 on.

`ComponentConfig` has all defaults of its release, and prints the document of its /configz. Flags are applied by the caller.
Unlike the old releases, which ignored unknown fields, files are read strictly.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from kubesched.errors import ConfigError
from kubesched.kube.values import aggregate
from kubesched.scheduler.config import (
    API_GROUP,
    ClientConnection,
    FieldError,
    Go,
    Int32,
    Int64,
    LeaderElection,
    Object,
    Path,
    PluginConfig,
    Wire,
    decode,
    encode,
    invalid,
    is_json,
    read_file,
    read_json,
    read_yaml,
    required,
)
from kubesched.scheduler.config import KIND as CONFIGURATION
from kubesched.scheduler.legacy.framework_plugins import OldPlugins
from kubesched.scheduler.legacy.policies.providers import DEFAULT_PROVIDER
from kubesched.scheduler.legacy.policies.sources import FromConfigMap, FromFile, FromProvider, Source
from kubesched.scheduler.legacy.releases import Release

API_VERSION = f"{API_GROUP}/v1alpha1"
DEFAULT_SCHEDULER_NAME = "default-scheduler"
SYSTEM_NAMESPACE = "kube-system"
INSECURE_ADDRESS = "0.0.0.0:10251"
FAILURE_DOMAINS = "kubernetes.io/hostname,failure-domain.beta.kubernetes.io/zone,failure-domain.beta.kubernetes.io/region"
_FILES_SINCE = 10
_SINCE = {"plugins": 16, "pluginConfig": 16, "podInitialBackoffSeconds": 17, "podMaxBackoffSeconds": 17}
_UNTIL = {"failureDomains": 14}


class PolicyFile(Wire, frozen=True, rename="camel"):
    """A policy in a file."""

    path: str = ""


class PolicyConfigMap(Wire, frozen=True, rename="camel"):
    """A policy in a ConfigMap."""

    namespace: str = ""
    name: str = ""


class PolicySource(Wire, frozen=True, rename="camel"):
    """Where a policy is; one of these."""

    file: PolicyFile | None = None
    config_map: PolicyConfigMap | None = None


class AlgorithmSource(Wire, frozen=True, rename="camel"):
    """The source of predicates and priorities: a policy or a provider."""

    policy: PolicySource | None = None
    provider: str | None = None


class OldLeaderElection(LeaderElection, frozen=True, rename="camel"):
    """Leader election, with the old names of the lock's fields."""

    go_type: ClassVar[str] = "v1alpha1.KubeSchedulerLeaderElectionConfiguration"

    resource_name: str = msgspec.field(default="", name="lockObjectName")
    resource_namespace: str = msgspec.field(default="", name="lockObjectNamespace")


class ComponentConfig(Wire, frozen=True, rename="camel"):
    """The document. Empty names, zero durations and None mean the release's default."""

    go_type: ClassVar[str] = "v1alpha1.KubeSchedulerConfiguration"

    scheduler_name: str = ""
    algorithm_source: AlgorithmSource = AlgorithmSource()
    hard_pod_affinity_symmetric_weight: Int32 | None = None
    leader_election: OldLeaderElection = OldLeaderElection()
    client_connection: ClientConnection = ClientConnection()
    healthz_bind_address: str = ""
    metrics_bind_address: str = ""
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    disable_preemption: bool = False
    percentage_of_nodes_to_score: Int32 | None = None
    failure_domains: str = ""
    bind_timeout_seconds: Int64 | None = None
    pod_initial_backoff_seconds: Int64 | None = None
    pod_max_backoff_seconds: Int64 | None = None
    plugins: OldPlugins = OldPlugins()
    plugin_config: Annotated[tuple[PluginConfig, ...], Go("[]v1alpha1.PluginConfig")] = ()

    def defaulted(self, release: Release) -> ComponentConfig:
        """Return the settings with all defaults of a release; raise ConfigError for values that it refuses."""
        source = self.algorithm_source
        if source.policy is None and source.provider is None:
            source = AlgorithmSource(provider=DEFAULT_PROVIDER)
        lock = self.leader_election.resource_lock or release.default_lock
        healthz = self.healthz_bind_address or INSECURE_ADDRESS
        whole = msgspec.structs.replace(
            self,
            scheduler_name=self.scheduler_name or DEFAULT_SCHEDULER_NAME,
            algorithm_source=source,
            hard_pod_affinity_symmetric_weight=_or(self.hard_pod_affinity_symmetric_weight, 1),
            leader_election=msgspec.structs.replace(self.leader_election, resource_lock=lock).defaulted(),
            client_connection=self.client_connection.defaulted(),
            healthz_bind_address=healthz,
            metrics_bind_address=self.metrics_bind_address or healthz,
            enable_contention_profiling=_or(self.enable_contention_profiling, release.minor >= 17),
            percentage_of_nodes_to_score=_or(self.percentage_of_nodes_to_score, release.percentage_of_nodes or 0),
            failure_domains=self.failure_domains or FAILURE_DOMAINS,
            bind_timeout_seconds=_or(self.bind_timeout_seconds, 600),
            pod_initial_backoff_seconds=_or(self.pod_initial_backoff_seconds, 1),
            pod_max_backoff_seconds=_or(self.pod_max_backoff_seconds, release.max_backoff_seconds),
        )
        errors = _errors(whole, release)
        if errors:
            raise ConfigError("", aggregate(errors))
        return whole

    @property
    def source(self) -> Source:
        """Return the source of predicates and priorities."""
        policy = self.algorithm_source.policy
        if policy is None:
            return FromProvider(self.algorithm_source.provider or DEFAULT_PROVIDER)
        if policy.file is not None:
            return FromFile(policy.file.path)
        if policy.config_map is not None:
            return FromConfigMap(policy.config_map.namespace or SYSTEM_NAMESPACE, policy.config_map.name)
        raise ConfigError("", "unsupported algorithm source: a policy that is neither in a file nor in a ConfigMap")

    def with_source(self, source: Source) -> ComponentConfig:
        """Return the settings with another source."""
        if isinstance(source, FromProvider):
            chosen = AlgorithmSource(provider=source.name)
        elif isinstance(source, FromFile):
            chosen = AlgorithmSource(PolicySource(PolicyFile(source.path)))
        else:
            chosen = AlgorithmSource(PolicySource(config_map=PolicyConfigMap(source.namespace, source.name)))
        return msgspec.structs.replace(self, algorithm_source=chosen)

    def document(self, release: Release) -> dict[str, Any]:
        """Return the document of /configz: flat up to 1.9, like the file later."""
        if release.minor < _FILES_SINCE:
            return self._flat()
        shown = {name: value for name, value in encode(self).items() if _knows(release, name)}
        return {"apiVersion": API_VERSION, "kind": CONFIGURATION, **{k: v for k, v in shown.items() if v is not None}}

    def _flat(self) -> dict[str, Any]:
        """Return the flat document of releases up to 1.9, whose fields were the flags."""
        source, connection = self.source, self.client_connection
        host, _, port = self.healthz_bind_address.rpartition(":")
        election = encode(self.leader_election)
        return {
            "port": int(port),
            "address": host.strip("[]"),
            "algorithmProvider": source.name if isinstance(source, FromProvider) else DEFAULT_PROVIDER,
            "policyConfigFile": source.path if isinstance(source, FromFile) else "",
            "enableProfiling": self.enable_profiling,
            "enableContentionProfiling": self.enable_contention_profiling,
            "contentType": connection.content_type,
            "kubeAPIQPS": connection.qps,
            "kubeAPIBurst": connection.burst,
            "schedulerName": self.scheduler_name,
            "hardPodAffinitySymmetricWeight": self.hard_pod_affinity_symmetric_weight,
            "failureDomains": self.failure_domains,
            "leaderElection": {
                name: election[name] for name in ("leaderElect", "leaseDuration", "renewDeadline", "retryPeriod")
            },
        }


def load_component_config(file: str, release: Release) -> ComponentConfig:
    """Return the settings in a file, without defaults."""
    if release.minor < _FILES_SINCE:
        raise ConfigError("", f"{release} knows no configuration file; use its flags")
    text = read_file(file).decode("utf-8", "replace")
    tree, complaints = (read_json(text), []) if is_json(text) else read_yaml(text)
    api_version, kind = (tree.get_folded(name) if isinstance(tree, Object) else None for name in ("apiVersion", "kind"))
    if (api_version, kind) != (API_VERSION, CONFIGURATION):
        raise ConfigError(
            file, f'{release} reads a {CONFIGURATION} of "{API_VERSION}", found {kind or "no kind"} of "{api_version or ""}"'
        )
    decoded, strict = decode(ComponentConfig, tree, with_type=True)
    assert isinstance(tree, Object)
    strict += [f'unknown field "{name}"' for name, _ in tree.pairs if not _knows(release, name)]
    if complaints or strict:
        raise ConfigError(file, f"strict decoding error: {', '.join([*complaints, *strict])}")
    return decoded


def _knows(release: Release, name: str) -> bool:
    return _SINCE.get(name, 0) <= release.minor <= _UNTIL.get(name, release.minor)


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _errors(given: ComponentConfig, release: Release) -> list[FieldError]:
    errors: list[FieldError] = []

    def refuse(name: str, value: Any, is_refused: bool, detail: str) -> None:
        if is_refused:
            errors.append(invalid(Path(name), value, detail))

    weight, percentage = given.hard_pod_affinity_symmetric_weight or 0, given.percentage_of_nodes_to_score or 0
    initial, most = given.pod_initial_backoff_seconds or 0, given.pod_max_backoff_seconds or 0
    timeout, metrics = given.bind_timeout_seconds or 0, given.metrics_bind_address
    out_of_range = "not in valid range [0-100]"
    refuse("hardPodAffinitySymmetricWeight", weight, release.minor >= _FILES_SINCE and not 0 <= weight <= 100, out_of_range)
    refuse("percentageOfNodesToScore", percentage, not 0 <= percentage <= 100, out_of_range)
    refuse("podInitialBackoffSeconds", initial, initial <= 0, "must be greater than 0")
    refuse("podMaxBackoffSeconds", most, most < initial, "must be greater than or equal to PodInitialBackoffSeconds")
    refuse("bindTimeoutSeconds", timeout, timeout < 0, "must not be negative")
    policy = given.algorithm_source.policy
    if policy is not None and policy.config_map is not None and not policy.config_map.name:
        errors.append(required(Path("algorithmSource.policy.configMap.name"), "no policy can be found without it"))
    one_port = "must be the same as healthzBindAddress: both are served on one port"
    refuse("metricsBindAddress", metrics, metrics != given.healthz_bind_address, one_port)
    return errors
