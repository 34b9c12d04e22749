"""Printing a configuration: the effective document, as `--write-config-to` and `config show` write it."""

from __future__ import annotations

import json
from typing import Any

import yaml

from kubesched.config.types import API_VERSION, KIND, Configuration, Profile
from kubesched.config.wire import Raw, encode, plain


def effective(configuration: Configuration) -> dict[str, Any]:
    """Return the complete v1 document: every default filled in, arguments of the plugins in use sorted by name."""
    document: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "clientConnection": encode(configuration.client_connection),
        "enableContentionProfiling": configuration.enable_contention_profiling,
        "enableProfiling": configuration.enable_profiling,
        "kind": KIND,
        "leaderElection": encode(configuration.leader_election),
        "parallelism": configuration.parallelism,
        "percentageOfNodesToScore": configuration.percentage_of_nodes_to_score,
        "podInitialBackoffSeconds": configuration.pod_initial_backoff_seconds,
        "podMaxBackoffSeconds": configuration.pod_max_backoff_seconds,
        "profiles": [_profile(profile) for profile in configuration.profiles],
    }
    if configuration.extenders:
        document["extenders"] = [encode(extender) for extender in configuration.extenders]
    if configuration.delay_cache_until_active:
        document["delayCacheUntilActive"] = True
    return document


def as_yaml(document: dict[str, Any]) -> str:
    """Return a document as YAML with sorted keys, the reference's way."""
    text: str = yaml.dump(document, Dumper=_Dumper, default_flow_style=False, sort_keys=True, allow_unicode=True)
    return text


def as_json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _profile(profile: Profile) -> dict[str, Any]:
    document: dict[str, Any] = {"plugins": encode(profile.plugins), "schedulerName": profile.scheduler_name}
    if profile.percentage_of_nodes_to_score is not None:
        document["percentageOfNodesToScore"] = profile.percentage_of_nodes_to_score
    config = []
    for name, args in profile.args.items():
        if isinstance(args, Raw):
            config.append({"args": plain(args.value), "name": name})
        else:
            typed = {"apiVersion": API_VERSION, "kind": f"{name}Args", **encode(args)}
            config.append({"args": typed, "name": name})
    if config:
        document["pluginConfig"] = config
    return document


class _Dumper(yaml.CSafeDumper):
    """The dumper, writing an empty string as the reference does: in double quotes."""


def _string(dumper: yaml.CSafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text else '"')


_Dumper.add_representer(str, _string)
