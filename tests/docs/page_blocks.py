"""What stands in code fences of the pages: the blocks, and the commands in them.

In: Markdown files. Out: their blocks, and the commands with what they are said to print. A `console` block is a session:
lines that begin with `$ ` are typed, the rest is what they print. A line `...` stands for any lines. Spaces and line breaks do
not count, because pages are narrower than a pipe. In an `sh` block every line is a command, and nothing is said of what it
prints. `<!-- file: NAME -->` before a fence puts the block into a file that later commands of the page may read, and
`<!-- tested by: PATH::TEST -->` before a `console` block (`all sessions tested by` for a page) names the test that reads the
block from the page, and runs it on a live cluster or prints it from its figures. `page_shell` runs what is found here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY", "GOVERNANCE", "SKILL")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

_FENCE = re.compile(r"(?:^<!-- (file|tested by|not run): ?(.*?) -->\n)?^```([\w-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:kubectl )?kubesched [^`]+)`")


@dataclass(frozen=True, slots=True)
class Block:
    """One fence of a page."""

    page: str
    line: int
    language: str
    text: str
    file: str = ""
    tested_by: str = ""
    not_run: str = ""

    @property
    def has_commands(self) -> bool:
        """Whether it has commands that are to be run, and that no other test runs."""
        return self.language in ("console", "sh") and not (self.tested_by or self.not_run)

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Return the fences of a page in their order."""
    text, found = page.read_text(encoding="utf-8"), []
    all_tested = re.search(r"^<!-- all sessions tested by: (.*?) -->$", text, re.MULTILINE)
    for match in _FENCE.finditer(text):
        kind, value, language, content = match.groups()
        notes = {kind.replace(" ", "_"): value} if kind else {}
        if all_tested and language == "console":
            notes["tested_by"] = all_tested.group(1)
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(str(page.relative_to(ROOT)), line, language, content, **notes))
    return found


def prepare(folder: Path) -> None:
    """Put into a folder what pages name by its path in this repository."""
    for name in ("docs", "deploy", "tests"):
        (folder / name).symlink_to(ROOT / name)


def steps_of(block: Block) -> Iterator[tuple[str, str | None]]:
    """Yield the commands of a block, each with what it is said to print, if that is said."""
    text = block.text.replace("\\\n", "")
    if block.language == "sh":
        yield from ((line.split("  #")[0].strip(), None) for line in text.splitlines() if line.strip())
        return
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command.strip(), output


def inline_commands(page: Path) -> list[str]:
    """Return the calls of our program that stand in the text of a page, as `code`."""
    return _INLINE.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))


def sessions_in(page: Path, folder: Path) -> Iterator[tuple[Block, str, str | None]]:
    """Yield a page's commands that no other test runs, in a folder where its files are as they stand above them."""
    prepare(folder)
    for block in blocks_of(page):
        if block.file:
            (folder / block.file).write_text(block.text)
        if block.has_commands:
            yield from ((block, command, said) for command, said in steps_of(block))


def same(said: str, printed: str) -> bool:
    """Return whether a page says what was printed: all of it, or in this order what stands between lines of dots."""
    parts = [" ".join(part.split()) for part in re.split(r"^\s*\.\.\.$", said, flags=re.MULTILINE)]
    text = " ".join(printed.split())
    if len(parts) == 1:
        return text == parts[0]
    first, *between, last = parts
    if not (text.startswith(first) and text.endswith(last)):
        return False
    at = len(first)
    for part in between:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return at <= len(text) - len(last)
