"""A running profile from a configured one.

In: a profile of the configuration, the registry, a handle. Out: a `Profile`. Each plugin is built once, even if it is enabled
at several points. The points for pod groups are run by the engine, which asks the profile for their plugins.
"""

from __future__ import annotations

from kubesched.errors import ConfigError
from kubesched.scheduler import config
from kubesched.scheduler.framework.plugin import POINTS, Plugin
from kubesched.scheduler.framework.ports import Handle
from kubesched.scheduler.framework.runtime.profile import Profile
from kubesched.scheduler.framework.runtime.registry import Registry, points_of


def build_profile(configured: config.Profile, registry: Registry, handle: Handle) -> Profile:
    """Build every plugin of a profile; raise ConfigError for a name that nobody registered."""
    # One instance a profile: a plugin keeps its state between its own extension points. Two profiles have two, with arguments
    # of their own.
    built: dict[str, Plugin] = {}
    for name in configured.plugin_names:
        cls = registry.find(name)
        if cls is None:
            raise ConfigError("", f"plugin {name!r} does not exist")
        args = configured.args.get(name)
        # Who declares arguments gets them: also where nothing is configured, or nobody read a file at all.
        if args is None and cls.Args is not None:
            args = cls.Args().defaulted(handle.gates)
        built[name] = cls(args, handle)
    # A release may let a file name a plugin at a point where it has nothing to do, or a point that only such plugins have.
    implemented = {name: points_of(type(plugin)) for name, plugin in built.items()}
    points = {
        point: [(built[entry.name], entry.weight) for entry in entries if point in implemented[entry.name]]
        for point, entries in configured.points.items()
        if point in POINTS
    }
    gates = handle.gates
    if gates.is_enabled("WorkloadAwarePreemption") and not gates.behaviour.has_pod_group_post_filter:
        # Before the point could be configured, one plugin was asked by its name, at whatever points it was enabled.
        points["pod_group_post_filter"] = [(built[name], 0) for name in ("DefaultPreemption",) if name in built]
    return Profile(configured.scheduler_name, points, configured.percentage_of_nodes_to_score)


def catalogue(registry: Registry) -> dict[str, config.Known]:
    """Return what the configuration may know about the registered plugins."""
    return {cls.name: config.Known(frozenset(points_of(cls)), cls.Args) for cls in registry}
