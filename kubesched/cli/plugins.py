"""`kubesched plugins`: what is there, a file to start one's own from, and the contract checks on it."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import click

from kubesched.cli.layout import print_table
from kubesched.engine.assembly import default_configuration, registry_with
from kubesched.errors import ConfigError
from kubesched.framework.finding import find_plugins
from kubesched.framework.plugin import Plugin
from kubesched.framework.registry import points_of
from kubesched.testing import check_plugin

_TEMPLATE = '''"""{name}: say here what it is for."""

import numpy as np

from kubesched import Plugin, Reason, Rejections

TOO_BUSY = Reason("node(s) were too busy")


class {name}(Plugin):
    """Keep pods off nodes that run more than thirty pods, and prefer the quietest of the others."""

    def filter(self, pod, nodes, state):
        return Rejections.where(nodes.pod_count > 30, TOO_BUSY)

    def score(self, pod, nodes, state):
        return np.maximum(100 - 3 * nodes.pod_count, 0)
'''


def run_plugins_list(output: str) -> None:
    (profile,) = default_configuration().profiles
    weights = {entry.name: entry.weight for entry in profile.at("score")}
    rows = [
        {
            "name": cls.name,
            "default": cls.name in profile.plugin_names,
            "weight": weights.get(cls.name, 0),
            "points": _points(cls),
            "about": _about(cls),
        }
        for cls in registry_with()
    ]
    if output == "json":
        click.echo(json.dumps(rows))
    elif output == "yaml":
        for row in rows:
            click.echo(
                f"- name: {row['name']}\n  default: {json.dumps(row['default'])}\n  weight: {row['weight']}\n"
                f"  points: {json.dumps(row['points'])}\n  about: {json.dumps(row['about'])}"
            )
    else:
        print_table(
            ("plugin", "weight", "points and purpose"),
            [
                (
                    str(row["name"]) if row["default"] else f"{row['name']} (off)",
                    str(row["weight"] or ""),
                    f"{', '.join(row['points'])}: {row['about']}",  # type: ignore[arg-type]
                )
                for row in rows
            ],
            right=(1,),
            sentences=True,
        )


def _points(cls: type[Plugin]) -> list[str]:
    """Return the extension points where a plugin acts, as kube-scheduler calls them."""
    return ["".join(word.capitalize() for word in point.split("_")) for point in points_of(cls)]


def _about(cls: type[Plugin]) -> str:
    """Return the first sentence of the module's story, without the plugin's name."""
    story = inspect.getdoc(inspect.getmodule(cls)) or inspect.getdoc(cls) or ""
    line = story.split("\n\n")[0].replace("\n", " ")
    return re.sub(rf"^{cls.name}: ", "", line)


def run_plugins_new(name: str, force: bool) -> None:
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
        raise ConfigError("", f"{name!r} is no name for a plugin class: letters and digits are wanted, a capital first")
    path = Path(re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() + ".py")
    if path.exists() and not force:
        raise ConfigError("", f"{path} exists; --force overwrites it")
    path.write_text(_TEMPLATE.format(name=name))
    click.echo(f"wrote {path}; try:  kubesched plugins check {path}")


def run_plugins_check(where: str, seed: int) -> None:
    for cls in find_plugins(where):
        try:
            check_plugin(cls, seed=seed)
        except AssertionError as error:
            raise ConfigError("", str(error)) from error
        except Exception as error:
            raise ConfigError("", f"plugin {cls.name} breaks: {type(error).__name__}: {error}") from error
        click.echo(f"{cls.name}: keeps the contract ({', '.join(_points(cls))})")
