"""How this repository is worked on: what `make test` retries, and what `make run` installs."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUNNER = ROOT / "tools" / "run_tests.py"
BROKEN = "def test_it():\n    assert False\n"
FLAKY = """from pathlib import Path
def test_it():
    been_here = Path("been-here")
    was_there = been_here.exists()
    been_here.touch()
    assert was_there
"""
PLAIN = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # they start faster without plugins
SKIPPED = "import pytest\n@pytest.mark.skip(reason='no lunch')\ndef test_it():\n    pass\n"

SUITES = [
    ("all pass", {}, 0, "flaky", False),
    ("an end-to-end test passes the second time", {"e2e": FLAKY}, 0, "flaky: 1\n  tests/e2e/test_it.py::test_it", True),
    ("an end-to-end test fails twice", {"e2e": BROKEN}, 1, "flaky: 0", True),
    ("a unit test is not tried again", {"unit": FLAKY}, 1, "flaky", False),
    ("nor is anything else beside it", {"unit": BROKEN, "e2e": FLAKY}, 1, "flaky", False),
    ("a skip is told with its reason", {"unit": SKIPPED}, 0, "no lunch", True),
]


@pytest.mark.parametrize(("case", "files", "code", "text", "is_said"), SUITES, ids=[each[0] for each in SUITES])
def test_only_end_to_end_tests_are_tried_again(
    case: str, files: dict[str, str], code: int, text: str, is_said: bool, tmp_path: Path
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q --import-mode=importlib -p no:randomly\nmarkers = nightly\n")
    for folder, content in {"contract": "def test_it():\n    pass\n", **files}.items():
        file = tmp_path / "tests" / folder / "test_it.py"
        file.parent.mkdir(parents=True)
        file.write_text(content)
    done = subprocess.run([sys.executable, RUNNER], cwd=tmp_path, capture_output=True, text=True, timeout=60, env=PLAIN)
    assert done.returncode == code, done.stdout
    assert (text in done.stdout) == is_said, done.stdout


def test_bytecode_is_kept_where_python_is_told_not_to_write_it() -> None:
    """Compiling the package at every start of the program doubles what the end-to-end tests cost."""
    kept = runpy.run_path(str(RUNNER))["with_bytecode"]({"PYTHONDONTWRITEBYTECODE": "1", "HOME": "/h"})
    assert kept == {"HOME": "/h", "PYTHONPYCACHEPREFIX": str(Path(sys.prefix) / "pycache")}
    assert runpy.run_path(str(RUNNER))["with_bytecode"]({"HOME": "/h"}) == {"HOME": "/h"}


def test_running_needs_no_tool_of_a_developer() -> None:
    # `make run` installs the dependencies alone; what is imported beyond them would break it on a fresh machine.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[<>=!~\[ ]", each)[0].lower().replace("-", "_") for each in project["dependencies"]}
    modules = {"pyyaml": "yaml", "google_re2": "re2"}
    brought = {"multidict", "yarl"}  # by aiohttp, whose own interface is made of them
    allowed = {modules.get(name, name) for name in declared} | brought | set(sys.stdlib_module_names) | {"kubesched"}
    # Whose classes are made of the extra's: who has it imports them.
    of_extras = {
        "environments.py": {"gymnasium"},
        "grpc_face.py": {"grpc"},
        "load.py": {"grpc"},
        "descriptors.py": {"google"},
    }
    strangers = {}
    for file in (ROOT / "kubesched").rglob("*.py"):
        if file.is_relative_to(ROOT / "kubesched" / "testing"):
            continue
        # What a function imports is for those who asked for an extra, and says so where it is missing.
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            strangers |= {
                name: file.name for name in names if name.split(".")[0] not in allowed | of_extras.get(file.name, set())
            }
    assert not strangers
