"""Golden cases of every release: the same feasible nodes, reasons, scores, messages, victims, wake-ups and configuration
as the reference, family by family."""

from pathlib import Path

import pytest
from oracles.remembering import run_decision_case_from_memory

from kubesched.tools.conformance.cases import read_cases
from kubesched.tools.conformance.families import run_case

HERE = Path(__file__).parent
FILES = {file.relative_to(HERE).as_posix().split(".jsonl")[0]: file for file in sorted(HERE.rglob("*.jsonl.gz"))}
OTHER = ("config", "legacy", "wakeups")
DECISIONS = [family for family in FILES if "/" not in family and not family.startswith(OTHER)]
"""The families of 1.36: what is remembered knows no release, and twice the time buys nothing."""


@pytest.mark.parametrize("family", FILES)
def test_every_case_is_answered_as_recorded(family: str) -> None:
    assert [str(difference) for _, case in read_cases([FILES[family]]) for difference in run_case(case)] == []


@pytest.mark.parametrize("family", DECISIONS)
def test_remembering_answers_changes_no_decision(family: str) -> None:
    differences = [
        str(difference) for _, case in read_cases([FILES[family]]) for difference in run_decision_case_from_memory(case)
    ]
    assert differences == []
