"""Printing a configuration, for `--write-config-to` and `config show`: the complete v1 document as YAML or JSON.

The YAML looks like that of kube-scheduler's library (sigs.k8s.io/yaml): keys sorted with numbers by value (`a2` before `a10`),
text in double quotes only if it would be read as something else (`"true"`, `"1:30"`), several lines as a block.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

import yaml

from kubesched.scheduler.config.documents.wire import Raw, encode, plain
from kubesched.scheduler.config.documents.yamltext import is_text
from kubesched.scheduler.config.types import API_VERSION, KIND, Configuration, Profile

_ENDLESS = 1 << 30  # a width at which no line is broken
_LONGEST_WITHOUT_EXPONENT = 6
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")  # 1:30 is 90 to other readers of YAML


def effective(configuration: Configuration) -> dict[str, Any]:
    """Return the complete v1 document: all defaults filled in, the arguments of enabled plugins sorted by name."""
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
    # Printed only when set, as Go does for a field with `omitempty`.
    if configuration.delay_cache_until_active:
        document["delayCacheUntilActive"] = True
    return document


def as_yaml(document: dict[str, Any]) -> str:
    """Return a document as YAML with sorted keys."""
    text: str = yaml.dump(
        document, Dumper=_Dumper, default_flow_style=False, sort_keys=False, allow_unicode=True, width=_ENDLESS
    )
    return text


def as_json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _profile(profile: Profile) -> dict[str, Any]:
    """Return one profile; arguments with a type get apiVersion and kind."""
    document: dict[str, Any] = {"plugins": encode(profile.plugins), "schedulerName": profile.scheduler_name}
    if profile.percentage_of_nodes_to_score is not None:
        document["percentageOfNodesToScore"] = profile.percentage_of_nodes_to_score
    config = []
    for name, args in profile.args.items():
        # Arguments of plugins without a known type are printed as they were given.
        if isinstance(args, Raw):
            config.append({"args": plain(args.value), "name": name})
        else:
            typed = {"apiVersion": API_VERSION, "kind": f"{name}Args", **encode(args)}
            config.append({"args": typed, "name": name})
    if config:
        document["pluginConfig"] = config
    return document


class _Dumper(yaml.CSafeDumper):
    """A dumper without implicit resolvers: the functions below decide what is quoted."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def scalar(self, text: str, style: str | None = None) -> yaml.Node:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _string(dumper: _Dumper, text: str) -> yaml.Node:
    """Write text plain, as a block if it has several lines, or in double quotes if it would be read as another type."""
    return dumper.scalar(text, "|" if "\n" in text else None if is_text(text) and not _BASE_60.fullmatch(text) else '"')


def _integer(dumper: _Dumper, value: int) -> yaml.Node:
    return dumper.scalar(str(value)) if -(1 << 63) <= value < 1 << 64 else _float(dumper, float(value))


def _float(dumper: _Dumper, value: float) -> yaml.Node:
    # Go's YAML goes through JSON, which has one kind of number: 1.0 is printed as 1.
    if value.is_integer() and -(1 << 63) <= int(value) < 1 << 64:
        return _integer(dumper, int(value))
    digits = Decimal(repr(value)).normalize()
    text = f"{digits:f}" if -4 <= digits.adjusted() < _LONGEST_WITHOUT_EXPONENT else f"{digits:e}"
    return dumper.scalar(re.sub(r"e([+-])(\d)$", r"e\g<1>0\2", text))


def _mapping(dumper: _Dumper, fields: dict[str, Any]) -> yaml.Node:
    ordered = {key: fields[key] for key in sorted(fields, key=cmp_to_key(_compare_keys))}
    return dumper.represent_mapping("tag:yaml.org,2002:map", ordered.items())


def _compare_keys(one: str, other: str) -> int:
    """Compare keys: numbers inside them by value, other characters before letters."""
    # The place of the first difference decides: `a2` and `a10` differ at 2 and 1, the numbers from there are 2 and 10, so `a2`
    # comes first. With two letters the letters decide, and a letter comes after anything else.
    at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if at is None:
        return len(one) - len(other)
    a, b = one[at], other[at]
    # Letters after everything else: `a_b` comes before `ab`.
    if a.isalpha() or b.isalpha():
        return ord(a) - ord(b) if a.isalpha() and b.isalpha() else 1 if a.isalpha() else -1
    before = re.search(r"\d*$", one[:at])
    # After a digit that counts, a 0 is part of its number: 10 comes after 1, and 101 after 11 that follows 1.
    lead = "1" if "0" in (a, b) and before and before[0].strip("0") else ""
    digits = [re.match(r"\d*", text[at:]) for text in (one, other)]
    numbers = [int(lead + found[0] or "0") if found else 0 for found in digits]
    if numbers[0] != numbers[1]:
        return numbers[0] - numbers[1]
    lengths = [len(found[0]) if found else 0 for found in digits]
    return lengths[0] - lengths[1] or ord(a) - ord(b)


_Dumper.yaml_implicit_resolvers = {}  # any scalar may stand plain
_Dumper.add_representer(str, _string)
_Dumper.add_representer(bool, lambda dumper, value: dumper.scalar("true" if value else "false"))
_Dumper.add_representer(type(None), lambda dumper, _: dumper.scalar("null"))
_Dumper.add_representer(int, _integer)
_Dumper.add_representer(float, _float)
_Dumper.add_representer(dict, _mapping)
