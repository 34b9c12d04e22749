"""Golden cases of preemption: the same node, the same victims, the same words as the reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.simulator.golden import Case, read_cases, run_decision_case

CASES = [case for _, case in read_cases([Path(__file__).parent / "preemption.jsonl.gz"])]


def test_the_cases_are_there():
    assert len(CASES) == 150
    assert all(case["preempt"] for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_decides_as_recorded(case: Case):
    assert [str(difference) for difference in run_decision_case(case)] == []
