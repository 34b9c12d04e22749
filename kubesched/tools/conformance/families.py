"""Runs a golden case of any family; its fields show which one it is.

In: a case. Out: its differences. An exception is a difference of the case. Only a case that is not valid ends the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.tools.conformance.cases import Case, Difference, MalformedCase, run_decision_case, version_of
from kubesched.tools.conformance.config import run_config_case
from kubesched.tools.conformance.legacy import run_legacy_case
from kubesched.tools.conformance.wakeups import run_wakeup_case


def run_case(case: Case) -> list[Difference]:
    """Run one golden case of any family."""
    if not isinstance(case, dict) or "name" not in case:
        raise MalformedCase(f"not a golden case: an object with a name is wanted, found {str(case)[:80]!r}")
    run = _runner(case)
    try:
        return run(case)
    except MalformedCase:
        raise
    except Exception as error:  # a bug: report it and run the other cases
        return [Difference(case["name"], "raised", None, f"{type(error).__name__}: {error}")]


def _runner(case: Case) -> Callable[[Case], list[Difference]]:
    """Return the function that runs a case, after a check of the fields that it needs."""
    version_of(case)
    if "expected" not in case:
        _check(case, "config", object, "a configuration")
        return run_config_case
    _check(case, "expected", dict, "an object")
    for field in ("objects", "pods"):
        _check(case, field, list, "a list of objects")
        if not all(isinstance(item, dict) for item in case[field]):
            raise MalformedCase(f"golden case {case['name']}: field {field!r}: a list of objects is wanted")
    if "policy" in case or "provider" in case:
        return run_legacy_case
    if "event" in case:
        return run_wakeup_case
    expected = case["expected"]
    results = expected.get("results")
    if "error" not in expected and (not isinstance(results, list) or len(results) != len(case["pods"])):
        wanted = f"one result is wanted for each of {len(case['pods'])} pods"
        raise MalformedCase(f"golden case {case['name']}: field 'expected': {wanted}")
    return run_decision_case


def _check(case: Case, field: str, kind: type[Any], wanted: str) -> None:
    if field not in case:
        raise MalformedCase(f"golden case {case['name']}: field {field!r} is missing")
    if not isinstance(case[field], kind):
        raise MalformedCase(f"golden case {case['name']}: field {field!r}: {wanted} is wanted")
