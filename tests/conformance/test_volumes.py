"""The golden family `volumes`, case by case, with the objects of the cluster arriving in other orders than recorded.

What a scheduler decides must not depend on whether a claim was heard of before its volume, or a pod before its node.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from kubesched.tools.conformance.cases import read_cases, run_decision_case

CASES = [case for _, case in read_cases([Path(__file__).with_name("volumes.jsonl.gz")])]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_objects_may_come_in_any_order(case: dict[str, Any]) -> None:
    shuffled = list(case["objects"])
    random.Random(case["name"]).shuffle(shuffled)
    for objects in (case["objects"][::-1], shuffled):
        assert [str(difference) for difference in run_decision_case({**case, "objects": objects})] == []
