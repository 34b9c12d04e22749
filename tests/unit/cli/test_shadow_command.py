"""`kubesched shadow`: what is wrong with its options is one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubesched.cli import cli
from kubesched.cli.shadow import why
from kubesched.errors import SchedulerError


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--config", "CONFIG", "--configz", "x"], "--config and --configz both say how the live scheduler decides: give one"),
        (["--token", "x"], "go with --configz URL"),
        (["--configz", "file", "--insecure-skip-tls-verify"], "go with --configz URL"),
        (["--window", "-1"], "Invalid value for '--window'"),
        (["--duration", "0"], "Invalid value for '--duration'"),
    ],
)
def test_options_that_contradict_each_other_are_wrong_usage(words: list[str], complaint: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("")
    given = [str(tmp_path / "config.yaml") if word == "CONFIG" else word for word in words]
    done = CliRunner().invoke(cli, ["shadow", *given])
    assert done.exit_code == 2 and complaint in done.output


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        (None, "No such file or directory"),
        ("{}", 'there is no object "componentconfig" in it'),
        (
            json.dumps({"componentconfig": {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Mine"}]}}}]}}),
            '"Mine" does not exist',
        ),
    ],
)
def test_a_configz_that_cannot_be_used_is_named(page: str | None, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "configz.json"
    if page is not None:
        file.write_text(page)
    done = CliRunner().invoke(cli, ["shadow", "--configz", str(file)])
    assert isinstance(done.exception, SchedulerError)
    text = str(done.exception)
    assert text.startswith(f"{file}: ") and complaint in text and "\n" not in text


def test_why_says_points_and_reasons() -> None:
    behind = {"behind": 5, "byPlugin": {"NodeResourcesFit": 8, "ImageLocality": -3}}
    assert why(behind) == "behind by 5: NodeResourcesFit +8, ImageLocality -3"
    assert why({"refusedBy": "NodeName", "reasons": ["no", "never"]}) == "NodeName: no; never"
    assert why({"refusedBy": "", "reasons": ["the node is not known"]}) == "the node is not known"
    assert why({}) == ""
