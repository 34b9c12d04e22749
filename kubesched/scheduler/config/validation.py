"""Validation of a document with its defaults: all field errors, in kube-scheduler's order and words.

Whether the plugins make a profile that can run is checked later (`building`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kubesched.scheduler.config.args import Args, validate_extended_resource
from kubesched.scheduler.config.documents.fielderrors import FieldError, Path, Verbatim, duplicate, invalid, required
from kubesched.scheduler.config.documents.wire import Raw
from kubesched.scheduler.config.releases.gates import Gates
from kubesched.scheduler.config.types import (
    API_VERSION,
    Extender,
    KubeSchedulerConfiguration,
    LeaderElection,
    Plugins,
    PluginSet,
)

# Removed volume limit plugins of cloud providers. Enabling one is an error with its name, except under multiPoint, where it is
# an unknown plugin. The "v1" in the text is kube-scheduler's.
REMOVED_PLUGINS = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
_REMOVED = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'
_UNCHECKED_POINTS = ("multi_point", "placement_generate", "placement_score")
_CHECKED_POINTS = {
    field.encode_name: field.name for field in msgspec.structs.fields(Plugins) if field.name not in _UNCHECKED_POINTS
}

# Kept quirk: kube-scheduler registers this check under a wrong name, so it runs only when the plugin is built. Then the path
# has no prefix, and the error names the plugin.
CHECKED_WHEN_BUILT = frozenset({"NodeResourcesFit"})


@dataclass(frozen=True, slots=True)
class MergedProfile:
    """A profile after defaulting: merged plugin sets, and arguments for all plugins that have some."""

    scheduler_name: str
    percentage_of_nodes_to_score: int | None
    plugins: Plugins
    plugin_config: tuple[tuple[str, Args | Raw], ...]


def validate(document: KubeSchedulerConfiguration, profiles: Sequence[MergedProfile], gates: Gates) -> list[FieldError]:
    """Return all errors; `profiles` are the document's profiles with defaults."""
    errors: list[FieldError] = []
    burst = document.client_connection.burst
    if burst < 0:
        errors.append(invalid(Path("clientConnection").child("burst"), burst, "must be non-negative"))
    errors += _leader_election(document.leader_election, Path("leaderElection"))
    if document.parallelism <= 0:
        detail = "should be an integer value greater than zero"
        errors.append(invalid(Path("parallelism"), document.parallelism, detail))
    # Validation sees profiles with their defaults. So an error may be about something that the file does not have, with an
    # index behind the file's own entries.
    errors += _profiles(profiles, gates)
    errors += _percentage(document.percentage_of_nodes_to_score, Path("percentageOfNodesToScore"))
    initial, longest = document.pod_initial_backoff_seconds, document.pod_max_backoff_seconds
    if initial <= 0:
        errors.append(invalid(Path("podInitialBackoffSeconds"), initial, "must be greater than 0"))
    # Not `elif`: with both wrong, both are reported.
    if longest < initial:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        errors.append(invalid(Path("podMaxBackoffSeconds"), longest, detail))
    return errors + _extenders(document.extenders, Path("extenders"))


def _leader_election(election: LeaderElection, path: Path) -> list[FieldError]:
    """Check leader election, if it is on: positive durations, the lease longer than the renew deadline, a lock of kind leases
    with a name."""
    if not election.leader_elect:
        return []
    errors = []
    for name, duration in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        if duration <= 0:
            errors.append(invalid(path.child(name), duration, "must be greater than zero"))
    if election.lease_duration <= election.renew_deadline:
        # Kept quirk: the error shows the deadline, not the lease duration.
        errors.append(invalid(path.child("leaseDuration"), election.renew_deadline, "must be greater than `RenewDeadline`"))
    for name, text in (
        ("resourceLock", election.resource_lock),
        ("resourceNamespace", election.resource_namespace),
        ("resourceName", election.resource_name),
    ):
        if not text:
            errors.append(required(path.child(name)))
    if election.resource_lock != "leases":
        detail = 'resourceLock value must be "leases"'
        errors.append(invalid(path.child("resourceLock"), election.resource_lock, detail))
    return errors


def _percentage(percentage: int | None, path: Path) -> list[FieldError]:
    if percentage is None or 0 <= percentage <= 100:
        return []
    return [invalid(path, percentage, "not in valid range [0-100]")]


