"""Where predicates and priorities come from: a policy file, a ConfigMap, or an algorithm provider.

`source_of` decides that from the old flags by the release's rules. Nothing is fetched here; the caller passes the ConfigMap.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from kubesched.errors import ConfigError
from kubesched.kube.api import ConfigMap
from kubesched.scheduler.config import unreadable
from kubesched.scheduler.legacy.policies.policy import CONFIG_MAP_KEY, Policy, load_policy
from kubesched.scheduler.legacy.policies.providers import DEFAULT_PROVIDER
from kubesched.scheduler.legacy.releases import LATEST, Release, release_of


@dataclass(frozen=True, slots=True)
class PolicyFlags:
    """The old flags about policies and providers."""

    algorithm_provider: str = ""
    policy_config_file: str = ""
    policy_configmap: str = ""
    policy_configmap_namespace: str = "kube-system"
    use_legacy_policy_config: bool = False

    @property
    def are_given(self) -> bool:
        """Return whether one of them is set."""
        return bool(
            self.algorithm_provider or self.policy_config_file or self.policy_configmap or self.use_legacy_policy_config
        )


@dataclass(frozen=True, slots=True)
class FromFile:
    """A policy in a file."""

    path: str


@dataclass(frozen=True, slots=True)
class FromConfigMap:
    """A policy in a ConfigMap."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class FromProvider:
    """An algorithm provider."""

    name: str


Source = FromFile | FromConfigMap | FromProvider


def source_of(flags: PolicyFlags, version: str | Release = LATEST) -> Source:
    """Return the source that the flags mean in a release.

    Up to 1.6 the provider is used if the policy file does not exist. Later the file wins with --use-legacy-policy-config or
    without a ConfigMap, and must exist.
    """
    release = release_of(version)
    provider = FromProvider(flags.algorithm_provider or DEFAULT_PROVIDER)
    if release.minor < 7:
        return FromFile(flags.policy_config_file) if os.path.exists(flags.policy_config_file) else provider
    if flags.use_legacy_policy_config and not flags.policy_config_file:
        raise ConfigError("", "policyConfigFile: Required value: required when --use-legacy-policy-config is true")
    if flags.use_legacy_policy_config or (flags.policy_config_file and not flags.policy_configmap):
        return FromFile(flags.policy_config_file)
    if flags.policy_configmap:
        return FromConfigMap(flags.policy_configmap_namespace, flags.policy_configmap)
    return provider


def policy_from_file(source: FromFile, version: str | Release = LATEST) -> Policy:
    """Read a policy file."""
    release = release_of(version)
    try:
        with open(source.path, "rb") as opened:
            text = opened.read().decode("utf-8", "replace")
    except FileNotFoundError as error:
        if release.minor >= 7:
            raise ConfigError("", f"missing policy config file {source.path}") from error
        raise ConfigError("", f"unable to read policy config: {unreadable(source.path, error)}") from error
    except OSError as error:
        wrapper = "couldn't read policy config" if release.minor >= 7 else "unable to read policy config"
        raise ConfigError("", f"{wrapper}: {unreadable(source.path, error)}") from error
    return load_policy(text, release)


def policy_from_config_map(found: ConfigMap, version: str | Release = LATEST) -> Policy:
    """Read the policy that a ConfigMap holds."""
    text = found.data.get(CONFIG_MAP_KEY)
    if text is None:
        raise ConfigError("", f'missing policy config map value at key "{CONFIG_MAP_KEY}"')
    return load_policy(text, version)


def no_config_map(source: FromConfigMap, problem: object) -> ConfigError:
    """Return the error for a ConfigMap that could not be fetched."""
    return ConfigError("", f"couldn't get policy config map {source.namespace}/{source.name}: {problem}")
