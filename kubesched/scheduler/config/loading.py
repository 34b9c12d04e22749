"""From the text of a configuration file to a `Configuration`, or one ConfigError with kube-scheduler's text.

    1. read YAML or JSON               `_parse`; documents/yamltext, documents/reading
    2. find apiVersion and kind        `_kind_of`, `_registered`
    3. decode strictly                 `_decode`; documents/wire. Unknown and repeated fields are reported together
    4. decode the plugins' arguments   `_decode_args`
    5. defaults, flags over the file   `complete`, `_default_profiles`
    6. validate                        validation
    7. build the profiles              building

The order decides which of several errors is reported, so it is kube-scheduler's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from kubesched.errors import ConfigError
from kubesched.kube.values import aggregate, go_quote
from kubesched.scheduler.config.args import Args
from kubesched.scheduler.config.building import build_extenders, build_profiles, ignore_managed_resources, read_file
from kubesched.scheduler.config.catalogue import Catalogue, at_release, default_plugins
from kubesched.scheduler.config.documents.reading import Number, Object, Value, is_json, read_json
from kubesched.scheduler.config.documents.wire import Raw, decode, json_type
from kubesched.scheduler.config.documents.yamltext import read_yaml
from kubesched.scheduler.config.merging import merge, needed
from kubesched.scheduler.config.releases.gates import Gates
from kubesched.scheduler.config.types import (
    API_GROUP,
    API_VERSION,
    KIND,
    Configuration,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
)
from kubesched.scheduler.config.validation import MergedProfile, validate

# Part of an error text of kube-scheduler: a place in its own source.
SCHEME = "pkg/scheduler/apis/config/scheme/scheme.go:29"
DEFAULT_SCHEDULER_NAME = "default-scheduler"
_FOLDED = {"apiversion": "apiVersion", "kind": "kind"}
_KIND_STRUCT = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'

Overrides = Mapping[str, Any]


def load(
    source: str | os.PathLike[str], *, gates: Gates, registry: Catalogue, overrides: Overrides | None = None
) -> Configuration:
    """Return the configuration in a text (str), or in the file at a path.

    `overrides` are fields of `leader_election` from flags, which win over the file.
    """
    text = source if isinstance(source, str) else read_file(os.fspath(source)).decode("utf-8", "replace")
    document, args = _decode(text, registry, gates)
    return complete(document, args, gates=gates, registry=registry, overrides=overrides)


def defaults(*, gates: Gates, registry: Catalogue) -> Configuration:
    """Return the configuration of a scheduler without a file."""
    return complete(KubeSchedulerConfiguration(), (), gates=gates, registry=registry)


def complete(
    document: KubeSchedulerConfiguration,
    args: tuple[tuple[Args | Raw, ...], ...],
    *,
    gates: Gates,
    registry: Catalogue,
    overrides: Overrides | None = None,
) -> Configuration:
    """Default, validate and build a decoded document; `args` are the decoded arguments of each profile, in order."""
    # Flags win over the file, and are validated with it: an error in a flag has the path of the field.
    election = msgspec.structs.replace(document.leader_election.defaulted(), **(overrides or {}))
    document = msgspec.structs.replace(
        document, leader_election=election, client_connection=document.client_connection.defaulted()
    )
    # Before defaults: which plugin may be named at which point is part of the emulated release.
    registry = at_release(registry, gates.emulated)
    profiles = _default_profiles(document.profiles, args, gates, registry)
    errors = validate(document, profiles, gates)
    if errors:
        raise ConfigError("", aggregate(errors))
    extenders = build_extenders(document.extenders)
    built = build_profiles(ignore_managed_resources(extenders, profiles), registry, gates)
    # As kube-scheduler: contention profiling is on by default if profiling is.
    contention = document.enable_contention_profiling
    return Configuration(
        parallelism=document.parallelism,
        leader_election=document.leader_election,
        client_connection=document.client_connection,
        enable_profiling=document.enable_profiling,
        enable_contention_profiling=document.enable_profiling if contention is None else contention,
        percentage_of_nodes_to_score=document.percentage_of_nodes_to_score,
        pod_initial_backoff_seconds=document.pod_initial_backoff_seconds,
        pod_max_backoff_seconds=document.pod_max_backoff_seconds,
        profiles=built,
        extenders=extenders,
        delay_cache_until_active=document.delay_cache_until_active,
    )


def _decode(
    text: str, registry: Catalogue, gates: Gates
) -> tuple[KubeSchedulerConfiguration, tuple[tuple[Args | Raw, ...], ...]]:
    """Return the document and the arguments of its plugins. Strictness errors are raised together, after other errors."""
    # Repeated keys of YAML are complaints and no errors yet: kube-scheduler reports them together with unknown fields, and only
    # if nothing worse is wrong.
    tree, complaints = _parse(text)
    api_version, kind = _kind_of(tree)
    if not kind:
        raise ConfigError("", f"Object 'Kind' is missing in '{text}'")
    if not api_version.rpartition("/")[2]:
        raise ConfigError("", f"Object 'apiVersion' is missing in '{text}'")
    cls = _registered(api_version, kind, registry)
    # A field that the emulated release does not have is unknown, as it would be to that release.
    unknown = frozenset() if gates.behaviour.has_pod_group_post_filter else frozenset({"podGroupPostFilter"})
    decoded, strict = decode(cls, tree, with_type=True, unknown=unknown)
    complaints += strict
    args: tuple[tuple[Args | Raw, ...], ...] = ()
    if isinstance(decoded, KubeSchedulerConfiguration):
        args, strict = _decode_args(decoded, registry)
        complaints += strict
    if complaints:
        raise ConfigError("", _strict_text(complaints))
    if not isinstance(decoded, KubeSchedulerConfiguration):
        raise ConfigError("", f"couldn't decode as KubeSchedulerConfiguration, got {api_version}, Kind={kind}: ")
    return decoded, args


def _parse(text: str) -> tuple[Value, list[str]]:
    if not is_json(text):
        tree, repeated = read_yaml(text)
        lines = "\n  ".join(repeated)
        return tree, [f"yaml: unmarshal errors:\n  {lines}"] if repeated else []
    try:
        return read_json(text), []
    except ConfigError as error:
        raise ConfigError("", f"couldn't get version/kind; json parse error: {error}") from error


def _kind_of(tree: Value) -> tuple[str, str]:
    """Return apiVersion and kind, empty if absent. Their keys may be in any case; of several the last one counts."""
    if tree is None:
        return "", ""
    if not isinstance(tree, Object):
        raise _no_kind(tree, f"Go value of type {_KIND_STRUCT}")
    found = {"apiVersion": "", "kind": ""}
    for key, value in tree.pairs:
        # Kept quirk: Go's JSON finds fields in any case, and this first look is not strict. The strict walk afterwards takes
        # `Kind` for an unknown field.
        name = _FOLDED.get(key.casefold())
        if name is None or value is None:
            continue
        if not isinstance(value, str) or isinstance(value, Number):
            raise _no_kind(value, f"Go struct field .{name} of type string")
        found[name] = value
    api_version = found["apiVersion"]
    if api_version.count("/") > 1:
        raise ConfigError("", f"unexpected GroupVersion string: {api_version}")
    return api_version.removeprefix("/"), found["kind"]


def _no_kind(value: Value, wanted: str) -> ConfigError:
    text = f"json: cannot unmarshal {json_type(value)} into {wanted}"
    return ConfigError("", f"couldn't get version/kind; json parse error: {text}")


def _registered(api_version: str, kind: str, registry: Catalogue) -> type[msgspec.Struct]:
    """Return the type of a kind; raise ConfigError for an unknown kind."""
    if api_version == API_VERSION:
        if kind == KIND:
            return KubeSchedulerConfiguration
        for name, known in registry.items():
            if known.args is not None and kind == f"{name}Args":
                return known.args
    detail = f"no kind {go_quote(kind)} is registered for version {go_quote(api_version)} in scheme {go_quote(SCHEME)}"
    raise ConfigError("", detail)


def _decode_args(
    document: KubeSchedulerConfiguration, registry: Catalogue
) -> tuple[tuple[tuple[Args | Raw, ...], ...], list[str]]:
    """Return the arguments of each profile's pluginConfig, and the strictness errors in them."""
    complaints = []
    decoded = []
    for i, profile in enumerate(document.profiles):
        row: list[Args | Raw] = []
        for j, entry in enumerate(profile.plugin_config):
            try:
                args, strict = _decode_one(entry, registry)
            except ConfigError as error:
                raise ConfigError("", f"decoding .profiles[{i}].pluginConfig[{j}]: {error}") from error
            # A type error ends the walk. Strictness errors are collected over all profiles. The words `strict decoding error`
            # appear twice in each, as kube-scheduler wraps them.
            row.append(args)
            if strict:
                inner = f"decoding args for plugin {entry.name}: {_strict_text(strict)}"
                complaints.append(f"decoding .profiles[{i}].pluginConfig[{j}]: {_strict_text([inner])}")
        decoded.append(tuple(row))
    return tuple(decoded), complaints


