"""Run the commands of pages again and put what they print now below them.

usage: python tools/rewrite_sessions.py docs/how-to/why.md ...

What a page leaves out with a line `...` stays left out. The test is tests/docs/test_sessions.py; look at what changed before
you commit it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "docs")]

from page_blocks import same, sessions_in  # noqa: E402
from page_shell import run  # noqa: E402

WIDTH = 118


def rewrite(page: Path, folder: Path) -> None:
    """Bring the sessions of a page up to date."""
    text = page.read_text(encoding="utf-8")
    for block, command, said in sessions_in(page, folder):
        if said is None or same(said, run(command, folder)):
            continue
        print(f"{block.where}: {command}")
        with mock.patch("kubesched.cli.layout.columns", return_value=WIDTH):
            printed = run(command, folder)
        text = (
            text.replace(said, printed if printed.endswith("\n") else f"{printed}\n")
            if said
            else _after(text, block.text, printed)
        )
    page.write_text(text, encoding="utf-8")


def _after(text: str, session: str, printed: str) -> str:
    return text.replace(session, f"{session}{printed}")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            rewrite(Path(name).resolve(), Path(folder))
