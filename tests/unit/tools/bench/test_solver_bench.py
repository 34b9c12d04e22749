"""The questions of `bench solver`, on small clusters."""

from __future__ import annotations

import json

from click.testing import CliRunner

from kubesched.cli.bench import SOLVER_QUESTIONS, command
from kubesched.tools.bench.solver import COLUMNS, QUESTIONS


def test_every_question_has_figures_that_say_what_was_found() -> None:
    assert tuple(QUESTIONS) == SOLVER_QUESTIONS
    told = CliRunner().invoke(command, ["solver", "--shrink", "100", "-o", "json"])
    assert told.exit_code == 0, told.output
    rows = json.loads(told.output)
    assert {tuple(row) for row in rows} == {COLUMNS}
    found = {row["what"]: row["found"] for row in rows}
    assert found["nodes for pods of 2 shapes"].startswith("<26 node ")
    assert found["drain one node and place its 20 pods"] == "50 times it could"
    table = CliRunner().invoke(command, ["solver", "estimate", "--shrink", "100"])
    assert "nodes for pods of 2 shapes" in table.output
