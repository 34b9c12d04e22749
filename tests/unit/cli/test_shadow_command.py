"""`kubesched shadow`: what is wrong with its options is one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubesched.cli import cli
from kubesched.cli.shadow import _line, _print_summary, why
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


def test_the_page_shows_lines_as_they_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The session in docs/how-to/shadow.md, whose figures are those of a run on a live cluster, is printed from its figures."""
    told = {"behind": 12, "byPlugin": {"NodeResourcesFit": 12}}
    print(_line("AGREEMENT", "THEIRS", "OURS", "POD", "WHY"))
    print(_line("worse", "node-17", "node-4021", "team-a/web-7d9f-x2x1p", why(told)))
    print("^C")
    document = {
        "judged": 1001,
        "agreement": {"same": 702, "tie": 298, "sampled": 0, "worse": 1, "infeasible": 0, "failed": 0},
        "differences": [],
        "seconds": 412,
        "explainedPercent": 99.9,
        "races": 3,
        "promised": 0,
        "missed": 0,
        "control": {"drawn": 0},
        "otherSchedulers": [],
        "requests": {"GET": 24},
    }
    _print_summary(document, Path("differences"))
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "shadow.md").read_text(encoding="utf-8")
    session = page.partition("```console\n")[2].partition("```")[0]
    _, following, *shown = session.splitlines()
    assert re.fullmatch(r"Following \d+ nodes and \d+ pods, judging default-scheduler as of 1\.\d+; Ctrl-C ends it", following)
    assert [line.split() for line in shown] == [line.split() for line in capsys.readouterr().out.splitlines()]
