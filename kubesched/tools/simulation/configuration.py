"""How a simulation is configured: by a file, a text or a value, with plugins that are handed in as classes switched on.

In: a configuration in any form, and plugin classes with a weight each. Out: the configuration with every plugin at the points
that it implements: last, where all are asked; first, where the first that answers wins (Bind); alone, where there is only one
(QueueSort). A profile that names a plugin itself keeps it as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from kubesched.scheduler.config import Configuration, Configured, Gates, Profile, load
from kubesched.scheduler.engine import default_configuration
from kubesched.scheduler.framework import Plugin, Registry, catalogue, points_of


def read_configuration(given: Configuration | str | os.PathLike[str] | None, gates: Gates, registry: Registry) -> Configuration:
    """Return a configuration that is given as a value, a path or a text; None is the default one."""
    if given is None:
        return default_configuration(gates, registry)
    if isinstance(given, Configuration):
        return given
    is_path = isinstance(given, str) and "\n" not in given and not given.lstrip().startswith("{")
    return load(Path(given) if is_path else given, gates=gates, registry=catalogue(registry))


def enable(configuration: Configuration, plugins: Iterable[tuple[type[Plugin], int]]) -> Configuration:
    """Return the configuration with the plugins switched on in every profile."""
    profiles = configuration.profiles
    for cls, weight in plugins:
        profiles = tuple(_with(profile, cls, weight) for profile in profiles)
    return replace(configuration, profiles=profiles)


def _with(profile: Profile, cls: type[Plugin], weight: int) -> Profile:
    if cls.name in profile.plugin_names:
        return profile
    points = dict(profile.points)
    for point in points_of(cls):
        entry, others = Configured(cls.name, weight if point == "score" else 1), points.get(point, ())
        points[point] = (entry,) if point == "queue_sort" else (entry, *others) if point == "bind" else (*others, entry)
    return replace(profile, points=points)