def _profiles(profiles: Sequence[MergedProfile], gates: Gates) -> list[FieldError]:
    """Check each profile, then what profiles must have in common."""
    if not profiles:
        return [required(Path("profiles"))]
    errors = []
    seen: dict[str, Path] = {}
    for at, profile in enumerate(profiles):
        path = Path("profiles").index(at)
        where = path.child("schedulerName")
        # Only possible with several profiles, or with an empty name in the file: a single one without a name has a default.
        if not profile.scheduler_name:
            errors.append(required(where))
        errors += _percentage(profile.percentage_of_nodes_to_score, path.child("percentageOfNodesToScore"))
        errors += _removed_plugins(profile.plugins, path.child("plugins"))
        errors += _plugin_config(profile, path.child("pluginConfig"), gates)
        # Kept quirk: the duplicate is reported with the path of the other profile's name, and not with the name.
        if profile.scheduler_name in seen:
            errors.append(duplicate(where, seen[profile.scheduler_name]))
        seen[profile.scheduler_name] = where
    return errors + _common_queue_sort(profiles)


def _removed_plugins(plugins: Plugins, path: Path) -> list[FieldError]:
    errors = []
    for wire_name, point in _CHECKED_POINTS.items():
        for at, name in enumerate(plugins.at(point).enabled_names):
            if name in REMOVED_PLUGINS:
                errors.append(invalid(path.child(wire_name, "enabled").index(at), name, _REMOVED))
    return errors


def _plugin_config(profile: MergedProfile, path: Path, gates: Gates) -> list[FieldError]:
    """Check the arguments of one profile: each plugin once, no removed plugin, valid values."""
    errors = []
    seen = set()
    for at, (name, args) in enumerate(profile.plugin_config):
        where = path.index(at)
        if name in seen:
            errors.append(duplicate(where, name))
        seen.add(name)
        if name in REMOVED_PLUGINS:
            errors.append(invalid(where, name, _REMOVED))
        # `Raw`: arguments of a plugin without a known type. The plugin reads them itself when it is built.
        elif isinstance(args, Args) and name not in CHECKED_WHEN_BUILT:
            errors += args.validate(where.child("args"), gates)
    return errors


def _common_queue_sort(profiles: Sequence[MergedProfile]) -> list[FieldError]:
    """Check that all profiles have the same QueueSort plugin with the same arguments: they share one queue."""
    path, first = Path("profiles"), profiles[0]
    # All profiles are compared with the first one.
    canon = first.plugins.queue_sort
    names = canon.enabled_names
    errors = []
    if len(names) > 1:
        where = path.index(0).child("plugins", "queueSort", "Enabled")
        errors.append(invalid(where, len(names), "only one queue sort plugin can be enabled"))
    sorter = names[0] if names else ""
    canon_args = _args_of(first, sorter) if sorter else Raw()
    # Only the queueSort lists are compared here. A QueueSort plugin that comes from multiPoint is compared when the profiles
    # are built (`building._check_same_queue`), with another text.
    for at, profile in enumerate(profiles[1:], start=1):
        queue_sort = profile.plugins.queue_sort
        if _lists(queue_sort) != _lists(canon):
            where = path.index(at).child("plugins", "queueSort")
            errors.append(invalid(where, queue_sort, "must be the same for all profiles"))
        for name, args in profile.plugin_config:
            if name == sorter and args != canon_args:
                where = path.index(at).child("pluginConfig", "args")
                shown = Verbatim(args.json()) if isinstance(args, Raw) else args
                errors.append(invalid(where, shown, "queueSort must be the same for all profiles"))
    return errors


def _lists(plugins: PluginSet) -> tuple[object, object]:
    return plugins.enabled or (), plugins.disabled or ()


def _args_of(profile: MergedProfile, plugin: str) -> Args | Raw:
    # The last entry of a name counts. A repeated one is an error anyway, reported elsewhere.
    found: Args | Raw = Raw()
    for name, args in profile.plugin_config:
        found = args if name == plugin else found
    return found


def _extenders(extenders: Sequence[Extender], path: Path) -> list[FieldError]:
    """Check extenders: weights, names of managed resources, each managed by one extender, one that binds."""
    errors = []
    managed: set[str] = set()
    for at, extender in enumerate(extenders):
        # A weight matters only to an extender that scores.
        if extender.prioritize_verb and extender.weight <= 0:
            where = path.index(at).child("weight")
            errors.append(invalid(where, extender.weight, "must have a positive weight applied to it"))
        for number, resource in enumerate(extender.managed_resources):
            where = path.index(at).child("managedResources").index(number).child("name")
            errors += validate_extended_resource(resource.name, where)
            if resource.name in managed:
                errors.append(invalid(where, resource.name, "duplicate extender managed resource name"))
            managed.add(resource.name)
    n_binders = sum(bool(extender.bind_verb) for extender in extenders)
    if n_binders > 1:
        found = f"found {n_binders} extenders implementing bind"
        errors.append(invalid(path, found, "only one extender can implement bind"))
    return errors
