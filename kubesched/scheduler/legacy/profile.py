"""From a policy or an algorithm provider to an `Algorithm`: a profile for today's engine, with its extenders.

    1. which predicates and priorities run      `select` (policy) or `Registry.provider`
    2. checks: weights, sums, duplicates        `check_policy`, `check_hard_weight`, `check_total`, `names_to_run`
    3. names to plugins                         `_create`: predicates in the release's order, priorities with weights
    4. one by one, or as one filter             `_grouped`: `AllOf` where all predicates run on every node
    5. the points of the profile                `_points`, and in 1.17 the plugins of the file

Errors are those of the old program, with its prefix. Those that ended the program at once have none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kubesched.errors import ConfigError
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.config import Extender, PluginConfig, build_extenders
from kubesched.scheduler.framework import Handle, Plugin, Profile
from kubesched.scheduler.legacy import wording
from kubesched.scheduler.legacy.algorithms import FILTER_PLUGINS, SCORE_PLUGINS
from kubesched.scheduler.legacy.custom_functions import FunctionPredicate
from kubesched.scheduler.legacy.framework_plugins import FRAMEWORK, Framework, OldPlugins, build, check, final, known_plugins
from kubesched.scheduler.legacy.policies.policy import Policy
from kubesched.scheduler.legacy.policies.policy_validation import MAX_INT, check_policy
from kubesched.scheduler.legacy.policies.providers import DEFAULT_PROVIDER, is_listed, ordered
from kubesched.scheduler.legacy.policies.selection import Selected, select
from kubesched.scheduler.legacy.predicates.base import AllOf
from kubesched.scheduler.legacy.predicates.conditions import ListedNodes
from kubesched.scheduler.legacy.predicates.volume_counts import max_volumes_from
from kubesched.scheduler.legacy.predicates.volumes import ClaimsExist
from kubesched.scheduler.legacy.priorities.preferences import EqualPriority
from kubesched.scheduler.legacy.registry import Custom, Registry
from kubesched.scheduler.legacy.releases import LATEST, LegacyContext, LegacyGates, Release, release_of
from kubesched.scheduler.legacy.wording import fit_error
from kubesched.scheduler.plugins.default_binder import DefaultBinder
from kubesched.scheduler.plugins.default_preemption.plugin import DefaultPreemption, DefaultPreemptionArgs
from kubesched.scheduler.plugins.priority_sort import PrioritySort
from kubesched.scheduler.plugins.scheduling_gates import SchedulingGates

DEFAULT_SCHEDULER_NAME = "default-scheduler"


@dataclass(frozen=True, slots=True)
class Options:
    """The settings beside policy and provider, from flags or a component configuration."""

    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    hard_pod_affinity_symmetric_weight: int = 1
    disable_preemption: bool = False
    percentage_of_nodes_to_score: int | None = None
    """None is the release's own default."""
    feature_gates: Mapping[str, bool] | None = None
    """Feature gates that differ from the release's defaults."""
    bind_timeout_seconds: int | None = None
    """How long PreBind waits for volumes; None is today's default, which is the same."""
    to_the_letter: bool = False
    """Repeat the release's bugs: 1.17 ignores a policy's hardPodAffinitySymmetricWeight, counts the nodes with an image only
    when a node is added, and cuts weights to 32 bits; from 1.10 on, predicates that are not in the order are accepted and never
    run."""
    custom: Custom | None = None
    """Registered predicates and priorities; None: those of `register_fit_predicate` and the like."""
    plugins: OldPlugins = field(default_factory=OldPlugins)
    """`plugins` of a file of 1.17; `plugin_config` has their arguments."""
    plugin_config: tuple[PluginConfig, ...] = ()
    brought: tuple[type[Plugin], ...] = ()
    """The user's plugin classes, which `plugins` may name."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A legacy scheduler, ready to run."""

    profile: Profile
    release: Release
    context: LegacyContext
    predicates: tuple[str, ...]
    priorities: Mapping[str, int]
    extenders: tuple[Extender, ...] = ()
    always_check_all_predicates: bool = False
    framework: Framework | None = None
    """The final plugins and their configuration, in a release that ran plugins."""


def profile_from_provider(
    name: str, handle: Handle, version: str | Release = LATEST, options: Options | None = None
) -> Algorithm:
    """Build the scheduler of an algorithm provider, without extenders; an empty name is the default provider."""
    release, options = release_of(version), options or Options()
    context = _context(release, options, options.hard_pod_affinity_symmetric_weight, ())
    registry = Registry(release, context.gates, options.custom)
    wording.say_provider(name or DEFAULT_PROVIDER)
    with _wrapped(f'couldn\'t create scheduler using provider "{name}"', release):
        predicates, priorities = registry.provider(name or DEFAULT_PROVIDER)
        selected = Selected(set(predicates), {key: registry.priority(key).weight for key in priorities})
        check_hard_weight(context.hard_pod_affinity_weight, release)
        check_total(selected, release)
    return _create(selected, registry, context, handle, options)


