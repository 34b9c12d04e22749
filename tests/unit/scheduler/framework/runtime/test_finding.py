"""Plugins by module or file: found, or refused in one line that says what was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.errors import ConfigError
from kubesched.scheduler.framework.runtime.finding import find_plugins, run_module

GOOD = """
from kubesched import Plugin

runs = []
runs.append(1)

class Quiet(Plugin):
    name = "example.com/quiet"
    def filter_node(self, pod, node, state):
        return None

class Loud(Plugin):
    def score_node(self, pod, node, state):
        return 1

class _Base(Plugin):
    pass
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(GOOD)
    return path


def test_a_class_of_a_file(file: Path) -> None:
    (found,) = find_plugins(f"{file}:Quiet")
    assert found.name == "example.com/quiet"


def test_all_classes_of_a_file_that_are_its_own(file: Path) -> None:
    assert [cls.name for cls in find_plugins(str(file))] == ["example.com/quiet", "Loud"]


def test_a_class_of_a_module() -> None:
    (found,) = find_plugins("kubesched.scheduler.plugins.node_name:NodeName")
    assert found.name == "NodeName"


def test_a_file_is_run_once_however_often_it_is_asked_for(file: Path) -> None:
    assert find_plugins(f"{file}:Quiet")[0] is find_plugins(str(file))[0]
    assert run_module(str(file)).runs == [1]


def test_two_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(GOOD.replace("quiet", folder))
    names = [find_plugins(f"{tmp_path}/{folder}/mine.py:Quiet")[0].name for folder in ("a", "b")]
    assert names == ["example.com/a", "example.com/b"]


BAD: list[tuple[str, str, str]] = [
    ("{file}:Missing", GOOD, "plugin {file}:Missing: {file} has no Missing"),
    ("{file}:runs", GOOD, "plugin {file}:runs: [1] is not a subclass of kubesched.Plugin"),
    ("{file}:_Base", GOOD, "plugin {file}:_Base: plugin _Base implements no extension point"),
    ("{file}:not a name", GOOD, "plugin {file}:not a name: expected module:Class or file.py:Class"),
    ("{file}", "x = 1", "plugin {file}: {file} defines no class derived from kubesched.Plugin"),
    ("{file}", "def f(:", "plugin {file}: line 1: "),
    ("{file}", "1 / 0", "plugin {file}: importing it failed: ZeroDivisionError: division by zero"),
    ("{file}", "import sys; sys.exit('no')", "plugin {file}: importing it failed: SystemExit: no"),
    ("{file}", "import no_such_thing", "plugin {file}: importing it failed: No module named 'no_such_thing'"),
    (
        "{file}:Quiet",
        GOOD.replace("pod, node, state):\n        return None", "pod):\n        return None"),
        "plugin {file}:Quiet: plugin example.com/quiet: filter_node(pod) does not take the arguments of the contract",
    ),
    ("no.such.module:X", "", "plugin no.such.module: no such module; a file is named by its path, with .py"),
    ("/nowhere/x.py:X", "", "plugin /nowhere/x.py: no such file or directory"),
]


@pytest.mark.parametrize(("asked", "text", "error"), BAD, ids=[f"{case[0]} {case[2][:40]}" for case in BAD])
def test_what_cannot_be_used_is_said_in_one_line(tmp_path: Path, asked: str, text: str, error: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        find_plugins(asked.replace("{file}", str(file)))
    assert str(caught.value).startswith(error.replace("{file}", str(file)))
    assert "\n" not in str(caught.value)
