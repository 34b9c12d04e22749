"""`kubesched plugins`: what is there, a file to start one's own from, and the contract checks on it."""

from __future__ import annotations

import inspect
import json
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubesched.cli.layout import print_table
from kubesched.cli.options import output_without_default_option
from kubesched.cli.printing import warn
from kubesched.errors import ConfigError, SchedulerError

if TYPE_CHECKING:
    from kubesched.scheduler.framework import Plugin

_SLOW_SECONDS = 0.1
"""From here on a running scheduler names a plugin in its log."""
_ROUNDS, _ROUNDS_IF_SLOW = 25, 2


@click.group("plugins", epilog="Example:  kubesched plugins list")
def command() -> None:
    """List plugins, start one of your own, check it."""


@command.command("list", short_help="List the plugins in the tree.", epilog="Example:  kubesched plugins list -o json")
@output_without_default_option
def list_(output: str) -> None:
    """List the plugins in the tree: where they act, their default weight, what they do."""
    from kubesched.scheduler.engine import default_configuration, registry_with
    from kubesched.scheduler.framework import purpose_of

    (profile,) = default_configuration().profiles
    weights = {entry.name: entry.weight for entry in profile.at("score")}
    rows = [
        {
            "name": cls.name,
            "default": cls.name in profile.plugin_names,
            "weight": weights.get(cls.name, 0),
            "points": _points(cls),
            "about": purpose_of(cls),
        }
        for cls in registry_with(installed=True)
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


@command.command("new", short_help="Write a plugin to start from.", epilog="Example:  kubesched plugins new QuietNodes")
@click.argument("name")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
def new(name: str, force: bool) -> None:
    """Write a one-file plugin to start from, and tests of it beside it."""
    from kubesched.tools.plugins.template import write_plugin

    path, tests = write_plugin(name, overwrites=force)
    click.echo(f"wrote {path} and {tests}; try:  kubesched plugins check {path}; python -m pytest {tests}")


@command.command(
    "check", short_help="Check that a plugin keeps the contract.", epilog="Example:  kubesched plugins check quiet_nodes.py"
)
@click.argument("where")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random clusters.")
def check(where: str, seed: int) -> None:
    """Check a plugin (module:Class, file.py:Class or file.py) against the plugin contract, on random clusters."""
    from kubesched.scheduler.framework import find_plugins

    for cls in find_plugins(where):
        seconds, n_nodes = _checked(cls, seed)
        click.echo(f"{cls.name}: keeps the contract ({', '.join(_points(cls))})")
        if seconds > _SLOW_SECONDS:
            nodes = "1 node" if n_nodes == 1 else f"{n_nodes} nodes"
            warn(f"{cls.name} is slow: {seconds:.1f} s for one pod on {nodes}")


def _points(cls: type[Plugin]) -> list[str]:
    """Return the extension points where a plugin acts, as kube-scheduler calls them."""
    from kubesched.scheduler.framework import point_name, points_of

    return [point_name(point) for point in points_of(cls)]


def _checked(cls: type[Plugin], seed: int) -> tuple[float, int]:
    """Check a plugin on random clusters; return the seconds that it takes for a pod, and on how many nodes."""
    from kubesched.testing.contract import check_plugin, seconds_a_pod

    try:
        seconds, n_nodes = seconds_a_pod(cls, sizes=(1, 10), limit=_SLOW_SECONDS, seed=seed)
        check_plugin(cls, seed=seed, rounds=_ROUNDS if seconds <= _SLOW_SECONDS else _ROUNDS_IF_SLOW)
        if seconds <= _SLOW_SECONDS:
            seconds, n_nodes = seconds_a_pod(cls, sizes=(100, 1000), limit=_SLOW_SECONDS, seed=seed)
    except (Exception, SystemExit) as error:  # somebody else's code: whatever it does, the user is told in one line
        raise ConfigError("", _broken(cls, error)) from error
    return seconds, n_nodes


def _broken(cls: type[Plugin], error: BaseException) -> str:
    """Say what a plugin broke, or what it raised and in which line of its file."""
    file, line, cause = inspect.getsourcefile(cls) or "", 0, error
    while True:
        frames = [frame for frame in traceback.extract_tb(cause.__traceback__) if frame.filename == file]
        if frames:
            line = frames[-1].lineno or 0
            break
        if cause.__cause__ is None:
            break
        cause = cause.__cause__
    if not line:
        return str(error) if isinstance(error, AssertionError | SchedulerError) else f"plugin {cls.name}: {error}"
    return f"plugin {cls.name} raises {type(cause).__name__} in {Path(file).name}, line {line}: {cause}"
