"""The site: what links point at is there, generated pages are those of the code, and the builder agrees."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import click
import draw_decision
import generate_reference
import pytest
from page_blocks import PAGES, ROOT

from kubesched import NodeView, PodView, Snapshot
from kubesched.cli import cli
from kubesched.tools.schemas import schema_of

ALL = [*PAGES, ROOT / "SECURITY.md", ROOT / "GOVERNANCE.md", ROOT / "SKILL.md", ROOT / "CHANGELOG.md"]
_LINK = re.compile(r"(?<!`)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
_FILE = re.compile(r"`((?:bench|deploy|docs|kubesched|requirements|tests|tools)/[a-z_][\w./-]*)`")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and mkdocs make them."""
    heads = re.findall(r"^#+ (.*)$", _FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


def test_every_link_leads_somewhere() -> None:
    dead = []
    for page in ALL:
        for target in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
            path, _, anchor = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            if "://" in target:
                continue
            if not there.exists() or (anchor and anchor not in anchors(there)):
                dead.append(f"{page.relative_to(ROOT)}: {target}")
    assert not dead, "\n".join(dead)


def test_files_that_pages_name_are_there() -> None:
    gone = []
    for page in PAGES:
        names = _FILE.findall(page.read_text(encoding="utf-8"))
        gone += [f"{page.relative_to(ROOT)}: {name}" for name in names if not (ROOT / name).exists()]
    assert not gone, "\n".join(gone)


def test_generated_pages_are_those_of_the_code() -> None:
    pages = generate_reference.pages()
    stale = [
        str(path.relative_to(ROOT))
        for path, text in pages.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, f"run `make reference`: {stale}"
    known = {path for path in pages if path.parent.name == "plugins"}
    assert set((ROOT / "docs" / "reference" / "plugins").iterdir()) == known, "a page of a plugin that is gone"


def test_the_picture_of_a_decision_is_that_of_a_decision() -> None:
    picture = (ROOT / "docs" / "decision.svg").read_text(encoding="utf-8")
    assert draw_decision.drawn("docs/examples/decision.yaml", "default/web-2") == picture, "run `make reference`"


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    mkdocs = pytest.importorskip("mkdocs.config")
    from mkdocs.commands.build import build

    config = mkdocs.load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path / "site"))
    config.plugins.on_startup(command="build", dirty=False)
    build(config)  # strict: raises if anything was warned of
    assert (tmp_path / "site" / "how-to" / "troubleshooting" / "index.html").exists()


def test_the_readme_counts_the_cases_that_there_are() -> None:
    files = (ROOT / "tests" / "conformance").rglob("*.jsonl.gz")
    n_cases = sum(bool(line.strip()) for file in files for line in gzip.decompress(file.read_bytes()).splitlines())
    assert f"all {n_cases:,}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_has_the_ratios_of_the_performance_page() -> None:
    page = (ROOT / "docs" / "explanation" / "performance.md").read_text(encoding="utf-8")
    figures = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Figures")[2].partition("\n## ")[0]
    ratios = re.findall(r"([\d.]+(?: to [\d.]+)?) times", figures)
    assert len(ratios) >= 6
    assert [ratio for ratio in ratios if not re.search(rf"(?<![\d.]){re.escape(ratio)}(?![\d.])[^|\n]* times", page)] == []


def test_every_command_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert set(cli.list_commands(click.Context(cli))) == set(re.findall(r"^\| `kubesched (\w+)", page, re.MULTILINE))


def test_every_field_of_a_scenario_is_on_the_page() -> None:
    """The page says that a field which it does not list is refused."""
    page = (ROOT / "docs" / "reference" / "scenario.md").read_text(encoding="utf-8")
    fields = {name for part in schema_of("scenario")["$defs"].values() for name in part.get("properties", {})}
    assert "decisionTime" in fields
    assert {name for name in fields if not re.search(rf"\b{name}\b", page)} == {"timeAdded"}  # of a taint; nothing reads it


def test_every_command_that_loads_plugins_is_on_their_page() -> None:
    said = (
        (ROOT / "docs" / "how-to" / "plugins.md")
        .read_text(encoding="utf-8")
        .partition("All commands that decide take it: ")[2]
        .partition(";")[0]
    )

    def taking(command: click.Command, name: str) -> Iterator[str]:
        if isinstance(command, click.Group):
            with click.Context(command) as context:
                for each in command.list_commands(context):
                    yield from taking(command.get_command(context, each) or command, f"{name} {each}".strip())
        elif any("--plugin" in parameter.opts for parameter in command.params):
            yield name

    assert {*taking(cli, ""), "run"} == set(re.findall(r"`([^`]+)`", said))  # the flags of `run` are kube-scheduler's table


@pytest.mark.parametrize(("word", "cls"), [("pod", PodView), ("nodes", Snapshot), ("node", NodeView)])
def test_writing_plugins_offers_only_what_there_is(word: str, cls: type) -> None:
    page = (ROOT / "docs" / "reference" / "plugin-api.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\|.*", page, re.MULTILINE))
    offered = {name for row in named for name in re.findall(rf"`{word}\.(\w+)", row)}
    assert len(offered) > 5
    assert {name for name in offered if not hasattr(cls, name)} <= {"pod", "template", "key", "uid"}  # set on each of them
