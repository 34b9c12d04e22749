"""Golden decisions: the same feasible nodes, reasons, scores, messages and victims as the reference, case by case."""

from pathlib import Path

import pytest

from kubesched.simulator.golden import read_cases, run_decision_case
from kubesched.simulator.golden_memo import run_decision_case_from_memory

HERE = Path(__file__).parent
FAMILIES = (
    "resources",
    "taints",
    "nodeaffinity",
    "misc",
    "interpod",
    "spread",
    "volumes",
    "dra",
    "preemption",
    "mixed",
    "sequence",
    "large",
)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_is_decided_as_recorded(family: str) -> None:
    differences = [
        str(difference) for _, case in read_cases([HERE / f"{family}.jsonl.gz"]) for difference in run_decision_case(case)
    ]
    assert differences == []


@pytest.mark.parametrize("family", FAMILIES)
def test_remembering_answers_changes_no_decision(family: str) -> None:
    differences = [
        str(difference)
        for _, case in read_cases([HERE / f"{family}.jsonl.gz"])
        for difference in run_decision_case_from_memory(case)
    ]
    assert differences == []
