"""From a policy to names: which predicates and priorities run. Those with an argument ("custom") are registered on the way.

    {"name": "ssd", "argument": {"labelsPresence": {"labels": ["disk"], "presence": true}}}
    up to 1.16     a predicate named ssd
    from 1.17 on   a predicate named CheckNodeLabelPresence (`FORCED`); a second one adds its labels to the first

Priorities of one kind are merged in the same way, and their weights added.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kubesched.errors import ConfigError
from kubesched.kube.values import go_quote
from kubesched.scheduler.config import PluginConfig, Raw, read_json
from kubesched.scheduler.framework import Plugin
from kubesched.scheduler.legacy.algorithms import PredicateFactory, PriorityFactory
from kubesched.scheduler.legacy.policies.policy import Policy, PredicatePolicy, PriorityPolicy
from kubesched.scheduler.legacy.policies.policy_validation import check_argument, shape_of
from kubesched.scheduler.legacy.policies.providers import DEFAULT_PROVIDER
from kubesched.scheduler.legacy.predicates.base import named
from kubesched.scheduler.legacy.predicates.node_facts import CheckNodeLabelPresence
from kubesched.scheduler.legacy.predicates.pods import CheckServiceAffinity
from kubesched.scheduler.legacy.priorities.preferences import NodeLabelPriority
from kubesched.scheduler.legacy.priorities.requested import RequestedToCapacityRatioPriority
from kubesched.scheduler.legacy.priorities.spreading import ServiceAntiAffinity
from kubesched.scheduler.legacy.registry import Registry
from kubesched.scheduler.legacy.releases import Release


@dataclass(slots=True)
class Selected:
    """The names that a scheduler is built from, priorities with weights."""

    predicates: set[str]
    priorities: dict[str, int]
    conflict: str = ""
    """The error about labels that must be both present and absent, if there is one."""
    plugin_config: tuple[PluginConfig, ...] = ()
    """The arguments of the plugins that custom entries ran as."""


FORCED = {
    "service_affinity": "CheckServiceAffinity",
    "labels_presence": "CheckNodeLabelPresence",
    "service_anti_affinity": "ServiceAffinity",
    "label_preference": "NodeLabel",
    "requested_to_capacity_ratio_arguments": "RequestedToCapacityRatio",
}
"""Kinds of arguments, and the names of their predicates and priorities in 1.17."""


def runs_as(entry: PredicatePolicy | PriorityPolicy, release: Release) -> str:
    """Return the name under which an entry of a policy runs."""
    if entry.argument is None or not release.forces_names:
        return entry.name
    kinds = [kind for kind in FORCED if getattr(entry.argument, kind, None) is not None]
    return FORCED[kinds[0]] if kinds else entry.name


def select(policy: Policy, registry: Registry) -> Selected:
    """Return what a policy selects. An absent list means the default provider's, and before 1.10 none."""
    chooser = _Chooser(registry)
    for predicate in policy.predicates or ():
        chooser.take_predicate(predicate)
    for priority in policy.priorities or ():
        chooser.take_priority(priority)
    if registry.release.absent_means_default:
        predicates, priorities = registry.provider(DEFAULT_PROVIDER)
        if policy.predicates is None:
            chooser.predicates |= predicates
        if policy.priorities is None:
            chooser.priorities.update({name: registry.priority(name).weight for name in priorities})
    return Selected(chooser.predicates, chooser.priorities, chooser.conflict(), chooser.plugin_config())


