"""A one-file plugin to start from, and tests of it."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from kubesched.errors import ConfigError
from kubesched.scheduler.engine import registry_with

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


def write_plugin(name: str, *, overwrites: bool) -> tuple[Path, Path]:
    """Write a plugin and its tests into this folder; return the two files."""
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
        raise ConfigError(
            "", f"{name!r} is no name for a plugin class: use letters and digits, and begin with a capital, as in QuietNodes"
        )
    if keyword.iskeyword(name):
        raise ConfigError("", f"{name!r} is no name for a plugin class: it is a word of Python")
    if registry_with().find(name) is not None:
        raise ConfigError("", f"a plugin named {name} is in the tree already: choose another name")
    module = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    path, tests = Path(f"{module}.py"), Path(f"test_{module}.py")
    for file in (path, tests):
        if file.exists() and not overwrites:
            raise ConfigError("", f"{file} exists; --force overwrites it")
    path.write_text(_TEMPLATE.format(name=name), encoding="utf-8")
    tests.write_text(_TESTS.format(name=name, module=module), encoding="utf-8")
    return path, tests