def profile_from_policy(
    policy: Policy, handle: Handle, version: str | Release = LATEST, options: Options | None = None
) -> Algorithm:
    """Build the scheduler that a policy describes."""
    release, options = release_of(version), options or Options()
    wording.say_policy(policy, release)
    with _wrapped("couldn't create scheduler from policy", release):
        check_policy(policy, release)
    gates = LegacyGates.of(release, options.feature_gates)
    registry = Registry(release, gates, options.custom)
    selected = select(policy, registry)
    extenders = tuple(extender.modern() for extender in policy.extenders)
    weight = policy.hard_pod_affinity_symmetric_weight or options.hard_pod_affinity_symmetric_weight
    with _wrapped("couldn't create scheduler from policy", release):
        extenders = build_extenders(extenders, prefix="")
        check_hard_weight(weight, release)
        check_total(selected, release)
    if options.to_the_letter and release.runs_plugins:
        weight = options.hard_pod_affinity_symmetric_weight
    context = _context(release, options, weight, extenders)
    return _create(selected, registry, context, handle, options, extenders, policy.always_check_all_predicates)


@contextmanager
def _wrapped(prefix: str, release: Release) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        raise ConfigError("", f"{prefix}: {error}" if release.minor >= 10 else str(error)) from error


def _context(release: Release, options: Options, weight: int, extenders: Sequence[Extender]) -> LegacyContext:
    return LegacyContext(
        release=release,
        gates=LegacyGates.of(release, options.feature_gates),
        hard_pod_affinity_weight=weight,
        ignored_resources=frozenset(
            resource.name for extender in extenders for resource in extender.managed_resources if resource.ignored_by_scheduler
        ),
        max_pd_volumes=max_volumes_from(os.environ),
        bind_timeout_seconds=options.bind_timeout_seconds,
        to_the_letter=options.to_the_letter,
    )


def check_hard_weight(weight: int, release: Release) -> None:
    """Raise ConfigError for a hardPodAffinitySymmetricWeight out of the release's range."""
    least = release.least_hard_weight
    if not least <= weight <= 100:
        raise ConfigError("", f"invalid hardPodAffinitySymmetricWeight: {weight}, must be in the range {least}-100")


def check_total(selected: Selected, release: Release) -> None:
    """Raise ConfigError if the sum of the weighted scores can overflow."""
    if release.minor >= 7 and sum(selected.priorities.values()) * release.max_score > MAX_INT:
        word = "total" if release.minor >= 17 else "Total"
        raise ConfigError("", f"{word} priority of priority functions has overflown")


def _create(
    selected: Selected,
    registry: Registry,
    context: LegacyContext,
    handle: Handle,
    options: Options,
    extenders: tuple[Extender, ...] = (),
    checks_all: bool = False,
) -> Algorithm:
    """Build the plugins and the profile, and in 1.17 add the plugins that the file enables."""
    release = context.release
    wording.say_keys(selected.predicates, selected.priorities, release)
    names = names_to_run(selected, registry)
    if options.to_the_letter and release.has_order:
        names = [name for name in names if is_listed(name, release)]
    filters = [plugin for name in names for plugin in registry.build_predicate(name, context, handle)]
    scorers: list[tuple[Plugin, int]] = []
    for name in sorted(selected.priorities):
        scorer = registry.priority(name).factory(context, handle)
        weight = selected.priorities[name]
        if options.to_the_letter and release.runs_plugins and name in SCORE_PLUGINS:
            weight = ((weight + (1 << 31)) % (1 << 32) - (1 << 31)) or 1  # 32 bits with a sign were left; none meant one
        scorers.append((scorer, weight))
    if not scorers and not extenders:
        scorers = [(EqualPriority(context, handle), 1)]
    if extenders and release.max_score == 10:
        # Today an extender's score (0 to 10) counts tenfold, because plugins score up to 100. Plugins of old releases score up
        # to 10, so they count tenfold too.
        scorers = [(plugin, weight * 10) for plugin, weight in scorers]
    framework: Framework | None = None
    points = _points(filters, _grouped(filters, release, checks_all, handle), scorers, context, handle, options)
    if release.runs_plugins:
        framework = final(names, selected.priorities, selected.plugin_config, options.plugins, options.plugin_config)
        check(framework, known_plugins(options.brought))
        wording.say_framework(framework)
        own = OwnPlugins(registry, context, handle)
        enabled = build(options.plugins, framework, options.brought, handle, own.filter_of, own.scorer_of)
        for point, plugins in enabled.items():
            # The file's plugins come last, except at bind, where DefaultBinder is last, and queue_sort, where there is only
            # one.
            first = points.get(point, [])
            points[point] = plugins if point == "queue_sort" else [*plugins, *first] if point == "bind" else [*first, *plugins]
    profile = Profile(
        options.scheduler_name,
        points,
        release.percentage_of_nodes if options.percentage_of_nodes_to_score is None else options.percentage_of_nodes_to_score,
    )
    profile.word = lambda pod, diagnosis: fit_error(pod, diagnosis, release)
    weights = dict(sorted(selected.priorities.items()))
    return Algorithm(profile, release, context, tuple(names), weights, extenders, checks_all, framework)


