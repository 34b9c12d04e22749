"""Add to the site what the folder docs/ does not have: the list of decisions.

A hook of mkdocs. A link to a file outside docs/, or to an example, cannot be followed on the site, so it becomes plain text. If
the file does not exist, that is a warning, which fails a strict build.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
LISTS = {"decisions": "Design decisions\n\n*For contributors: choices that close other roads, and what each gave up.*"}
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
log = get_plugin_logger("site_links")


def on_files(files: Files, config: Any) -> Files:
    for folder, title in LISTS.items():
        pages = sorted((DOCS / folder).glob("*.md"))
        lines = [f"- [{page.read_text(encoding='utf-8').splitlines()[0].removeprefix('# ')}]({page.name})" for page in pages]
        files.append(File.generated(config, f"{folder}/index.md", content=f"# {title}\n\n" + "\n".join(lines) + "\n"))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    here = (DOCS / page.file.src_uri).parent

    def followed(match: re.Match[str]) -> str:
        text, target = match.groups()
        path = target.partition("#")[0]
        if "://" in target or not path:
            return match.group(0)
        there = (here / path).resolve()
        if there.is_dir() and there.name in LISTS:
            return f"[{text}]({path.rstrip('/')}/index.md)"
        if there.suffix == ".md" and there.is_relative_to(DOCS):
            return match.group(0)
        if not there.exists():
            log.warning("%s: there is no %s", page.file.src_uri, target)
        return text

    return _LINK.sub(followed, markdown)
