"""The old releases 1.3, 1.4, 1.6, 1.13 and 1.17: what differs between them, by name.

A difference is an attribute of `Release`, for example `release.reads_yaml`. A Policy without a version means 1.17.
`LegacyContext` is what every predicate and priority gets when it is built.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from kubesched.errors import ConfigError


class _Fact:
    """A difference that holds from one minor release on, or before one."""

    def __init__(self, *, since: int = 0, before: int = 1 << 30) -> None:
        self._since, self._before = since, before

    def __get__(self, release: Release, owner: type[Release]) -> bool:
        return self._since <= release.minor < self._before


@dataclass(frozen=True, slots=True, order=True)
class Release:
    """A minor release of kube-scheduler 1.x."""

    minor: int

    has_order = _Fact(since=10)
    """Predicates run in a fixed order; before 1.10 in that of a Go map, which is random."""
    runs_plugins = _Fact(since=17)
    """Predicates and priorities are run as plugins of the framework."""
    names_failures = _Fact(before=10)
    """A refusal shows the short name of a failure instead of a sentence."""
    lists_ready_nodes = _Fact(before=8)
    """Nodes that are cordoned or not ready are left out before any predicate runs."""
    absent_means_default = _Fact(since=10)
    """A Policy without predicates (priorities) has the default ones; before 1.10 it had none."""
    reads_yaml = _Fact(since=15)
    """A Policy may be YAML."""
    is_strict = _Fact(since=17)
    """A Policy with unknown fields is refused."""
    defaults_kind = _Fact(since=17)
    """A Policy may leave out its kind and version."""
    folds_extender_keys = _Fact(since=8)
    """The keys of an extender are read in any case."""
    forces_names = _Fact(since=17)
    """Custom predicates and priorities lose the names that the Policy gives them."""
    has_priorities_of_pods = _Fact(since=8)
    """Pods have priorities, for the queue and for preemption."""
    checks_claims_first = _Fact(since=17)
    """A pod's claims must exist before any node is looked at."""
    waits_for_events = _Fact(since=8)
    """A refused pod waits for an event; before, it was tried again after its backoff."""
    reads_annotations = _Fact(before=6)
    """Affinity, tolerations, taints and the scheduler's name are annotations."""
    serves_securely = _Fact(since=13)
    """There is a secure port beside the plain one."""
    names_extender_version = _Fact(before=6)
    """Extenders are called under the policy's version, `/v1/filter`, with lower-case keys."""

    def __str__(self) -> str:
        return f"1.{self.minor}"

    @property
    def max_score(self) -> int:
        """Return the highest score of a priority."""
        return 100 if self.minor >= 17 else 10

    @property
    def stops_at_first(self) -> bool:
        """Return whether no more predicates run on a node after the first one that refuses it."""
        return self.minor == 3 or self.minor >= 10

    @property
    def gives_one_reason(self) -> bool:
        """Return whether a predicate gives one reason against a node, also if it has several."""
        return self.minor == 3 or self.runs_plugins

    @property
    def least_hard_weight(self) -> int:
        """Return the least hardPodAffinitySymmetricWeight that is allowed."""
        return 1 if self.minor >= 7 else 0

    @property
    def percentage_of_nodes(self) -> int | None:
        """Return the default of percentageOfNodesToScore; None: today's formula by the number of nodes."""
        if self.minor >= 14:
            return None
        return 50 if self.minor >= 12 else 100

    @property
    def max_backoff_seconds(self) -> int:
        """Return the longest backoff."""
        return 10 if self.minor >= 17 else 60

    @property
    def locks(self) -> tuple[str, ...]:
        """Return the kinds of lock objects for leader election."""
        if self.minor >= 17:
            return ("endpoints", "configmaps", "leases", "endpointsleases", "configmapsleases")
        return ("endpoints", "configmaps") if self.minor >= 8 else ("endpoints",)

    @property
    def default_lock(self) -> str:
        """Return the default kind of lock object."""
        return "endpointsleases" if self.minor >= 17 else "endpoints"

    @property
    def lost_lease(self) -> str:
        """Return the last log line of a replica that lost its lease."""
        return "leaderelection lost" if self.minor >= 17 else "lost master"


V1_3, V1_4, V1_6, V1_13, V1_17 = map(Release, (3, 4, 6, 13, 17))
RELEASES = (V1_3, V1_4, V1_6, V1_13, V1_17)
LATEST = V1_17
_VERSION = re.compile(r"v?1\.(\d+)(\.\d+)?")


def release_of(version: str | Release) -> Release:
    """Return the release that a version such as `1.13` or `v1.17.4` belongs to; raise ConfigError for others."""
    if isinstance(version, Release):
        return version
    found = _VERSION.fullmatch(version.strip())
    release = Release(int(found[1])) if found else None
    if release not in RELEASES:
        known = ", ".join(map(str, RELEASES))
        raise ConfigError("", f"legacy version {version!r} is not known, expected one of {known}")
    assert release is not None
    return release


@dataclass(frozen=True, slots=True)
class LegacyGates:
    """The feature gates that added, removed or changed predicates and priorities."""

    taint_nodes_by_condition: bool = True
    resource_limits_priority_function: bool = False
    even_pods_spread: bool = False
    balance_attached_node_volumes: bool = False
    pod_overhead: bool = False
    affinity_in_annotations: bool = False

    @staticmethod
    def of(release: Release, switches: Mapping[str, bool] | None = None) -> LegacyGates:
        """Return a release's gates with these set; raise ConfigError for a gate that it does not have."""
        values = {"taint_nodes_by_condition": release.minor >= 12}
        for name, on in (switches or {}).items():
            since = _SINCE.get(name)
            if since is None or not since <= release.minor <= _UNTIL.get(name, release.minor):
                raise ConfigError("", f"legacy feature gate {name} does not exist in {release}")
            if name == "TaintNodesByCondition" and release.minor >= 17 and not on:
                raise ConfigError("", f"cannot set feature gate {name} to false, feature is locked to true")
            values[_FIELDS[name]] = on
        return LegacyGates(**values)


_SINCE = {
    "TaintNodesByCondition": 8,
    "ResourceLimitsPriorityFunction": 9,
    "EvenPodsSpread": 16,
    "BalanceAttachedNodeVolumes": 11,
    "PodOverhead": 16,
    "AffinityInAnnotations": 6,
}
_UNTIL = {"AffinityInAnnotations": 7}
_FIELDS = {"".join(word.capitalize() for word in each.name.split("_")): each.name for each in fields(LegacyGates)}

LEGACY_GATES = frozenset(_FIELDS)
"""The names of all these gates."""


@dataclass(frozen=True, slots=True)
class LegacyContext:
    """The settings of one legacy scheduler: the `args` of all its plugins."""

    release: Release = LATEST
    gates: LegacyGates = field(default_factory=LegacyGates)
    hard_pod_affinity_weight: int = 1
    ignored_resources: frozenset[str] = frozenset()
    max_pd_volumes: int | None = None
    """KUBE_MAX_PD_VOLS in the environment: the volume limit of a node that states none."""
    bind_timeout_seconds: int | None = None
    """How long CheckVolumeBinding waits for volumes; None is the default."""
    to_the_letter: bool = False
    """Repeat the release's bugs too. Without it they are fixed as in later releases."""
