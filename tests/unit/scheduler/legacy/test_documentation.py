"""docs/reference/legacy.md says where each element of the write-ups lives: every file and name of its tables is there."""

from __future__ import annotations

import re
from pathlib import Path

import kubesched

ROOT = Path(kubesched.__file__).parent
TABLES = (
    (ROOT.parent / "docs" / "reference" / "legacy.md")
    .read_text(encoding="utf-8")
    .partition("## Element by element")[2]
    .partition("\n## ")[0]
)


def test_what_the_tables_name_is_there() -> None:
    rows = [row.split(" | ") for row in TABLES.splitlines() if row.startswith("| ") and not row.startswith("| element")]
    assert len(rows) > 80 and all(len(row) == 3 for row in rows)
    missing, file = [], ROOT
    for _, where, _ in rows:
        for cell in re.findall(r"`([^`]+)`", where):
            path, is_file, name = cell.partition(".py")
            if is_file:
                file, name = ROOT / f"{path}.py", name.removeprefix(": ")
            if not file.exists() or (name and not re.search(rf"\b{re.escape(name)}\b", file.read_text(encoding="utf-8"))):
                missing.append(cell)
    assert missing == []
