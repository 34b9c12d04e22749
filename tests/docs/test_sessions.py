"""Every command that a page shows is run, and prints what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml
from page_blocks import PAGES, ROOT, Block, blocks_of, commands_of, prepare, run, same, sessions_in

from kubesched.cli import cli
from kubesched.cli.sources import Policy
from kubesched.cli.usage import ALL_FLAGS

WITH_SESSIONS = [page for page in PAGES if any(block.language == "console" for block in blocks_of(page))]
ALL_BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_SESSIONS, ids=name_of)
def test_commands_print_what_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "no-cluster"))
    for block, command, said in sessions_in(page, tmp_path):
        printed = run(command, tmp_path)
        assert same(said, printed), f"{block.where}: {command}\nprints\n{printed}\nthe page says\n{said}"


MARKED = sorted({(block.page, block.tested_by) for block in ALL_BLOCKS if block.tested_by})


@pytest.mark.parametrize(("page", "mark"), MARKED)
def test_a_session_that_another_test_runs_is_read_from_the_page_by_that_test(page: str, mark: str) -> None:
    path, _, name = mark.partition("::")
    text = (ROOT / path).read_text()
    assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), f"{page}: there is no {mark}"
    named = f'"{Path(page).name}"'
    assert named in text, f"{page}: {path} does not read the page: it nowhere says {named}"


def test_no_command_hides_from_being_run() -> None:
    hidden = [block.where for block in ALL_BLOCKS if block.language != "console" and "$ kubesched" in block.text]
    indented = [
        f"{name_of(page)}: {line}"
        for page in PAGES
        for line in page.read_text().splitlines()
        if line.startswith("    kubesched ")
    ]
    assert hidden == [], "a session belongs into a ```console block"
    assert indented == [], "a command belongs into a ```sh block"


SHELL = [block for block in ALL_BLOCKS if block.language == "sh" and commands_of(block)]


@pytest.mark.parametrize("block", SHELL, ids=lambda block: block.where)
def test_commands_that_are_not_run_are_ones_that_there_are(block: Block) -> None:
    for line in commands_of(block):
        words = shlex.split(line.split("|")[0].split(" > ")[0])[1:]
        command: click.Command = cli
        with click.Context(cli) as context:
            while words and isinstance(command, click.Group):
                found = command.get_command(context, words[0])
                assert found is not None, f"{block.where}: {line}: there is no {words[0]}"
                command, words = found, words[1:]
        names = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        if command.name == "run":
            names = {f"--{flag.name}" for flag in ALL_FLAGS} | {"-v"}
        for word in words:
            if word.startswith("-") and word != "-":
                assert word.split("=")[0] in names, f"{block.where}: {line}: {command.name} has no {word}"


PYTHON = [block for block in ALL_BLOCKS if block.language == "python" and not (block.file or block.tested_by or block.not_run)]


def test_python_that_a_page_shows_runs(tmp_path: Path) -> None:
    """In one process, as most of its time is the start, and not in this one: examples register things."""
    prepare(tmp_path)
    lines = ["import traceback"]
    for block in PYTHON:
        run_it = f"exec(compile({block.text!r}, {block.where!r}, 'exec'), {{'__name__': 'example'}})"
        lines += ["try:", f"    {run_it}", "except BaseException:", "    traceback.print_exc()"]
    (tmp_path / "all.py").write_text("\n".join(lines))
    assert len(PYTHON) > 5
    assert "Error" not in run("python -W ignore all.py", tmp_path)


YAML = [block for block in ALL_BLOCKS if block.language == "yaml"]


@pytest.mark.parametrize("block", YAML, ids=lambda block: block.where)
def test_yaml_that_a_page_shows_can_be_read(block: Block) -> None:
    for document in yaml.safe_load_all(block.text):
        assert isinstance(document, dict)
        if document.get("kind") == "KubeSchedulerConfiguration" and not block.file:  # of a file, the page's commands tell
            assert Policy.read(block.text, (), ()).configuration.profiles
