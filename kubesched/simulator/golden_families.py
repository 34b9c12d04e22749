"""Which runner a golden case belongs to, read off its shape."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.simulator.golden import Case, Difference, run_decision_case

Runner = Callable[[Case], list[Difference]]


def run_case(case: Case) -> list[Difference]:
    """Run one golden case of any family."""
    return run_decision_case(case)