def _decode_one(entry: PluginConfig, registry: Catalogue) -> tuple[Args | Raw, list[str]]:
    """Return the arguments of one plugin: typed if the plugin's type is known, else raw."""
    known = registry.get(entry.name)
    if known is None or known.args is None:
        return entry.args, []
    try:
        api_version, kind = _kind_of(entry.args.value)
        # Kept quirk: an args object without apiVersion gets that of the file's group, and without kind that of its plugin. One
        # with a group and no version is an error.
        api_version = API_VERSION if api_version in ("", f"{API_GROUP}/") else api_version
        kind = kind or f"{entry.name}Args"
        if api_version.endswith("/"):
            raise ConfigError("", f"Object 'apiVersion' is missing in '{entry.args.json()}'")
        decoded, strict = decode(_registered(api_version, kind, registry), entry.args.value, with_type=True)
    except ConfigError as error:
        raise ConfigError("", f"decoding args for plugin {entry.name}: {error}") from error
    if not isinstance(decoded, known.args):
        wanted = f"{entry.name}Args.{API_GROUP}"
        raise ConfigError("", f"args for plugin {entry.name} were not of type {wanted}, got {kind}.{API_GROUP}")
    return decoded, strict


def _strict_text(complaints: list[str]) -> str:
    return f"strict decoding error: {', '.join(complaints)}"


