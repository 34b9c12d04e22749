"""The golden family `legacy` from memory: what is remembered changes no decision, whatever the release."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.errors import SchedulerError
from kubesched.kube.api import codec
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.engine.deciding.cycle import Attempt, Rules, attempt
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.framework.equivalence_cache.cache import EquivalenceCache
from kubesched.scheduler.framework.verdicts import Placed, Unschedulable
from kubesched.scheduler.legacy import RELEASES, Algorithm, Release, profile_from_provider
from kubesched.tools.conformance.cases import Case, read_cases
from kubesched.tools.conformance.legacy import algorithm_of, store_of

CASES = [case for _, case in read_cases([Path(__file__).with_name("legacy.jsonl.gz")])]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_answers_from_memory_are_the_same(case: Case) -> None:
    try:
        store, algorithm = algorithm_of(case)
    except SchedulerError:
        return
    compare_with_memory(case, store, algorithm)


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_answers_from_memory_are_the_same_for_every_release(release: Release) -> None:
    for case in CASES[:60]:
        try:
            store, handle = store_of(case)
        except SchedulerError:
            continue
        compare_with_memory(case, store, profile_from_provider("", handle, release))


def compare_with_memory(case: Case, store: Store, algorithm: Algorithm) -> None:
    """Try the pod four times under other names, each time plainly and from memory, and place it."""
    rules, memo = Rules(SeededTies(1)), EquivalenceCache(algorithm.profile)
    for repeat in range(4):
        raw = case["pods"][0]
        meta = {**raw["metadata"], "name": f"new-{repeat}", "uid": f"uid-{repeat}"}
        pod = store.view(codec.convert({**raw, "metadata": meta}, Pod))
        snapshot = store.snapshot()
        plain = attempt(pod, snapshot, algorithm.profile, rules)
        assert said(attempt(pod, snapshot, algorithm.profile, rules, memo)) == said(plain)
        if isinstance(plain.decision, Placed):
            store.assume(pod, plain.decision.node_name)


def said(made: Attempt) -> object:
    decision = made.decision
    if isinstance(decision, Placed):
        return decision.node_name, decision.feasible
    return decision.message if isinstance(decision, Unschedulable) else decision