@dataclass(frozen=True, slots=True)
class OwnPlugins:
    """The built-in plugins of 1.17 by name, for a file that enables them."""

    registry: Registry
    context: LegacyContext
    handle: Handle

    def filter_of(self, name: str) -> Plugin:
        """Return the filter of a plugin of the release."""
        predicate = next(key for key, plugins in FILTER_PLUGINS.items() if plugins == (name,))
        self._check_bare(name, predicate in self.registry.predicates)
        return self.registry.build_predicate(predicate, self.context, self.handle)[0]

    def scorer_of(self, name: str) -> Plugin:
        """Return the scorer of a plugin of the release."""
        priority = next(key for key, plugin in SCORE_PLUGINS.items() if plugin == name)
        self._check_bare(name, priority in self.registry.priorities)
        return self.registry.priority(priority).factory(self.context, self.handle)

    def _check_bare(self, name: str, is_known: bool) -> None:
        if not is_known:
            raise ConfigError("", f'{FRAMEWORK}: error initializing plugin "{name}": its arguments are read from a policy')


def names_to_run(selected: Selected, registry: Registry) -> list[str]:
    """Return the predicates that run, with the mandatory ones, in order; raise ConfigError for a set that cannot run."""
    if selected.conflict:
        raise ConfigError("", f"{FRAMEWORK}: {selected.conflict}")
    names = selected.predicates | (registry.mandatory & registry.predicates.keys())
    if names & {"PodFitsHostPorts", "GeneralPredicates"}:
        names -= {"PodFitsPorts"}  # only another name for what is there already
    in_order = ordered(names, registry.release)
    if registry.release.runs_plugins:
        # Predicates that ran as the same plugin are refused, such as GeneralPredicates beside PodFitsResources.
        seen: set[str] = set()
        for plugin in (plugin for name in in_order for plugin in FILTER_PLUGINS.get(name, ())):
            if plugin in seen:
                raise ConfigError("", f'{FRAMEWORK}: plugin "{plugin}" already registered as "FilterPlugin"')
            seen.add(plugin)
    return in_order


def _grouped(filters: Sequence[Plugin], release: Release, checks_all: bool, handle: Handle) -> list[Plugin]:
    """Return the filters one by one; or as one `AllOf`, where all predicates run on every node and give all their reasons."""
    if release.runs_plugins:
        own = [plugin for plugin in filters if isinstance(plugin, FunctionPredicate)]
        if not checks_all or len(own) < 2:
            return list(filters)
        # In 1.17 alwaysCheckAllPredicates applied only to predicates that were not plugins: those registered by users.
        return [plugin for plugin in filters if plugin not in own] + [AllOf.under("CustomPredicates", own, handle)]
    if release.stops_at_first and not checks_all:
        return list(filters)
    return [AllOf.under("AllPredicates", filters, handle)]


class FirstInFirstOut(Plugin):
    """Sort pods by the time at which they entered the queue. The queue of the first releases was a FIFO."""

    def sort_key(self, pod: PodView, queued_at: float) -> Any:
        return queued_at


def _points(
    leaves: Sequence[Plugin],
    filters: Sequence[Plugin],
    scorers: Sequence[tuple[Plugin, int]],
    context: LegacyContext,
    handle: Handle,
    options: Options,
) -> dict[str, list[tuple[Plugin, int]]]:
    """Return the plugins of each point. `leaves` are the predicates one by one, for Reserve and PreBind; `filters` may be
    grouped."""
    release = context.release
    first: list[Plugin] = []
    if release.lists_ready_nodes:
        first.append(ListedNodes(context, handle))
    if release.checks_claims_first:
        first.append(ClaimsExist(context, handle))
    points: dict[str, list[tuple[Plugin, int]]] = {
        # Scheduling gates are newer, but the API server refuses to bind a gated pod. Decisions about other pods do not change.
        "pre_enqueue": [(SchedulingGates(None, handle), 0)],
        "queue_sort": [(PrioritySort(None, handle) if release.has_priorities_of_pods else FirstInFirstOut(context, handle), 0)],
        "pre_filter": [(plugin, 0) for plugin in (*first, *filters) if plugin.implements("pre_filter")],
        "filter": [(plugin, 0) for plugin in filters],
        "pre_score": [(plugin, 0) for plugin, _ in scorers if plugin.implements("pre_score")],
        "score": list(scorers),
        "reserve": [(plugin, 0) for plugin in leaves if plugin.implements("reserve")],
        "pre_bind": [(plugin, 0) for plugin in leaves if plugin.implements("pre_bind")],
        "bind": [(DefaultBinder(None, handle), 0)],
    }
    if release.has_priorities_of_pods and not options.disable_preemption:
        preemption = DefaultPreemption(DefaultPreemptionArgs(), handle)
        points["post_filter"] = [(preemption, 0)]
        points["pre_enqueue"].append((preemption, 0))
    return points
