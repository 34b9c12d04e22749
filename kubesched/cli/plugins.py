"""`kubesched plugins`: what is there, a file to start one's own from, and the contract checks on it."""

from __future__ import annotations

import inspect
import json
import keyword
import re
import traceback
from pathlib import Path

import click

from kubesched.cli.layout import print_table
from kubesched.errors import ConfigError, SchedulerError
from kubesched.scheduler.engine.assembly import default_configuration, registry_with
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.runtime.finding import find_plugins
from kubesched.scheduler.framework.runtime.registry import point_name, points_of, purpose_of
from kubesched.testing import check_plugin
from kubesched.testing.contract import seconds_a_pod

_SLOW_SECONDS = 0.1
"""From here on a running scheduler names a plugin in its log."""
_ROUNDS, _ROUNDS_IF_SLOW = 25, 2

_TEMPLATE = '''"""{name}: say here what it is for."""

import numpy as np

from kubesched import Input, Plugin, Reason, Rejections

TOO_BUSY = Reason("node(s) were too busy")


class {name}(Plugin):
    """Keep pods off nodes that run more than thirty pods, and prefer the quietest of the others."""

    depends_on = (Input.PODS_ON_NODE,)  # the answers follow from this alone; without it they are computed for every pod

    def filter(self, pod, nodes, state):
        return Rejections.where(nodes.pod_count > 30, TOO_BUSY)

    def score(self, pod, nodes, state):
        return np.maximum(100 - 3 * nodes.pod_count, 0)
'''

_TESTS = '''"""{name}: it keeps the contract, and decides what it is for.  python -m pytest test_{module}.py"""

from {module} import {name}

from kubesched import Simulation
from kubesched.testing import check_plugin, node, pod


def test_it_keeps_the_contract():
    check_plugin({name})


def decided(*placed, nodes=("a", "b")):
    """Return where one more pod goes, with pods placed already; empty if nowhere."""
    sim = Simulation([node(name, cpu="64", memory="256Gi") for name in nodes], plugins=[({name}, 100)], seed=1)
    for i, name in enumerate(placed):
        sim.add(pod(f"there-{{i}}", on=name))
    sim.submit(pod("new"))
    sim.run(until=1)
    return sim.pods["default/new"].node


def test_the_quieter_node_is_preferred():
    assert decided("a", "a", "b") == "b"


def test_a_busy_node_is_refused():
    assert decided(*["a"] * 31, nodes=("a",)) == ""
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


def _points(cls: type[Plugin]) -> list[str]:
    """Return the extension points where a plugin acts, as kube-scheduler calls them."""
    return [point_name(point) for point in points_of(cls)]


def run_plugins_new(name: str, force: bool) -> None:
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
        raise ConfigError("", f"{name!r} is no name for a plugin class: letters and digits are wanted, a capital first")
    if keyword.iskeyword(name):
        raise ConfigError("", f"{name!r} is no name for a plugin class: it is a word of Python")
    if registry_with().find(name) is not None:
        raise ConfigError("", f"a plugin named {name} is in the tree already: choose another name")
    module = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    path, tests = Path(f"{module}.py"), Path(f"test_{module}.py")
    for file in (path, tests):
        if file.exists() and not force:
            raise ConfigError("", f"{file} exists; --force overwrites it")
    path.write_text(_TEMPLATE.format(name=name), encoding="utf-8")
    tests.write_text(_TESTS.format(name=name, module=module), encoding="utf-8")
    click.echo(f"wrote {path} and {tests}; try:  kubesched plugins check {path}; python -m pytest {tests}")


def run_plugins_check(where: str, seed: int) -> None:
    for cls in find_plugins(where):
        try:
            seconds, n_nodes = seconds_a_pod(cls, sizes=(1, 10), limit=_SLOW_SECONDS, seed=seed)
            check_plugin(cls, seed=seed, rounds=_ROUNDS if seconds <= _SLOW_SECONDS else _ROUNDS_IF_SLOW)
            if seconds <= _SLOW_SECONDS:
                seconds, n_nodes = seconds_a_pod(cls, sizes=(100, 1000), limit=_SLOW_SECONDS, seed=seed)
        except (Exception, SystemExit) as error:  # somebody else's code: whatever it does, the user is told in one line
            raise ConfigError("", _broken(cls, error)) from error
        click.echo(f"{cls.name}: keeps the contract ({', '.join(_points(cls))})")
        if seconds > _SLOW_SECONDS:
            nodes = "1 node" if n_nodes == 1 else f"{n_nodes} nodes"
            click.echo(f"Warning: {cls.name} is slow: {seconds:.1f} s for one pod on {nodes}", err=True)


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
