"""A scheduler of an old release: `LegacyScheduler` has everything that the engine needs to behave like it.

From a complete `ComponentConfig`, the release and its gates it makes: the algorithm (from a provider, a policy file or a
ConfigMap), today's configuration with the release's settings, and how the release chooses among the best nodes, keeps its queue
and calls extenders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from kubesched.errors import ConfigError
from kubesched.kube.api import ConfigMap
from kubesched.scheduler.config import Configuration, Extender
from kubesched.scheduler.engine import Poster, Ties
from kubesched.scheduler.framework import Handle, Plugin
from kubesched.scheduler.legacy.annotations import AnnotationReader
from kubesched.scheduler.legacy.policies.componentconfig import ComponentConfig
from kubesched.scheduler.legacy.policies.policy import Policy
from kubesched.scheduler.legacy.policies.sources import (
    FromConfigMap,
    FromFile,
    FromProvider,
    policy_from_config_map,
    policy_from_file,
)
from kubesched.scheduler.legacy.profile import Algorithm, Options, profile_from_policy, profile_from_provider
from kubesched.scheduler.legacy.releases import LegacyGates, Release
from kubesched.scheduler.legacy.ties import ties_of
from kubesched.scheduler.legacy.wording import saying
from kubesched.scheduler.queue import QueueOptions

ASSUMED_TTL_SECONDS = 30.0
"""How long an assumed pod is kept after its binding until the API confirms it, in all old releases."""
MAX_WAITING_SECONDS = 60.0
"""After this time an unschedulable pod is tried again without an event."""
_EXTENDER_VERSION = "v1"


@dataclass(frozen=True, slots=True)
class LegacyScheduler:
    """A scheduler of then."""

    release: Release
    config: ComponentConfig
    """With all defaults filled in."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    brought: tuple[type[Plugin], ...] = ()
    """The user's plugin classes, which the file's `plugins` may name."""

    def __post_init__(self) -> None:
        LegacyGates.of(self.release, self.feature_gates)
        lock = self.config.leader_election.resource_lock
        if self.config.leader_election.leader_elect and lock not in self.release.locks:
            raise ConfigError("", f"couldn't create resource lock: Invalid lock-type {lock}")

    @property
    def options(self) -> Options:
        """Return the settings beside policy and provider."""
        weight = self.config.hard_pod_affinity_symmetric_weight
        return Options(
            scheduler_name=self.config.scheduler_name,
            hard_pod_affinity_symmetric_weight=1 if weight is None else weight,
            disable_preemption=self.config.disable_preemption,
            percentage_of_nodes_to_score=self.config.percentage_of_nodes_to_score,
            feature_gates=self.feature_gates,
            bind_timeout_seconds=self.config.bind_timeout_seconds,
            plugins=self.config.plugins,
            plugin_config=self.config.plugin_config,
            brought=self.brought,
        )

    @property
    def config_map(self) -> FromConfigMap | None:
        """Return the ConfigMap with the policy, None if the policy is elsewhere."""
        source = self.config.source
        return source if isinstance(source, FromConfigMap) else None

    @property
    def policy_file(self) -> str:
        """Return the policy file, empty if the policy is elsewhere."""
        source = self.config.source
        return source.path if isinstance(source, FromFile) else ""

    def algorithm(self, handle: Handle, config_map: ConfigMap | None = None) -> Algorithm:
        """Build predicates and priorities; a policy file is read each time. Raise ConfigError if they cannot run."""
        source = self.config.source
        if isinstance(source, FromProvider):
            return profile_from_provider(source.name, handle, self.release, self.options)
        policy: Policy
        if isinstance(source, FromFile):
            policy = policy_from_file(source, self.release)
        else:
            assert config_map is not None, "whoever builds from a ConfigMap has fetched it"
            policy = policy_from_config_map(config_map, self.release)
        built = profile_from_policy(policy, handle, self.release, self.options)
        if self.release.names_extender_version:
            addresses = [f"{extender.url_prefix.rstrip('/')}/{_EXTENDER_VERSION}" for extender in built.extenders]
            pairs = zip(built.extenders, addresses, strict=True)
            return replace(built, extenders=tuple(msgspec.structs.replace(each, url_prefix=url) for each, url in pairs))
        return built

    def over(self, base: Configuration) -> Configuration:
        """Return today's configuration with the old settings; its profile has only the scheduler name."""
        given = self.config
        initial, most = given.pod_initial_backoff_seconds, given.pod_max_backoff_seconds
        assert initial is not None and most is not None
        return replace(
            base,
            leader_election=given.leader_election,
            client_connection=given.client_connection,
            enable_profiling=given.enable_profiling,
            enable_contention_profiling=bool(given.enable_contention_profiling),
            pod_initial_backoff_seconds=initial,
            pod_max_backoff_seconds=most,
            profiles=(replace(base.profiles[0], scheduler_name=given.scheduler_name),),
        )

    def not_enabled(self) -> list[str]:
        """Return a warning for each of the user's plugins that the file does not enable."""
        names = self.config.plugins.names
        return [
            f"plugin {cls.name} does nothing: the file does not enable it (plugins in --config)"
            for cls in self.brought
            if cls.name not in names
        ]

    def document(self) -> dict[str, Any]:
        """Return the settings as the release showed them."""
        return self.config.document(self.release)

    # How the release behaves

    @property
    def remembers(self) -> bool:
        """Return whether the cache may be used: not if the best nodes are chosen in turn."""
        return self.release.minor >= 17

    @property
    def annotations(self) -> AnnotationReader | None:
        """Return the reader of annotations, None if the release reads none."""
        reader = AnnotationReader(self.release, LegacyGates.of(self.release, self.feature_gates))
        return reader if reader.reads_any else None

    def queueing(self, today: QueueOptions) -> QueueOptions:
        """Return the options of the queue: no pod leaves the backoff queue early, every failed attempt doubles the backoff, and
        a pod's own status does not wake it."""
        return replace(
            today,
            pops_from_backoff=False,
            waits_for_events=self.release.waits_for_events,
            counts_errors_apart=False,
            heeds_own_status=False,
        )

    def ties(self, seed: int) -> Ties:
        """Return how one of the best nodes is chosen."""
        return saying(ties_of(self.release, seed), self.release)

    def poster(self, poster: Poster) -> Poster:
        """Return the client for extenders."""
        return OldPoster(poster) if self.release.names_extender_version else poster

    @property
    def insecure_address(self) -> tuple[str, int]:
        """Return host and port for plain HTTP; port 0: it is off."""
        host, _, port = self.config.healthz_bind_address.rpartition(":")
        if not port.isdecimal() or int(port) > 65535:
            raise ConfigError("healthzBindAddress", f"{self.config.healthz_bind_address!r} is no address with a port")
        return host.strip("[]"), int(port)


class OldPoster:
    """Calls extenders as releases before 1.6 did: with lower-case keys and whole nodes."""

    def __init__(self, poster: Poster) -> None:
        self._poster = poster

    def post(self, url: str, body: bytes, extender: Extender) -> bytes:
        """Post JSON with the old keys."""
        said = msgspec.json.decode(body, type=dict[str, Any])
        old = {key[:1].lower() + key[1:]: value for key, value in said.items() if value is not None}
        return self._poster.post(url, msgspec.json.encode(old), extender)
