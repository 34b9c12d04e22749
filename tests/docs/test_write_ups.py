"""docs/reference/write-ups.md says where each element of five articles is: every file, name and test of its tables exists."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import kubesched

ROOT = Path(kubesched.__file__).parent
TESTS = ROOT.parent / "tests"
PAGE = ROOT.parent / "docs" / "reference" / "write-ups.md"
SECTIONS = {
    part.splitlines()[0]: [row.strip("|").split(" | ") for row in part.splitlines() if re.match(r"\| (?!element )", row)]
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
}
ROWS = [row for rows in SECTIONS.values() for row in rows]


@cache
def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def cells(column: str) -> list[tuple[str, str]]:
    """Return the files of a column, each with a name in it or "". A name without a file is in the file before it."""
    found, file = [], ""
    for cell in re.findall(r"`([^`]+)`", column):
        is_file = re.fullmatch(r"([\w./-]+\.(?:py|jsonl\.gz))(?:: (\w+))?", cell)
        file, name = (is_file[1], is_file[2] or "") if is_file else (file, cell)
        found.append((file, name))
    return found


def is_defined(name: str, file: Path) -> bool:
    """Return whether a file defines a function, class, field or constant, or declares a metric of this name."""
    return bool(re.search(rf'(?:def |class |self\.){name}\b|^\s*{name}\b *[:=]|"{name}"', text_of(file), re.MULTILINE))


def test_each_row_has_four_columns_and_each_article_a_section() -> None:
    assert all(len(row) == 4 and all(cell.strip() for cell in row) for row in ROWS)
    assert [head.partition(":")[0] for head in SECTIONS] == ["1.4", "1.6", "1.13", "1.17", "1.31"]


def test_what_the_tables_name_is_there() -> None:
    named = [cell for row in ROWS for cell in cells(row[1])]
    assert len(named) > 300
    assert [
        cell for cell in named if not (ROOT / cell[0]).is_file() or (cell[1] and not is_defined(cell[1], ROOT / cell[0]))
    ] == []


def test_each_row_names_a_test_that_there_is() -> None:
    missing = []
    for row in ROWS:
        named = cells(row[3])
        for file, name in named:
            places = list(TESTS.rglob(file))
            if len(places) != 1 and not (file.endswith(".gz") and places):
                missing.append(f"{file} is {len(places)} files")
            elif name and not re.search(rf"^ *(?:async )?def {name}\(", text_of(places[0]), re.MULTILINE):
                missing.append(f"{file}: {name}")
        if not named:
            missing.append(row[0])
    assert missing == []
