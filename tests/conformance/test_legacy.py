"""The golden family `legacy`: decisions of 1.17.4 under random policies and providers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.simulator.golden import Case, read_cases
from kubesched.simulator.golden_legacy import run_legacy_case

CASES = [case for _, case in read_cases([Path(__file__).with_name("legacy.jsonl.gz")])]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_golden(case: Case) -> None:
    assert run_legacy_case(case) == []
