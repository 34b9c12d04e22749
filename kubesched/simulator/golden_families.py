"""Which runner a golden case belongs to, read off its shape."""

from __future__ import annotations

from kubesched.errors import SchedulerError
from kubesched.simulator.golden import Case, Difference, run_decision_case
from kubesched.simulator.golden_config import run_config_case
from kubesched.simulator.golden_legacy import run_legacy_case
from kubesched.simulator.golden_wakeups import run_wakeup_case


def run_case(case: Case) -> list[Difference]:
    """Run one golden case of any family."""
    if not isinstance(case, dict) or "name" not in case:
        raise SchedulerError(f"not a golden case: an object with a name is wanted, found {str(case)[:80]!r}")
    try:
        if "policy" in case or "provider" in case:
            return run_legacy_case(case)
        if "event" in case:
            return run_wakeup_case(case)
        if "expected" in case:
            return run_decision_case(case)
        return run_config_case(case)
    except KeyError as error:
        raise SchedulerError(f"golden case {case['name']}: field {error} is missing") from error
