"""The flags of old releases, read as these releases read them.

In: a parsed command line with `--legacy-version`. Out: a `LegacyScheduler`, and the notices that the release prints. Without a
file the flags are applied over the release's defaults. With `--config` (from 1.10 on) the file decides, and flags with a field
in it are ignored. A flag that the release does not have is refused.
"""

from __future__ import annotations

import msgspec

from kubesched.errors import ConfigError
from kubesched.scheduler.config import ClientConnection, read_pairs
from kubesched.scheduler.legacy import (
    ComponentConfig,
    LegacyScheduler,
    PolicyFlags,
    Release,
    load_component_config,
    release_of,
    source_of,
)
from kubesched.scheduler.legacy.policies.componentconfig import OldLeaderElection
from kubesched.scheduler.legacy.releases import LEGACY_GATES
from kubesched.server.options.flags import CONNECTION_FIELDS, ELECTION_FIELDS
from kubesched.server.options.flagset import Parsed
from kubesched.server.options.own_flags import LEGACY_FLAGS, LEGACY_RELEASES, NOTICES, SINCE, UNTIL

_IN_THE_FILE = frozenset(
    {flag.name for flag in LEGACY_FLAGS} | {*ELECTION_FIELDS, *CONNECTION_FIELDS, "profiling", "contention-profiling"}
)


def refuse_old_flags(parsed: Parsed) -> None:
    """Raise ConfigError if a flag of an old release was given without --legacy-version."""
    given = sorted(flag.name for flag in LEGACY_FLAGS if flag.name in parsed.given)
    if given:
        raise ConfigError(
            "", f"--{given[0]} is a flag of old releases: say which one with --legacy-version={'|'.join(LEGACY_RELEASES)}"
        )


def split_gates(parsed: Parsed) -> tuple[dict[str, bool], dict[str, bool]]:
    """Return the feature gates that were given: those of old releases, and today's."""
    given = read_pairs(parsed["feature-gates"])
    old = {name: on for name, on in given.items() if name in LEGACY_GATES}
    return old, {name: on for name, on in given.items() if name not in old}


def read_legacy(parsed: Parsed) -> LegacyScheduler:
    """Return the scheduler of the old release that the flags describe."""
    if parsed["legacy-version"] not in LEGACY_RELEASES:
        raise ConfigError("", f"--legacy-version: {parsed['legacy-version']!r} is not one of {', '.join(LEGACY_RELEASES)}")
    release = release_of(parsed["legacy-version"])
    for name in sorted(parsed.given):
        if not SINCE.get(name, 0) <= release.minor <= UNTIL.get(name, release.minor):
            raise ConfigError("", f"--{name}: {release} has no such flag")
    gates = split_gates(parsed)[0]
    if parsed["config"]:
        config = load_component_config(parsed["config"], release)
    else:
        config = _from_flags(parsed, release)
    return LegacyScheduler(release, config.defaulted(release), gates)


def notices(parsed: Parsed, release: Release) -> list[str]:
    """Return the notices that the release prints about the given flags."""
    notes = [
        f"Flag --{name} has been deprecated, {text}"
        for name, (since, text) in sorted(NOTICES.items())
        if name in parsed.given and release.minor >= since
    ]
    if parsed["config"]:
        notes += [f"Flag --{name} has no effect beside --config" for name in sorted(parsed.given & _IN_THE_FILE)]
    return notes


def _from_flags(parsed: Parsed, release: Release) -> ComponentConfig:
    """Return the configuration that flags alone make."""
    port = parsed["port"]
    if not 0 <= port <= 65535:
        raise ConfigError("", f"--port {port} must be between 0 and 65535, inclusive. 0 for turning off insecure (HTTP) port")
    source = source_of(
        PolicyFlags(
            parsed["algorithm-provider"],
            parsed["policy-config-file"],
            parsed["policy-configmap"],
            parsed["policy-configmap-namespace"] or "kube-system",
            parsed["use-legacy-policy-config"],
        ),
        release,
    )
    lock = {"resource_name": parsed["lock-object-name"], "resource_namespace": parsed["lock-object-namespace"]}
    address = parsed["address"]
    address = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    config = ComponentConfig(
        scheduler_name=parsed["scheduler-name"],
        hard_pod_affinity_symmetric_weight=parsed["hard-pod-affinity-symmetric-weight"],
        leader_election=OldLeaderElection(**(lock | parsed.fields(ELECTION_FIELDS))),
        client_connection=msgspec.structs.replace(ClientConnection(), **parsed.fields(CONNECTION_FIELDS)),
        healthz_bind_address=address,
        enable_profiling=parsed["profiling"],
        enable_contention_profiling=parsed["contention-profiling"] if "contention-profiling" in parsed.given else None,
        failure_domains=parsed["failure-domains"],
    )
    return config.with_source(source)
