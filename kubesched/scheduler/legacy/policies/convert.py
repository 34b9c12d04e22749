"""From a policy to a KubeSchedulerConfiguration of today.

A `Conversion` has the document, with one profile that enables exactly the plugins for the policy; sentences about what behaves
differently (`differences`); and what has no equivalent (`missing`). The tables below map names to plugins and sentences. A
policy that its release refuses is refused with the same text. The document is loaded once, so it is valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kubesched.scheduler import config
from kubesched.scheduler.config import API_VERSION, at_release, encode
from kubesched.scheduler.config import KIND as CONFIGURATION
from kubesched.scheduler.legacy.algorithms import FILTER_PLUGINS, VOLUME_COUNTS
from kubesched.scheduler.legacy.framework_plugins import camel
from kubesched.scheduler.legacy.policies.policy import Policy, PriorityPolicy
from kubesched.scheduler.legacy.policies.policy_validation import check_policy
from kubesched.scheduler.legacy.policies.providers import DEFAULT_PROVIDER, ordered
from kubesched.scheduler.legacy.policies.selection import select
from kubesched.scheduler.legacy.profile import Options, check_hard_weight, check_total, names_to_run
from kubesched.scheduler.legacy.registry import Registry
from kubesched.scheduler.legacy.releases import LATEST, LegacyGates, Release, release_of
from kubesched.scheduler.plugins.args import IN_TREE_CATALOGUE

_FILTERS: Mapping[str, tuple[str, ...]] = {
    **{name: ("NodeVolumeLimits",) if name in VOLUME_COUNTS else plugins for name, plugins in FILTER_PLUGINS.items()},
    "CheckNodeCondition": ("TaintToleration", "NodeUnschedulable"),
    **dict.fromkeys(("CheckNodeMemoryPressure", "CheckNodeDiskPressure", "CheckNodePIDPressure"), ("TaintToleration",)),
    "CheckNodeLabelPresence": ("NodeAffinity",),
}
"""The filters of today for a predicate: mostly those that it ran as in 1.17."""
_SCORES: Mapping[str, str] = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    **dict.fromkeys(("SelectorSpreadPriority", "ServiceSpreadingPriority", "EvenPodsSpreadPriority"), "PodTopologySpread"),
    "InterPodAffinityPriority": "InterPodAffinity",
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "ImageLocalityPriority": "ImageLocality",
}
_STRATEGIES = {"LeastRequestedPriority": "LeastAllocated", "MostRequestedPriority": "MostAllocated"}

_BY_DRIVERS = "volumes are counted by CSI driver, against the limits in CSINode objects"
_BY_TAINTS = "conditions are read as the node.kubernetes.io taints that Kubernetes puts on such nodes"
_BY_SPREAD = "PodTopologySpread with its system defaults takes its place and weighs zones and hosts otherwise"
_BY_NEED = (
    "only what the pod asks for is compared, so an overbooked node takes a pod that asks for something else; "
    "sidecars, overhead and pod-level resources count"
)
_BY_OFFER = "a resource that a node does not offer is left out, and an overfull node counts as full"
_BY_USE = "the utilization is rounded down, not up, so a score may differ by a step"
_DIFFERENCES: Mapping[str, str] = {
    **dict.fromkeys(("GeneralPredicates", "PodFitsResources"), _BY_NEED),
    **dict.fromkeys(("LeastRequestedPriority", "MostRequestedPriority"), _BY_OFFER),
    **dict.fromkeys(("RequestedToCapacityRatioPriority", "RequestedToCapacityRatio"), _BY_USE),
    "MatchInterPodAffinity": "the first pod of a group that wants to be near its own kind needs a node with the "
    "topology's label",
    "InterPodAffinityPriority": "nodes are placed between the least and the largest sum, which zero need not lie between",
    "NodeAffinityPriority": "what preferred terms say of a node's fields counts",
    "NoVolumeZoneConflict": "the topology.kubernetes.io labels count as well",
    "CheckVolumeBinding": "storage capacity is looked at, and a broken claim refuses the pod instead of failing it",
    **dict.fromkeys(VOLUME_COUNTS, _BY_DRIVERS),
    **dict.fromkeys(
        ("CheckNodeCondition", "CheckNodeMemoryPressure", "CheckNodeDiskPressure", "CheckNodePIDPressure"), _BY_TAINTS
    ),
    **dict.fromkeys(("SelectorSpreadPriority", "ServiceSpreadingPriority"), _BY_SPREAD),
    "EvenPodsSpreadPriority": "constraints are weighed by the size of their topologies",
    "BalancedResourceAllocation": "the score compares the balance with and without the pod",
    "ImageLocalityPriority": "init containers count, and the upper threshold grows with the number of containers",
}
_MISSING: Mapping[str, str] = {
    "CheckServiceAffinity": "no plugin keeps the pods of a service together; the closest are rules of pod affinity",
    "ServiceAffinity": "no plugin spreads the pods of a service over a label; the closest are spread constraints",
    "NodePreferAvoidPodsPriority": "the annotation is not read any more; use taints with the effect PreferNoSchedule",
    "ResourceLimitsPriority": "limits are not scored any more",
}
FROM_OUTSIDE = "registered from outside; write it as a plugin"
_AT_FILTER = ("pre_filter", "filter", "reserve", "pre_bind")
_AT_SCORE = ("pre_score", "score")


@dataclass(frozen=True, slots=True)
class Conversion:
    """A converted policy."""

    document: dict[str, Any]
    differences: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Return whether the document has everything in the policy."""
        return not self.missing


