"""Plugins of other authors: found by module name or file path, or installed by a package.

In: `module:Class`, `path/to/file.py:Class`, or either without a class; entry points of the group `kubesched.plugins`. Out:
verified plugin classes, or one ConfigError that names what was asked for. The code runs once, when it is found. Later changes
of the file are not read.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import logging
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from kubesched.errors import ConfigError, SchedulerError
from kubesched.scheduler.config import Configuration
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.runtime.registry import verify

log = logging.getLogger(__name__)

GROUP = "kubesched.plugins"
"""The group of entry points under which a package offers its plugins."""


@cache
def installed_plugins() -> tuple[type[Plugin], ...]:
    """Return the plugins that installed packages offer. One that cannot be used is named in the log and left out: nobody asked
    for it by name, and a configuration that does is told that there is no such plugin."""
    found: dict[str, type[Plugin]] = {}
    # Sorted, so that of two packages with a plugin of the same name the same one wins at every start.
    for point in sorted(entry_points(group=GROUP)):
        try:
            cls = point.load()
            verify(cls)
        except (Exception, SystemExit) as error:  # somebody else's code
            log.warning("entry point %s = %s cannot be used: %s: %s", point.name, point.value, type(error).__name__, error)
        else:
            found.setdefault(cls.name, cls)
    return tuple(found.values())


def find_plugins(asked: str) -> tuple[type[Plugin], ...]:
    """Return the class that was asked for, or all that a module defines itself, in the order of its text."""
    where, class_name = _split(asked)
    module = run_module(where)
    if class_name:
        found = getattr(module, class_name, None)
        if found is None:
            raise ConfigError("", f"plugin {asked}: {where} has no {class_name}")
        classes = [found]
    else:
        classes = classes_in(module)
        if not classes:
            raise ConfigError("", f"plugin {asked}: {where} defines no class derived from kubesched.Plugin")
    for cls in classes:
        try:
            verify(cls)
        except ConfigError as error:
            raise ConfigError("", f"plugin {asked}: {error}") from error
    return tuple(classes)


def classes_in(module: ModuleType) -> list[type[Plugin]]:
    """Return the plugin classes that a module defines itself, in the order of its text."""
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Plugin)
        and value.__module__ == module.__name__
        and not value.__name__.startswith("_")
    ]


def run_module(where: str) -> ModuleType:
    """Import a module by its name, or by the path of its file; a file is run once, however often it is asked for."""
    try:
        return _run_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    # Five cases, from the most helpful message to the most general. `ModuleNotFoundError` for another name means that the
    # module exists and imports something that does not.
    except (SchedulerError, KeyboardInterrupt):
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (where == error.name or where.startswith(f"{error.name}.")):
            raise ConfigError("", f"plugin {where}: no such module; a file is named by its path, with .py") from error
        raise ConfigError("", f"plugin {where}: importing it failed: {error}") from error
    except SyntaxError as error:
        raise ConfigError("", f"plugin {where}: line {error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:  # somebody else's code: whatever it does, the user is told in one line
        raise ConfigError("", f"plugin {where}: importing it failed: {type(error).__name__}: {error}") from error


def not_enabled(brought: Iterable[type[Plugin]], *configurations: Configuration) -> list[str]:
    """Return a sentence for each plugin that was brought along and that no profile runs."""
    profiles = [profile for configuration in configurations for profile in configuration.profiles]
    enabled = {name for profile in profiles for name in profile.plugin_names}
    return [
        f"plugin {cls.name} does nothing: no profile enables it (profiles[].plugins.multiPoint.enabled in --config)"
        for cls in brought
        if cls.name not in enabled
    ]


def _split(asked: str) -> tuple[str, str]:
    where, colon, class_name = asked.rpartition(":")
    if not colon or "/" in class_name or class_name.endswith(".py"):
        return asked, ""
    if not class_name.isidentifier() or not where:
        raise ConfigError("", f"plugin {asked}: expected module:Class or file.py:Class")
    return where, class_name


def _run_file(path: Path) -> ModuleType:
    try:
        whole = path.resolve(strict=True)
    except OSError as error:
        raise ConfigError("", f"plugin {path}: {(error.strerror or str(error)).lower()}") from error
    # Two files of one name are two modules, and neither takes the place of an installed one.
    name = f"kubesched_plugin_{path.stem}_{hashlib.sha256(bytes(whole)).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, whole)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Before it runs, as the import system does it: dataclasses and pickle look the module up by name while it is executed.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:  # whatever it is, half a module must not be found by the next who looks
        del sys.modules[name]
        raise
    return module
