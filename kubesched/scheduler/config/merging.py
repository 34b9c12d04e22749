"""The plugins of a profile: merged with the defaults (`merge`), then listed for each extension point (`expand`, `weigh`).

    defaults      multiPoint: enabled [A, B weight 2, C]
    the file      multiPoint: disabled [C]                      score: enabled [B weight 5]
    merge         multiPoint: enabled [A, B weight 2]           score: enabled [B weight 5]
    expand        every point that A and B implement: [A, B]; score: [B, A], because what a point names comes first
    weigh         score: B 5 (the point's own list wins), A 1

`expand` needs the catalogue, which knows the points of each plugin.
"""

from __future__ import annotations

import msgspec

from kubesched.errors import ConfigError
from kubesched.kube.values import go_quote
from kubesched.scheduler.config.catalogue import POINT_TYPES, SCORING_POINTS, Catalogue
from kubesched.scheduler.config.types import Configured, Plugin, Plugins, PluginSet

MAX_SCORE = 100
_WRAP = 1 << 64
_MAX_INT64 = (1 << 63) - 1


def merge(defaults: Plugins, custom: Plugins | None) -> Plugins:
    """Return the user's plugins merged with the default ones at every point."""
    if custom is None:
        return defaults
    # A point that the emulated release does not have is None in the defaults, and is left out.
    points = [field.name for field in msgspec.structs.fields(Plugins) if getattr(defaults, field.name) is not None]
    return Plugins(**{point: merge_set(defaults.at(point), custom.at(point)) for point in points})


def merge_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Merge one point. Disabled defaults are dropped. A default that the user enables again keeps its place with the user's
    weight. The user's other plugins follow."""
    disabled = tuple(Plugin(plugin.name) for plugin in (*(custom.disabled or ()), *(default.disabled or ())))
    off = {plugin.name for plugin in disabled}
    entries = custom.enabled or ()
    # Example: the defaults enable A, B, C. The user enables C with weight 5 and X, and disables A.
    #   A   dropped
    #   B   kept
    #   C   keeps its place, with weight 5
    #   X   follows at the end
    # So re-enabling changes a weight without changing the order in which plugins run.
    last = {plugin.name: at for at, plugin in enumerate(entries)}
    used = set()
    enabled = []
    for plugin in default.enabled or ():
        if "*" in off or plugin.name in off:
            continue
        if plugin.name in last:
            used.add(last[plugin.name])
            plugin = entries[last[plugin.name]]
        enabled.append(plugin)
    # A plugin that the user enables twice stays twice; `expand` refuses it.
    enabled += [plugin for at, plugin in enumerate(entries) if at not in used]
    return PluginSet(enabled=tuple(enabled) or None, disabled=disabled or None)


def needed(plugins: Plugins) -> frozenset[str]:
    """Return all plugins that are enabled at some point."""
    sets = (plugins.at(field.name) for field in msgspec.structs.fields(Plugins))
    return frozenset(name for each in sets for name in each.enabled_names)


def expand(plugins: Plugins, catalogue: Catalogue) -> dict[str, tuple[Configured, ...]]:
    """Return the plugins of every extension point, in the order in which they run; raise ConfigError for a set that cannot
    run."""
    for point, kind in POINT_TYPES.items():
        _check_explicit(plugins.at(point), point, kind, catalogue)
    # First all explicit lists are checked, then all points are expanded: of two errors that is the order in which
    # kube-scheduler finds them.
    names = {point: _expand_point(plugins, point, catalogue) for point in POINT_TYPES}
    return {point: tuple(Configured(name) for name in listed) for point, listed in names.items()}


def weigh(
    plugins: Plugins, points: dict[str, tuple[Configured, ...]], catalogue: Catalogue
) -> dict[str, tuple[Configured, ...]]:
    """Return the points with the weights of all plugins that score."""
    weighed = dict(points)
    for point in SCORING_POINTS:
        weights = _weights(plugins, point, catalogue)
        weighed[point] = tuple(Configured(plugin.name, weights[plugin.name]) for plugin in points[point])
    return weighed


def _check_explicit(listed: PluginSet, point: str, kind: str, catalogue: Catalogue) -> None:
    seen = set()
    for name in listed.enabled_names:
        if name not in catalogue:
            raise ConfigError("", f"{kind} {go_quote(name)} does not exist")
        if point not in catalogue[name].points:
            raise ConfigError("", f"plugin {go_quote(name)} does not extend {kind} plugin")
        if name in seen:
            raise _registered_twice(name, kind)
        seen.add(name)


def _expand_point(plugins: Plugins, point: str, catalogue: Catalogue) -> list[str]:
    """Return one point: plugins of multiPoint that the point names too, then the other plugins of multiPoint, then the rest of
    the point's own list. `disabled: [*]` at the point leaves only its own list."""
    explicit, kind = plugins.at(point), POINT_TYPES[point]
    named, off = explicit.enabled_names, explicit.disabled_names
    # `disabled: [*]` at a point switches off what multiPoint brings there, and not the point's own list.
    if "*" in off:
        return named
    # Plugins that the point names and multiPoint has too come first, in the order of the point's list. That is how a user
    # changes the order at one point.
    overridden, general = set(), []
    for name in plugins.multi_point.enabled_names:
        if name not in catalogue:
            raise ConfigError("", f"{kind} {go_quote(name)} does not exist")
        # multiPoint means "where it can": a plugin that lacks the point is left out there, without an error.
        if point not in catalogue[name].points or name in off:
            continue
        if name in named:
            overridden.add(name)
        elif name in general:
            raise _registered_twice(name, kind)
        else:
            general.append(name)
    first = [name for name in named if name in overridden]
    return [*first, *general, *(name for name in named if name not in overridden)]


def _registered_twice(name: str, kind: str) -> ConfigError:
    return ConfigError("", f"plugin {go_quote(name)} already registered as {go_quote(kind)}")


def _weights(plugins: Plugins, point: str, catalogue: Catalogue) -> dict[str, int]:
    """Return each scoring plugin's weight: the point's own list first, then multiPoint; 0 means 1."""
    what = "score plugins" if point == "score" else "placement score plugins"
    weights: dict[str, int] = {}
    total = 0
    # The point's own weight is found first and counts. The sum of all maxima must fit 64 bits, because kube-scheduler adds
    # scores up in an int64.
    for plugin in (*(plugins.at(point).enabled or ()), *(plugins.multi_point.enabled or ())):
        if point not in catalogue[plugin.name].points or plugin.name in weights:
            continue
        weights[plugin.name] = plugin.weight or 1
        highest = weights[plugin.name] * MAX_SCORE
        # Kept quirk: 64-bit arithmetic. After a negative weight the rest wraps around, and the next plugin is refused as if the
        # sum had overflowed.
        if highest > _wrapped(_MAX_INT64 - total):
            raise ConfigError("", f"{what}: total score of Score plugins could overflow")
        total = _wrapped(total + highest)
    return weights


def _wrapped(value: int) -> int:
    return (value + (1 << 63)) % _WRAP - (1 << 63)
