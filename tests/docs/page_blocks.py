"""What stands in code fences of the pages, and what comes of running it.

In: Markdown files. Out: their blocks; the output of a command that a block shows. A `console` block is a session: lines that
begin with
`$ ` are typed, the rest is what they print. A line `...` stands for any lines. Spaces and line breaks do not count, because
pages are
narrower than a pipe. `<!-- file: NAME -->` before a fence puts the block into a file that later commands of the page may
read, and
`<!-- tested by: PATH::TEST -->` before a `console` block (`all sessions tested by` for a page) names the test that reads the
block from the page, and runs it on a live cluster or prints it from its figures.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY", "GOVERNANCE", "SKILL")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

_FENCE = re.compile(r"(?:^<!-- (file|tested by|not run): ?(.*?) -->\n)?^```([\w-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHELL = re.compile(r"[|<>&;$`*]")


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
    def where(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Return the fences of a page in their order."""
    text, found = page.read_text(), []
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


def steps_of(session: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a session, each with what it is said to print."""
    for part in re.split(r"^\$ ", session.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command.strip(), output


def commands_of(block: Block) -> list[str]:
    """Return the lines of a shell block that call our program, without comments."""
    lines = [line.split("  #")[0].strip() for line in block.text.replace("\\\n", "").splitlines()]
    return [line.removeprefix("kubectl ") for line in lines if line.startswith(("kubesched ", "kubectl kubesched "))]


def run(command: str, folder: Path) -> str:
    """Return what a command prints, on both streams. Our own program runs in this process if no shell is needed."""
    words = shlex.split(command)
    if words[0] == "kubesched" and not _SHELL.search(command):
        return _in_process(words[1:], folder)
    ours = {"PATH": f"{_shim(folder)}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, **ours},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    return done.stdout


def _in_process(words: list[str], folder: Path) -> str:
    from kubesched.cli import main

    printed = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        mock.patch.object(sys, "argv", ["kubesched", *words]),
        contextlib.suppress(SystemExit),
    ):
        main()
    return printed.getvalue()


def _shim(folder: Path) -> Path:
    """Put a `kubesched` of this checkout, and the `python` that runs this, where a shell finds them."""
    there = folder / ".bin"
    if not there.exists():
        there.mkdir()
        # Not a link to python: it would not find the virtual environment that it belongs to.
        words = {"kubesched": "-m kubesched", "python": ""}
        for name, before in words.items():
            (there / name).write_text(f'#!/bin/sh\nexec {sys.executable} {before} "$@"\n')
            (there / name).chmod(0o755)
    return there


def sessions_in(page: Path, folder: Path) -> Iterator[tuple[Block, str, str]]:
    """Yield a page's commands that nobody else tests, in a folder where its files are as they stand above them."""
    prepare(folder)
    for block in blocks_of(page):
        if block.file:
            (folder / block.file).write_text(block.text)
        if block.language == "console" and not block.tested_by:
            for command, said in steps_of(block.text):
                yield block, command, said


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
