"""Read a configuration or a policy, as the scheduler or an old release reads it.

In: a KubeSchedulerConfiguration, or a legacy Policy (`kind: Policy`) and its release. Out: the checked document. The errors are
those with which the scheduler would refuse to start.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubesched.errors import ConfigError
from kubesched.scheduler import legacy
from kubesched.scheduler.config import (
    Configuration,
    Gates,
    Object,
    effective,
    encode,
    is_json,
    load,
    plain,
    read_json,
    read_yaml,
    unreadable,
)
from kubesched.scheduler.engine import Ports, new_handle, registry_with
from kubesched.scheduler.framework import Plugin, catalogue, find_plugins, not_enabled, run_module
from kubesched.scheduler.legacy.policies.componentconfig import API_VERSION as OLD_API_VERSION
from kubesched.scheduler.legacy.policies.policy import KIND as POLICY
from kubesched.scheduler.legacy.policies.selection import runs_as

_STDIN = "-"


@dataclass(frozen=True, slots=True)
class Current:
    """A KubeSchedulerConfiguration of a current release."""

    configuration: Configuration

    def sentence(self) -> str:
        """Return one sentence about it."""
        return f"valid, profiles: {', '.join(profile.scheduler_name for profile in self.configuration.profiles)}"

    def document(self) -> dict[str, Any]:
        """Return the configuration with all defaults."""
        return effective(self.configuration)


@dataclass(frozen=True, slots=True)
class OldPolicy:
    """A legacy policy, and the algorithm that its release builds from it."""

    policy: legacy.Policy
    algorithm: legacy.Algorithm

    def sentence(self) -> str:
        """Return one sentence about it."""
        built = self.algorithm
        counts = f"{len(built.predicates)} predicates, {len(built.priorities)} priorities, {len(built.extenders)} extenders"
        return f"valid policy of {built.release}: {counts}"

    def document(self) -> dict[str, Any]:
        """Return the policy with the defaults of its release, and all names in the order in which they run.

        Entries with arguments keep their names, also if the release runs several of them as one. So the document can be read
        again and means the same.
        """
        built, given = self.algorithm, self.policy
        predicates = [entry for entry in given.predicates or () if entry.argument is not None]
        priorities = [entry for entry in given.priorities or () if entry.argument is not None]
        custom = {runs_as(entry, built.release) for entry in predicates}
        custom |= {runs_as(entry, built.release) for entry in priorities}
        document: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": POLICY,
            "predicates": [*({"name": name} for name in built.predicates if name not in custom), *map(encode, predicates)],
            "priorities": [
                *({"name": name, "weight": weight} for name, weight in built.priorities.items() if name not in custom),
                *map(encode, priorities),
            ],
            "hardPodAffinitySymmetricWeight": built.context.hard_pod_affinity_weight,
            "alwaysCheckAllPredicates": built.always_check_all_predicates,
        }
        if given.extenders:
            document["extenders"] = [
                {key: value for key, value in encode(one).items() if value not in ("", 0, False)} for one in given.extenders
            ]
        return document


@dataclass(frozen=True, slots=True)
class OldFile:
    """A configuration file of an old release, and its algorithm; None if a ConfigMap has the policy."""

    scheduler: legacy.LegacyScheduler
    algorithm: legacy.Algorithm | None

    def sentence(self) -> str:
        """Return one sentence about it."""
        return f"valid configuration of {self.scheduler.release}, scheduler: {self.scheduler.config.scheduler_name}"

    def document(self) -> dict[str, Any]:
        """Return the file with its defaults, and the plugins of the framework with their configuration."""
        shown: dict[str, Any] = {"componentconfig": self.scheduler.document()}
        if self.algorithm is not None and self.algorithm.framework is not None:
            shown["framework"] = self.algorithm.framework.document()
        return shown


def read_configuration(
    file: Path, gates: Gates, plugins: tuple[str, ...], legacy_version: str | None, warn: Callable[[str], None]
) -> Current | OldPolicy | OldFile:
    """Read a file, or the standard input for `-`; raise ConfigError if the scheduler would not start with it."""
    text = _read(file)
    if _says(text, "kind", POLICY):
        _run_files(plugins)
        try:
            return _build_old(text, legacy_version or str(legacy.LATEST))
        except ConfigError as error:
            raise _at(file, error) from error
    brought = [cls for name in plugins for cls in find_plugins(name)]
    if legacy_version and _says(text, "apiVersion", OLD_API_VERSION):
        try:
            return _build_old_file(file, legacy_version, tuple(brought))
        except ConfigError as error:
            raise _at(file, error) from error
    registry = registry_with(brought, installed=True)
    try:
        found = load(text, gates=gates, registry=catalogue(registry))
    except ConfigError as error:
        raise _at(file, error) from error
    registered = {cls.name for cls in registry}
    for line in (*not_enabled(brought, found), *_unused_args(text, registered)):
        warn(line)
    return Current(found)


def convert(file: Path, plugins: tuple[str, ...], legacy_version: str | None, scheduler_name: str) -> legacy.Conversion:
    """Return the configuration that behaves as the policy in a file, and what differs or has no equivalent."""
    text, legacy_version = _read(file), legacy_version or str(legacy.LATEST)
    _run_files(plugins)
    try:
        policy = legacy.load_policy(text, legacy_version)
        return legacy.convert_policy(policy, legacy_version, legacy.Options(scheduler_name=scheduler_name))
    except ConfigError as error:
        raise _at(file, error) from error


def _unused_args(text: str, registered: set[str]) -> list[str]:
    """Return a warning for each `pluginConfig` of an unregistered plugin, which kube-scheduler ignores silently."""
    document = plain(read_json(text) if is_json(text) else read_yaml(text)[0])
    return [
        f'profiles[{i}].pluginConfig[{j}]: no plugin "{name}" is registered: its args are ignored'
        for i, profile in enumerate(document.get("profiles") or ())
        for j, entry in enumerate((profile or {}).get("pluginConfig") or ())  # null stands for an empty one, as in Go
        if (name := (entry or {}).get("name") or "") not in registered
    ]


def _build_old(text: str, version: str) -> OldPolicy:
    policy = legacy.load_policy(text, version)
    handle = new_handle(Gates.defaults(), Ports())[1]
    return OldPolicy(policy, legacy.profile_from_policy(policy, handle, version))


def _build_old_file(file: Path, version: str, brought: tuple[type[Plugin], ...]) -> OldFile:
    release = legacy.release_of(version)
    given = legacy.load_component_config(str(file), release).defaulted(release)
    scheduler = legacy.LegacyScheduler(release, given, brought=brought)
    if scheduler.config_map is not None:
        return OldFile(scheduler, None)
    return OldFile(scheduler, scheduler.algorithm(new_handle(Gates.defaults(), Ports())[1]))


def _run_files(plugins: tuple[str, ...]) -> None:
    for name in plugins:
        run_module(name)


def _read(file: Path) -> str:
    if str(file) == _STDIN:
        return sys.stdin.read()
    try:
        return file.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise unreadable(str(file), error) from error


def _says(text: str, key: str, value: str) -> bool:
    try:
        tree = read_json(text) if is_json(text) else read_yaml(text)[0]
    except ConfigError:
        return False  # reading it as a configuration reports the error
    return isinstance(tree, Object) and tree.get_folded(key) == value


def _at(file: Path, error: ConfigError) -> ConfigError:
    """Return an error of one line that names the file. Some errors quote the whole text, so only their first line is kept."""
    first, *others = str(error).split("\n")
    text = f"{first} ..." if others else first
    return ConfigError("", text) if str(file) in text else ConfigError(str(file), text)
