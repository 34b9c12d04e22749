"""Every room has a page that says what it is for."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "rooms"


def test_every_room_has_a_page_that_names_files_that_are_there() -> None:
    rooms = {folder.parent.name for folder in (ROOT / "kubesched").glob("*/__init__.py")}
    assert {page.stem for page in PAGES.glob("*.md")} == rooms
    for page in PAGES.glob("*.md"):
        text = page.read_text()
        named = re.findall(r"`([a-z_/]+\.py)`", text) + [f"{name}.py" for name in re.findall(r"`(_[a-z_]+)`", text)]
        assert named, page.name
        missing = [name for name in named if not any((top / name).exists() for top in _tops(page.stem))]
        assert not missing, f"{page.name} names {missing}"


def _tops(room: str) -> tuple[Path, ...]:
    return ROOT / "kubesched" / room, ROOT / "kubesched", ROOT / "tests" / "e2e", ROOT
