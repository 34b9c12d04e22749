"""Merging a profile's plugins with the defaults, and spelling them out per extension point.

Two steps, as in the reference. `merge` works on the file alone: the user's set over the default set, point by point.
`expand` then needs to know which plugin implements what: it replaces multiPoint by real lists and fixes the weights.
What is specific beats what is general: an extension point over the user's multiPoint over the default multiPoint.
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
    """Lay the user's plugins over the default ones at every point."""
    if custom is None:
        return defaults
    points = [field.name for field in msgspec.structs.fields(Plugins) if getattr(defaults, field.name) is not None]
    return Plugins(**{point: merge_set(defaults.at(point), custom.at(point)) for point in points})


def merge_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Merge one point: disabled defaults go, a default named again takes the user's entry in place, others follow."""
    disabled = tuple(Plugin(plugin.name) for plugin in (*(custom.disabled or ()), *(default.disabled or ())))
    off = {plugin.name for plugin in disabled}
    entries = custom.enabled or ()
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
    # A plugin that the user names twice stays twice, and is refused when the lists are spelled out.
    enabled += [plugin for at, plugin in enumerate(entries) if at not in used]
    return PluginSet(enabled=tuple(enabled) or None, disabled=disabled or None)


def needed(plugins: Plugins) -> frozenset[str]:
    """Return every plugin that is switched on anywhere."""
    sets = (plugins.at(field.name) for field in msgspec.structs.fields(Plugins))
    return frozenset(name for each in sets for name in each.enabled_names)


def expand(plugins: Plugins, catalogue: Catalogue) -> dict[str, tuple[Configured, ...]]:
    """Return the plugins of every extension point in running order, or raise ConfigError for an impossible set."""
    for point, kind in POINT_TYPES.items():
        _check_explicit(plugins.at(point), point, kind, catalogue)
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
    explicit, kind = plugins.at(point), POINT_TYPES[point]
    named, off = explicit.enabled_names, explicit.disabled_names
    if "*" in off:
        return named
    overridden, general = set(), []
    for name in plugins.multi_point.enabled_names:
        if name not in catalogue:
            raise ConfigError("", f"{kind} {go_quote(name)} does not exist")
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
    for plugin in (*(plugins.at(point).enabled or ()), *(plugins.multi_point.enabled or ())):
        if point not in catalogue[plugin.name].points or plugin.name in weights:
            continue
        weights[plugin.name] = plugin.weight or 1
        highest = weights[plugin.name] * MAX_SCORE
        # The reference computes in 64 bits: after a negative weight the room that is left wraps around, and the
        # next plugin is refused as if the sum had overflowed.
        if highest > _wrapped(_MAX_INT64 - total):
            raise ConfigError("", f"{what}: total score of Score plugins could overflow")
        total = _wrapped(total + highest)
    return weights


def _wrapped(value: int) -> int:
    return (value + (1 << 63)) % _WRAP - (1 << 63)
