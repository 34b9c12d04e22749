"""What the configuration knows about plugins: names, extension points, types of arguments, and the default set.

A `Catalogue` has for each plugin its points and the type of its arguments. `plugins/args.py` has that of the built-in plugins;
a plugin from outside adds an entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubesched.scheduler.config.args import Args
from kubesched.scheduler.config.releases.gates import Gates
from kubesched.scheduler.config.releases.versions import Version
from kubesched.scheduler.config.types import Plugin, Plugins, PluginSet

# In the order in which kube-scheduler builds them, which decides which error is reported first.
POINT_TYPES: Mapping[str, str] = {
    "pre_filter": "PreFilterPlugin",
    "filter": "FilterPlugin",
    "post_filter": "PostFilterPlugin",
    "reserve": "ReservePlugin",
    "pre_score": "PreScorePlugin",
    "score": "ScorePlugin",
    "pre_bind": "PreBindPlugin",
    "bind": "BindPlugin",
    "post_bind": "PostBindPlugin",
    "permit": "PermitPlugin",
    "pre_enqueue": "PreEnqueuePlugin",
    "queue_sort": "QueueSortPlugin",
    "placement_generate": "PlacementGeneratePlugin",
    "placement_score": "PlacementScorePlugin",
    "pod_group_post_filter": "PodGroupPostFilterPlugin",
}
POINTS = tuple(POINT_TYPES)
SCORING_POINTS = ("score", "placement_score")

# Points that built-in plugins have since a later release. A file for that release may name the plugin there.
_LATER_POINTS: Mapping[tuple[str, str], Version] = {
    ("NodeName", "pre_filter"): (1, 37),
    ("NodeUnschedulable", "pre_filter"): (1, 37),
    ("TaintToleration", "pre_filter"): (1, 37),
    ("DefaultPreemption", "pod_group_post_filter"): (1, 37),
    ("DynamicResources", "pod_group_post_filter"): (1, 37),
}

_DEFAULTS: tuple[tuple[str, int, str], ...] = (
    ("SchedulingGates", 0, ""),
    ("PrioritySort", 0, ""),
    ("NodeName", 0, ""),
    ("NodeUnschedulable", 0, ""),
    ("TaintToleration", 3, ""),
    ("NodeAffinity", 2, ""),
    ("NodePorts", 0, ""),
    ("DeferredPodScheduling", 0, "InPlacePodVerticalScalingSchedulerPreemption"),
    ("NodeResourcesFit", 1, ""),
    ("VolumeRestrictions", 0, ""),
    ("NodeVolumeLimits", 0, ""),
    ("VolumeBinding", 0, ""),
    ("VolumeZone", 0, ""),
    ("PodTopologySpread", 2, ""),
    ("InterPodAffinity", 2, ""),
    # Before DefaultPreemption: to give back an idle claim is better than to evict a pod.
    ("DynamicResources", 2, "DynamicResourceAllocation"),
    ("DefaultPreemption", 0, ""),
    ("NodeResourcesBalancedAllocation", 1, ""),
    ("ImageLocality", 1, ""),
    ("DefaultBinder", 0, ""),
    ("NodeDeclaredFeatures", 0, "NodeDeclaredFeatures"),
    ("GangScheduling", 0, "GangScheduling"),
    ("TopologyPlacementGenerator", 0, "TopologyAwareWorkloadScheduling"),
    ("PodGroupPodsCount", 1, "TopologyAwareWorkloadScheduling"),
)
"""The default plugins in order: name, weight (0: none), and the gate that enables it, if any."""


@dataclass(frozen=True, slots=True)
class Known:
    """A plugin as the configuration knows it."""

    points: frozenset[str]
    args: type[Args] | None = None


Catalogue = Mapping[str, Known]


def at_release(catalogue: Catalogue, version: Version) -> Catalogue:
    """Return the catalogue with the extension points that the built-in plugins have in a release."""
    known = dict(catalogue)
    # The plugin class has the newest points. For an older release the later ones are taken away, so that a file that names the
    # plugin there is refused as by that release.
    for (name, point), since in _LATER_POINTS.items():
        if name in known:
            points = known[name].points
            known[name] = Known(points | {point} if version >= since else points - {point}, known[name].args)
    return known


def default_plugins(gates: Gates) -> Plugins:
    """Return the default plugins, all under multiPoint, by gates and release."""
    # A gate adds its plugin at its place in the order, and not at the end.
    enabled = [Plugin(name, weight) for name, weight, gate in _DEFAULTS if not gate or gates.is_enabled(gate)]
    if not gates.behaviour.prefilters_node_name:
        names = [plugin.name for plugin in enabled]
        # Until 1.36 NodeName came after NodeUnschedulable. The order decides which plugin owns a node that both refuse, and so
        # the message.
        after = names.index("NodeUnschedulable")
        enabled.insert(after, enabled.pop(names.index("NodeName")))
    return Plugins(
        multi_point=PluginSet(enabled=tuple(enabled)),
        pod_group_post_filter=PluginSet() if gates.behaviour.has_pod_group_post_filter else None,
    )