@dataclass(slots=True)
class _Draft:
    """A profile in the making."""

    filters: list[str] = field(default_factory=list)
    scores: dict[str, int] = field(default_factory=dict)
    args: dict[str, dict[str, Any]] = field(default_factory=dict)
    spreads_siblings: bool = False
    """Whether pods without spread constraints are spread too."""
    differences: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def filter_with(self, plugins: Iterable[str]) -> None:
        self.filters += [plugin for plugin in plugins if plugin not in self.filters]

    def score_with(self, plugin: str, weight: int, said: str) -> None:
        if plugin in self.scores:
            self.differences.append(f"{said}: {plugin} is there already, its weight is the sum of both")
        self.scores[plugin] = self.scores.get(plugin, 0) + weight


def convert_policy(policy: Policy, version: str | Release = LATEST, options: Options | None = None) -> Conversion:
    """Return today's configuration for a policy; raise ConfigError for a policy that its release refuses."""
    release, options = release_of(version), options or Options()
    check_policy(policy, release)
    registry = Registry(release, LegacyGates.of(release, options.feature_gates), options.custom)
    selected = select(policy, registry)
    weight = policy.hard_pod_affinity_symmetric_weight or options.hard_pod_affinity_symmetric_weight
    check_hard_weight(weight, release)
    check_total(selected, release)
    names_to_run(selected, registry)
    draft = _Draft()
    _convert_predicates(policy, registry, draft)
    _convert_priorities(policy, registry, draft)
    if policy.always_check_all_predicates:
        draft.differences.append(
            "alwaysCheckAllPredicates: a node is always left alone after the first filter that "
            "refuses it, so fewer reasons are shown"
        )
    if "PodTopologySpread" in (*draft.filters, *draft.scores) and not draft.spreads_siblings:
        draft.args["PodTopologySpread"] = {"defaultingType": "List"}
    if "InterPodAffinity" in (*draft.filters, *draft.scores):
        draft.args["InterPodAffinity"] = {"hardPodAffinityWeight": weight}
    document = _document(draft, policy, options)
    text = msgspec.json.encode(document).decode()
    config.load(text, gates=config.Gates.defaults(), registry=IN_TREE_CATALOGUE)
    return Conversion(document, tuple(draft.differences), tuple(draft.missing))


def _convert_predicates(policy: Policy, registry: Registry, draft: _Draft) -> None:
    """Add the filters for the predicates. All labelsPresence predicates become one required node affinity in NodeAffinity's
    addedAffinity."""
    names: set[str] = set(registry.mandatory & registry.predicates.keys())
    present: list[str] = []
    absent: list[str] = []
    if policy.predicates is None and registry.release.absent_means_default:
        names |= registry.provider(DEFAULT_PROVIDER)[0]
    for predicate in policy.predicates or ():
        argument = predicate.argument
        if argument is None:
            names.add(predicate.name)
        elif argument.labels_presence is not None:
            (present if argument.labels_presence.presence else absent).extend(argument.labels_presence.labels)
        else:
            draft.missing.append(f"predicate {predicate.name}: {_MISSING['CheckServiceAffinity']}")
    if present or absent:
        names.add("CheckNodeLabelPresence")
        expressions = [{"key": key, "operator": "Exists"} for key in dict.fromkeys(present)]
        expressions += [{"key": key, "operator": "DoesNotExist"} for key in dict.fromkeys(absent)]
        _added(draft)["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [{"matchExpressions": expressions}]
        }
        if not names & {"MatchNodeSelector", "GeneralPredicates"}:
            draft.differences.append("labelsPresence: NodeAffinity also heeds the node selectors of pods")
    for name in ordered(names, registry.release):
        if name not in _FILTERS:
            draft.missing.append(f"predicate {name}: {FROM_OUTSIDE}")
            continue
        draft.filter_with(_FILTERS[name])
        if name in _DIFFERENCES:
            draft.differences.append(f"predicate {name}: {_DIFFERENCES[name]}")


def _convert_priorities(policy: Policy, registry: Registry, draft: _Draft) -> None:
    """Add the scorers for the priorities of the policy, or of the default provider."""
    if policy.priorities is None and registry.release.absent_means_default:
        for name in sorted(registry.provider(DEFAULT_PROVIDER)[1]):
            _convert_known(name, registry.priority(name).weight, draft)
    for priority in policy.priorities or ():
        argument = priority.argument
        if argument is None:
            _convert_known(priority.name, priority.weight, draft)
        elif argument.requested_to_capacity_ratio_arguments is not None:
            _score_resources(priority.name, priority.weight, _ratio(priority), draft, "RequestedToCapacityRatio")
        elif argument.label_preference is not None:
            _prefer_label(priority, draft)
        else:
            draft.missing.append(f"priority {priority.name}: {_MISSING['ServiceAffinity']}")


