"""docs/architecture.md is the plan of the package: it names every room, and nothing that is not there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "kubesched"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
NAMED = set(re.findall(r"`([a-z_/.]+)`", PAGE))
MOST_MODULES = 20
"""The most modules that a folder holds, so that its listing can be read."""
MOST_COMMANDS = 30
"""As many may lie in `cli`, which has one a command."""


def test_every_wing_and_room_is_on_the_page() -> None:
    rooms = {folder.name for wing in ("kube", "scheduler", "server", "embedded") for folder in packages(PACKAGE / wing)}
    assert rooms | {folder.name for folder in packages(PACKAGE)} <= NAMED


def test_every_path_on_the_page_is_there() -> None:
    tops = (PACKAGE, PACKAGE / "scheduler", ROOT)
    paths = {name for name in NAMED if "/" in name or name.endswith(".py")}
    assert paths
    assert not [
        name for name in paths if not any((top / name.rstrip("/")).exists() or (top / f"{name}.py").exists() for top in tops)
    ]


def test_no_folder_is_too_long_to_read() -> None:
    sizes = {folder: len(list(folder.glob("*.py"))) - 1 for folder in PACKAGE.rglob("*") if folder.is_dir()}
    assert sizes.pop(PACKAGE / "cli") <= MOST_COMMANDS
    assert not {folder.relative_to(PACKAGE): size for folder, size in sizes.items() if size > MOST_MODULES}


FACED = (
    "kube/values",
    "kube/api",
    "kube/client",
    *(f"scheduler/{room}" for room in ("cluster", "config", "framework", "queue", "engine")),
)
"""Rooms from whose `__init__` the other rooms import; their files are their own business."""


def test_what_a_room_offers_is_imported_from_the_room() -> None:
    rooms = {f"kubesched.{room.replace('/', '.')}": PACKAGE / room for room in FACED}
    wrong = []
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            room = next((room for room in rooms if module.startswith(f"{room}.")), None)
            if room is not None and not file.is_relative_to(rooms[room]):
                names = [each.name for each in getattr(node, "names", ()) if not is_module(module, each.name)]
                wrong += [f"{file.relative_to(PACKAGE)}: from {module} import {name}" for name in names]
    assert not wrong


def is_module(package: str, name: str) -> bool:
    where = PACKAGE.parent / package.replace(".", "/") / name
    return where.with_suffix(".py").exists() or where.is_dir()


def packages(folder: Path) -> list[Path]:
    return [init.parent for init in folder.glob("*/__init__.py")]
