"""Write the marked tables of docs/explanation/performance-details.md anew, from the commands above them.

usage: tools/performance_tables.py [WORD ...]     only tables whose command has one of the words

A table is what stands between `<!-- figures: FIELD FIELD ... -->` and `<!-- /figures -->`. Its first line has the commands,
between backticks, and what is to be known of the run; the fields are those of the JSON that the commands print or write.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "bench"))

from run import machine  # noqa: E402

PAGE = ROOT / "docs" / "explanation" / "performance-details.md"
TABLE = re.compile(r"(<!-- figures: (.*?) -->\n)(.*?)\n.*?(?=<!-- /figures -->)", re.DOTALL)


def rows_of(command: str) -> list[dict[str, Any]]:
    """Run a command and return its figures, a row each."""
    name, *words = shlex.split(command)
    with tempfile.TemporaryDirectory() as folder:
        if name == "kubesched":
            words = ["-m", "kubesched", *words, "-o", "json"]
        else:  # python bench/...
            words += ["--out", f"{folder}/figures.json"]
        printed = subprocess.run([sys.executable, *words], check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout
        document = (
            json.loads(printed) if name == "kubesched" else json.loads(Path(folder, "figures.json").read_text(encoding="utf-8"))
        )
    if isinstance(document, dict):
        document = document.get("rows", [document])
    return list(document)


def table(commands: list[str], fields: list[str]) -> str:
    """Return what stands on the page."""
    where = machine()  # before it is busy with this
    rows = [row for command in commands for row in rows_of(command)]
    said = ", ".join(f"`{command}`" for command in commands)
    lines = [f"{said}; {where['date']}, at a load of {where['load']:.1f}:\n"]
    lines += [head_of(fields)]
    lines += [f"|{'|'.join('---' if isinstance(rows[0].get(field), str) else '---:' for field in fields)}|"]
    lines += [f"| {' | '.join(_shown(row.get(field)) for field in fields)} |" for row in rows]
    return "\n".join(lines) + "\n"


def head_of(fields: list[str]) -> str:
    return f"| {' | '.join(field.replace('_per_', '/').replace('_', ' ') for field in fields)} |"


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def main() -> None:
    wanted = sys.argv[1:]

    def made(match: re.Match[str]) -> str:
        head, fields, first_line = match.groups()
        if wanted and not any(word in first_line for word in wanted):
            return match[0]
        print(first_line, file=sys.stderr, flush=True)
        return head + table(re.findall(r"`(.+?)`", first_line), fields.split())

    PAGE.write_text(TABLE.sub(made, PAGE.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