def _convert_known(name: str, weight: int, draft: _Draft) -> None:
    """Add the scorer for a priority without an argument. Resource priorities become the scoring strategy of NodeResourcesFit,
    which can have only one."""
    said = f"priority {name}"
    if name == "EqualPriority":
        return
    if name in _STRATEGIES:
        _score_resources(name, weight, {"type": _STRATEGIES[name]}, draft, name)
    elif name == "RequestedToCapacityRatioPriority":
        shape = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
        _score_resources(
            name, weight, {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}, draft, name
        )
    elif name in _SCORES:
        draft.score_with(_SCORES[name], weight, said)
        draft.spreads_siblings |= name in ("SelectorSpreadPriority", "ServiceSpreadingPriority")
        if name in _DIFFERENCES:
            draft.differences.append(f"{said}: {_DIFFERENCES[name]}")
    else:
        draft.missing.append(f"{said}: {_MISSING.get(name, FROM_OUTSIDE)}")


def _score_resources(name: str, weight: int, strategy: dict[str, Any], draft: _Draft, kind: str) -> None:
    args = draft.args.setdefault("NodeResourcesFit", {})
    if "scoringStrategy" in args:
        draft.missing.append(f"priority {name}: NodeResourcesFit has one scoring strategy, and it is taken")
        return
    args["scoringStrategy"] = strategy
    draft.score_with("NodeResourcesFit", weight, f"priority {name}")
    draft.differences.append(f"priority {name}: {_DIFFERENCES[kind]}")


def _ratio(priority: PriorityPolicy) -> dict[str, Any]:
    """Return the scoring strategy for a RequestedToCapacityRatio priority."""
    assert priority.argument is not None
    given = priority.argument.requested_to_capacity_ratio_arguments
    assert given is not None
    strategy: dict[str, Any] = {
        "type": "RequestedToCapacityRatio",
        "requestedToCapacityRatio": {
            "shape": [{"utilization": point.utilization, "score": point.score} for point in given.shape]
        },
    }
    if given.resources:
        strategy["resources"] = [{"name": spec.name, "weight": spec.weight or 1} for spec in given.resources]
    return strategy


def _prefer_label(priority: PriorityPolicy, draft: _Draft) -> None:
    assert priority.argument is not None
    wanted = priority.argument.label_preference
    assert wanted is not None
    operator = "Exists" if wanted.presence else "DoesNotExist"
    terms = _added(draft).setdefault("preferredDuringSchedulingIgnoredDuringExecution", [])
    terms.append({"weight": 1, "preference": {"matchExpressions": [{"key": wanted.label, "operator": operator}]}})
    draft.score_with("NodeAffinity", priority.weight, f"priority {priority.name}")
    draft.differences.append(f"priority {priority.name}: it shares NodeAffinity's score with the preferences of pods")


def _added(draft: _Draft) -> dict[str, Any]:
    added: dict[str, Any] = draft.args.setdefault("NodeAffinity", {}).setdefault("addedAffinity", {})
    return added


def _document(draft: _Draft, policy: Policy, options: Options) -> dict[str, Any]:
    """Return the document: all defaults disabled, the drafted plugins enabled at each point that they implement in both
    recorded releases."""
    catalogue = at_release(IN_TREE_CATALOGUE, config.OLDEST_RECORDED)  # points that both releases have
    sets: dict[str, list[dict[str, Any]]] = {
        "preEnqueue": [{"name": "SchedulingGates"}],
        "queueSort": [{"name": "PrioritySort"}],
        "bind": [{"name": "DefaultBinder"}],
    }
    if not options.disable_preemption:
        sets["preEnqueue"].append({"name": "DefaultPreemption"})
        sets["postFilter"] = [{"name": "DefaultPreemption"}]
    for plugin in draft.filters:
        for point in _AT_FILTER:
            if point in catalogue[plugin].points:
                sets.setdefault(camel(point), []).append({"name": plugin})
    for plugin, weight in draft.scores.items():
        for point in _AT_SCORE:
            if point in catalogue[plugin].points:
                entry = {"name": plugin, "weight": weight} if point == "score" else {"name": plugin}
                sets.setdefault(camel(point), []).append(entry)
    plugins: dict[str, Any] = {"multiPoint": {"disabled": [{"name": "*"}]}}
    plugins.update({point: {"enabled": entries} for point, entries in sets.items()})
    profile: dict[str, Any] = {"schedulerName": options.scheduler_name, "plugins": plugins}
    if any(resource.ignored_by_scheduler for extender in policy.extenders for resource in extender.managed_resources):
        draft.args.setdefault("NodeResourcesFit", {})
    if draft.args:
        profile["pluginConfig"] = [{"name": name, "args": args} for name, args in sorted(draft.args.items())]
    document: dict[str, Any] = {"apiVersion": API_VERSION, "kind": CONFIGURATION, "profiles": [profile]}
    if policy.extenders:
        document["extenders"] = [encode(extender.modern()) for extender in policy.extenders]
    return document
