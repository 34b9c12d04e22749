"""Validation of a policy, with the texts of its release.

`check_policy` reports all errors together. `check_argument` and `shape_of` are checks that ended the old program at the first
error.
"""

from __future__ import annotations

from kubesched.errors import ConfigError
from kubesched.kube.api import is_extended_name
from kubesched.kube.values import aggregate, go_quote, qualified_name_complaints
from kubesched.scheduler.legacy.policies.policy import (
    Policy,
    PolicyExtender,
    PredicatePolicy,
    PriorityPolicy,
    RequestedToCapacityRatioArguments,
)
from kubesched.scheduler.legacy.releases import Release

MAX_INT = (1 << 63) - 1
MAX_WEIGHT = MAX_INT // 10
"""The first weight that is too large, also in 1.17, where scores go up to 100."""


def check_policy(policy: Policy, release: Release) -> None:
    """Raise ConfigError with all errors of weights, custom priorities and extenders."""
    errors: list[str] = []
    declared: dict[str, PriorityPolicy] = {}
    for priority in policy.priorities or ():
        errors += _weight_errors(priority, release)
        if release.forces_names:
            errors += _custom_errors(priority, declared)
    errors += _extender_errors(policy.extenders, release)
    if errors:
        raise ConfigError("", aggregate(errors))


def _weight_errors(priority: PriorityPolicy, release: Release) -> list[str]:
    text = f"Priority {priority.name} should have a positive weight applied to it"
    if release.minor < 7:
        return [text] if priority.weight <= 0 else []
    return [] if 0 < priority.weight < MAX_WEIGHT else [f"{text} or it has overflown"]


def _custom_errors(priority: PriorityPolicy, declared: dict[str, PriorityPolicy]) -> list[str]:
    """Return the errors of custom priorities that 1.17 merges by kind: two ratios, or one kind with different weights."""
    argument = priority.argument
    if argument is None:
        return []
    if argument.label_preference is not None:
        kind = "LabelPreference"
    elif argument.service_anti_affinity is not None:
        kind = "ServiceAntiAffinity"
    elif argument.requested_to_capacity_ratio_arguments is not None:
        kind = "RequestedToCapacityRatio"
    else:
        return [f"No priority arguments set for priority {priority.name}"]
    before = declared.get(kind)
    if before is not None and kind == "RequestedToCapacityRatio":
        return [f"Priority {go_quote(priority.name)} redeclares custom priority {go_quote(kind)}, from:{go_quote(before.name)}"]
    if before is not None and before.weight != priority.weight:
        # Kept quirk: two spaces after the kind.
        return [f"{kind}  priority {go_quote(priority.name)} has a different weight with {go_quote(before.name)}"]
    declared[kind] = priority
    return []


def _extender_errors(extenders: tuple[PolicyExtender, ...], release: Release) -> list[str]:
    """Return the errors of extenders: weights, managed resources, and more than one that binds."""
    errors: list[str] = []
    managed: set[str] = set()
    for extender in extenders:
        text = f"Priority for extender {extender.url_prefix} should have a"
        if release.minor < 7:
            errors += [f"{text} non negative weight applied to it"] if extender.weight < 0 else []
        elif extender.prioritize_verb and extender.weight <= 0:
            errors.append(f"{text} positive weight applied to it")
        for resource in extender.managed_resources:
            complaints = qualified_name_complaints(resource.name)
            errors += complaints
            if not complaints and not is_extended_name(resource.name):
                errors.append(f"{resource.name} is an invalid extended resource name")
            if resource.name in managed:
                errors.append(f"Duplicate extender managed resource name {resource.name}")
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        errors.append(f"Only one extender can implement bind, found {binders}")
    return errors


def check_argument(entry: PredicatePolicy | PriorityPolicy) -> None:
    """Raise ConfigError if an entry's argument is not of exactly one kind."""
    if entry.argument is not None:
        kind = "Predicate" if isinstance(entry, PredicatePolicy) else "Priority"
        n_args = sum(getattr(entry.argument, name) is not None for name in entry.argument.__struct_fields__)
        if n_args != 1:
            text = f"Exactly 1 {kind.lower()} argument is required, numArgs: {n_args}, {kind}: {entry.name}"
            raise ConfigError("", text)


def shape_of(arguments: RequestedToCapacityRatioArguments, release: Release) -> tuple[tuple[int, int], ...]:
    """Return the points of a shape in the release's range of scores; raise ConfigError for an invalid shape."""
    most = release.max_score
    points = tuple((point.utilization, point.score * (most // 10)) for point in arguments.shape)
    error = _shape_error(points, most)
    if error:
        raise ConfigError("", f"invalid RequestedToCapacityRatioPriority arguments: {error}")
    return points


def _shape_error(points: tuple[tuple[int, int], ...], most: int) -> str:
    """Return the first error of a shape, empty for a valid one. Kept quirk: `valuses` in one text."""
    if not points:
        return "at least one point must be specified"
    for at in range(1, len(points)):
        before, here = points[at - 1][0], points[at][0]
        if before >= here:
            return f"utilization values must be sorted. Utilization[{at - 1}]=={before} >= Utilization[{at}]=={here}"
    for at, (utilization, score) in enumerate(points):
        if utilization < 0:
            return f"utilization values must not be less than 0. Utilization[{at}]=={utilization}"
        if utilization > 100:
            return f"utilization values must not be greater than 100. Utilization[{at}]=={utilization}"
        if score < 0:
            return f"score values must not be less than 0. Score[{at}]=={score}"
        if score > most:
            return f"score valuses not be greater than {most}. Score[{at}]=={score}"
    return ""