class _Chooser:
    """Takes the entries of a policy, one by one."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.release = registry.release
        self.predicates: set[str] = set()
        self.priorities: dict[str, int] = {}
        self._present: list[str] = []
        self._absent: list[str] = []
        self._affine: list[str] = []
        self._preferred_present: list[str] = []
        self._preferred_absent: list[str] = []
        self._spread: list[str] = []
        self._shape: tuple[tuple[int, int], ...] = ()
        self._weights: dict[str, int] = {}

    def take_predicate(self, policy: PredicatePolicy) -> None:
        """Select a known predicate, or register a custom one."""
        check_argument(policy)
        argument = policy.argument
        if argument is None:
            if policy.name not in self.registry.predicates:
                raise ConfigError("", f"Invalid configuration: Predicate type not found for {policy.name}")
            self.predicates.add(policy.name)
            return
        name = runs_as(policy, self.release)
        if argument.service_affinity is not None:
            self._affine = [*self._kept(self._affine), *argument.service_affinity.labels]
            self.registry.add_predicate(name, _predicate(CheckServiceAffinity, name, self._affine))
        elif argument.labels_presence is not None:
            self._present, self._absent = self._kept(self._present), self._kept(self._absent)
            wanted = argument.labels_presence
            (self._present if wanted.presence else self._absent).extend(wanted.labels)
            self.registry.add_predicate(name, _predicate(CheckNodeLabelPresence, name, self._present, self._absent))
        self.predicates.add(name)

    def take_priority(self, policy: PriorityPolicy) -> None:
        """Select a known priority with the policy's weight, or register a custom one. 1.17 skips EqualPriority."""
        if policy.name == "EqualPriority" and self.release.runs_plugins:
            return
        check_argument(policy)
        argument, name, weight = policy.argument, runs_as(policy, self.release), policy.weight
        if argument is None:
            if name not in self.registry.priorities:
                raise ConfigError("", f"Invalid configuration: Priority type not found for {name}")
            self.priorities[name] = weight
            return
        if argument.service_anti_affinity is not None:
            weight = self._added(name, weight)
            self._spread = [*self._kept(self._spread), argument.service_anti_affinity.label]
            self.registry.add_priority(name, _priority(ServiceAntiAffinity, name, tuple(self._spread)), weight)
        elif argument.label_preference is not None:
            weight = self._added(name, weight)
            present, absent = self._kept(self._preferred_present), self._kept(self._preferred_absent)
            (present if argument.label_preference.presence else absent).append(argument.label_preference.label)
            self._preferred_present, self._preferred_absent = present, absent
            self.registry.add_priority(name, _priority(NodeLabelPriority, name, tuple(present), tuple(absent)), weight)
        elif argument.requested_to_capacity_ratio_arguments is not None:
            ratio = argument.requested_to_capacity_ratio_arguments
            weights = {resource.name: resource.weight or 1 for resource in ratio.resources}
            self._shape, self._weights = shape_of(ratio, self.release), weights
            self.registry.add_priority(name, _priority(RequestedToCapacityRatioPriority, name, self._shape, weights), weight)
        self.priorities[name] = weight

    def _kept(self, labels: list[str]) -> list[str]:
        """Return the labels of earlier entries of the kind, in releases that merge them."""
        return list(labels) if self.release.forces_names else []

    def _added(self, name: str, weight: int) -> int:
        return weight + self.priorities.get(name, 0) if self.release.forces_names else weight

    def plugin_config(self) -> tuple[PluginConfig, ...]:
        """Return the arguments of the plugins that custom entries ran as, with the release's keys."""
        if not self.release.runs_plugins:
            return ()
        args: dict[str, dict[str, Any]] = {
            "NodeLabel": {
                "presentLabels": self._present,
                "absentLabels": self._absent,
                "presentLabelsPreference": self._preferred_present,
                "absentLabelsPreference": self._preferred_absent,
            },
            "ServiceAffinity": {"labels": self._affine, "antiAffinityLabelsPreference": self._spread},
            "RequestedToCapacityRatio": {
                "FunctionShape": [{"Utilization": at, "Score": score} for at, score in self._shape],
                "ResourceToWeightMap": self._weights,
            },
        }
        told = {name: {key: value for key, value in given.items() if value} for name, given in args.items()}
        return tuple(PluginConfig(name, Raw(read_json(json.dumps(given)))) for name, given in told.items() if given)

    def conflict(self) -> str:
        """Return the error about labels that must be both present and absent; empty if there are none."""
        if not self.release.forces_names:
            return ""
        return _conflict(self._present, self._absent) or _conflict(self._preferred_present, self._preferred_absent)


def _conflict(present: Sequence[str], absent: Sequence[str]) -> str:
    for label in absent:
        if label in present:
            return (
                'error initializing plugin "NodeLabel": detecting at least one label '
                f"(e.g., {go_quote(label)}) that exist in both the present([{' '.join(present)}]) and "
                f"absent([{' '.join(absent)}]) label list"
            )
    return ""


def _predicate(cls: type[Plugin], name: str, *labels: Sequence[str]) -> PredicateFactory:
    """Return a factory of a predicate with another name and the current labels."""
    make = _priority(cls, name, *map(tuple, labels))
    return lambda context, handle: [make(context, handle)]


def _priority(cls: type[Plugin], name: str, *given: Any) -> PriorityFactory:
    made = named(cls, name)
    return lambda context, handle: made(context, handle, *given)
