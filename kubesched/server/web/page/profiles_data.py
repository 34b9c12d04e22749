"""The configuration for the page: each profile's plugins by extension point, with weights, arguments and purpose."""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.scheduler.engine import Engine
from kubesched.scheduler.framework import POINTS, Plugin, Profile, point_name, purpose_of

_ORDER = list(POINTS)


def configuration_of(engine: Engine) -> dict[str, Any]:
    """Return the profiles, and the settings of the queue."""
    options = engine.queue.options
    return {
        "profiles": [_profile(profile) for profile in engine.profiles.values()],
        "podInitialBackoffSeconds": options.initial_backoff_seconds,
        "podMaxBackoffSeconds": options.max_backoff_seconds,
    }


def _profile(profile: Profile) -> dict[str, Any]:
    points = [
        {
            "point": point_name(point),
            "plugins": [
                {"name": plugin.name, **({"weight": weight or 1} if point == "score" else {})} for plugin, weight in entries
            ],
        }
        for point, entries in sorted(profile.points.items(), key=lambda each: _ORDER.index(each[0]))
        if entries
    ]
    plugins = [
        {"name": plugin.name, "purpose": purpose_of(type(plugin)), "args": _args(plugin)}
        for plugin in sorted(profile.plugins, key=lambda each: each.name)
    ]
    return {
        "schedulerName": profile.name,
        "percentageOfNodesToScore": profile.percentage_of_nodes,
        "points": points,
        "plugins": plugins,
    }


def _args(plugin: Plugin) -> Any:
    """Return a plugin's arguments; what JSON does not know is shown as text."""
    return msgspec.to_builtins(plugin.args, enc_hook=str) if plugin.args is not None else None
