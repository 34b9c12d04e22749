"""The golden family `wakeups`: who refused the pod, and whether the event brought it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.simulator.golden import Case, read_cases
from kubesched.simulator.golden_wakeups import run_wakeup_case

CASES = [case for _, case in read_cases([Path(__file__).with_name("wakeups.jsonl.gz")])]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_golden(case: Case) -> None:
    assert [str(difference) for difference in run_wakeup_case(case)] == []


def test_an_event_that_is_left_out_is_noticed() -> None:
    """A runner that says yes to everything would pass; this one must not."""
    case = next(case for case in CASES if case["expected"]["requeued"])
    told = {**case, "expected": {**case["expected"], "requeued": False}}
    assert [difference.what for difference in run_wakeup_case(told)] == ["requeued"]