def _default_profiles(
    profiles: tuple[KubeSchedulerProfile, ...],
    args: tuple[tuple[Args | Raw, ...], ...],
    gates: Gates,
    registry: Catalogue,
) -> tuple[MergedProfile, ...]:
    """Return the profiles with default plugins and arguments. A file without profiles has one empty profile."""
    if not profiles:
        profiles, args = (KubeSchedulerProfile(),), ((),)
    only_one = len(profiles) == 1
    merged = []
    for profile, given in zip(profiles, args, strict=True):
        name = profile.scheduler_name
        if name is None:
            # Only a single profile has a default name. With several, validation requires one.
            name = DEFAULT_SCHEDULER_NAME if only_one else ""
        # Arguments first as the file has them, then defaults for all other enabled plugins, sorted by name. This order is that
        # of the error paths, pluginConfig[0], [1] and so on.
        plugins = merge(default_plugins(gates), profile.plugins)
        config = [
            (entry.name, each.defaulted(gates) if isinstance(each, Args) else each)
            for entry, each in zip(profile.plugin_config, given, strict=True)
        ]
        configured = {entry.name for entry in profile.plugin_config}
        for plugin in sorted(needed(plugins) - configured):
            known = registry.get(plugin)
            if known is not None and known.args is not None:
                config.append((plugin, known.args().defaulted(gates)))
        merged.append(MergedProfile(name, profile.percentage_of_nodes_to_score, plugins, tuple(config)))
    return tuple(merged)
