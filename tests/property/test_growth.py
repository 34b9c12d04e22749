"""Nothing grows with what has been and gone: not what is kept, not its size, not what a decision takes.

Each kind of novelty is a long history in which no pod is like one before; 200 are alive at a time. The second tenth of it is
compared with the last one. What keeps a bounded number of entries is made so small that it is full by then. What comes back and
forth, as a log that is cut when it is full, is looked at several times in each tenth, and its largest size counts.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Iterator

import pytest
from reachable import entries
from test_no_loops import executed

from kubesched.kube.client.writes import recorder
from kubesched.scheduler.cluster import intern
from kubesched.scheduler.cluster.changelog import ChangeLog
from kubesched.scheduler.cluster.journal import Journal
from kubesched.scheduler.engine.groups import group_conditions
from kubesched.scheduler.engine.records import decision_recorder, node_changes
from kubesched.scheduler.framework.equivalence_cache import cache as equivalence_cache
from kubesched.scheduler.framework.equivalence_cache import counters
from kubesched.tools.bench.novelty import KINDS, PER_ROLLOUT, History

MOST_MORE, SLACK = 1.1, 48
"""What grows by one with every rollout grows by more."""
LOOKS = 3
BYTES_SLACK = 64 << 10


@pytest.fixture(autouse=True)
def small_caches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let everything that has a bound reach it soon."""
    monkeypatch.setattr(ChangeLog, "longest", 16)
    monkeypatch.setattr(Journal, "longest", 32)
    monkeypatch.setattr(intern, "_FEWEST", 4)
    monkeypatch.setattr(recorder, "QUIET_SECONDS", 60.0)
    monkeypatch.setattr(counters, "_FEWEST", 2)
    monkeypatch.setattr(counters, "BUDGET_BYTES", 100_000)
    monkeypatch.setattr(equivalence_cache, "MOST_ASKED", 16)
    monkeypatch.setattr(group_conditions, "MOST_REMEMBERED", 4)
    monkeypatch.setattr(decision_recorder, "_MOST_KEPT", 4)
    yield


def begun(kind: str, alive: int) -> History:
    history = History(kind, nodes=20, alive=alive, decision_records=20)
    for cache in history.engine.attempts.caches.values():
        cache.budget_bytes = 200_000
    assert history.engine.decisions is not None
    history.engine.decisions.node_changes = node_changes.NodeChanges(8)
    return history


def kept(history: History) -> Counter[str]:
    for histogram in history.metrics.histograms.values():
        for series in histogram.values():
            series.fold()
    gc.collect()
    return entries({"engine": history.engine, "metrics": history.metrics, "events": history.broadcaster})


def largest(history: History, n_pods: int) -> tuple[Counter[str], int, float]:
    """Let a tenth pass; return the most that each path had in it, the least bytes there were, and the instructions a pod."""
    most: Counter[str] = Counter()
    sizes = []
    for _ in range(LOOKS - 1):
        history.go_on(n_pods // LOOKS)
        most |= kept(history)
        sizes.append(tracemalloc.get_traced_memory()[0])
    n = sum(executed(lambda: history.go_on(PER_ROLLOUT)).values())
    history.go_on(n_pods - (LOOKS - 1) * (n_pods // LOOKS) - PER_ROLLOUT)
    return most, min(sizes), n / PER_ROLLOUT


def assert_does_not_grow(kind: str, n_pods: int, alive: int, *, weighs: bool) -> None:
    history = begun(kind, alive)
    tenth = n_pods // 10
    if weighs:
        tracemalloc.start()
    try:
        history.go_on(tenth)
        before, size_before, n_before = largest(history, tenth)
        history.go_on(7 * tenth)
        after, size_after, n_after = largest(history, tenth)
    finally:
        tracemalloc.stop()
        history.close()
    grown = [f"{path}: {before[path]:,} -> {n:,}" for path, n in after.items() if n > MOST_MORE * before[path] + SLACK]
    assert not grown, f"{kind}: what grew after {n_pods:,} pods:\n" + "\n".join(sorted(grown, key=len))
    assert size_after <= MOST_MORE * size_before + BYTES_SLACK, f"{kind}: {size_before:,} -> {size_after:,} bytes"
    assert n_after <= MOST_MORE * n_before + 500, f"{kind}: {n_before:,.0f} -> {n_after:,.0f} instructions a pod"
    if kind not in ("unfit", "resource-of-nobody"):
        assert history.n_bound > 0.9 * n_pods, f"{kind}: pods were decided: {history.n_bound:,}"


@pytest.mark.parametrize("kind", [*KINDS, ""], ids=lambda kind: kind or "all together")
def test_nothing_grows_with_what_has_been(kind: str) -> None:
    assert_does_not_grow(kind, n_pods=720, alive=40, weighs=False)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [*KINDS, ""], ids=lambda kind: kind or "all together")
def test_nothing_grows_in_a_long_history(kind: str) -> None:
    assert_does_not_grow(kind, n_pods=50_000, alive=200, weighs=True)
