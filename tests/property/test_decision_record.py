"""What is recorded of a decision equals what the plain computation says of it, whatever happened in between."""

import math
from collections import Counter
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cluster import change_something, named, random_cluster

from kubesched.scheduler.engine.deciding.cycle import Attempt, Rules, attempt
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.engine.explaining.explain import explain
from kubesched.scheduler.engine.handle import SystemClock
from kubesched.scheduler.engine.records.decision_record import ONLY, SCORE, DecisionRecord
from kubesched.scheduler.engine.records.decision_recorder import EXTENDERS, TOP, DecisionRecorder, Tried
from kubesched.scheduler.framework.equivalence_cache.cache import EquivalenceCache
from kubesched.scheduler.framework.verdicts import Placed
from kubesched.testing import clusters


def recorded(recorder: DecisionRecorder, made: Attempt, share: float) -> DecisionRecord:
    """Record as the engine does: in full where the share allows, and by the short way otherwise."""
    record = recorder.take(made, 0.0, math.inf if share >= 1 else -math.inf)
    if isinstance(made.decision, Placed):
        queued = type("Queued", (), {"attempts": 1, "view": made.pod})()
        recorder.placed(Tried(queued, made.asked.profile, 0.0, made, record=record))
        return next(recorder.ring.newest_first())
    assert record is not None
    return record


def check(record: DecisionRecord, plain: Attempt, *, in_full: bool) -> None:
    """Compare with an attempt that was computed anew, and with its explanation."""
    told = explain(plain, top=TOP)
    counts: Counter[tuple[str, str]] = Counter()
    for each in told.refusals:
        counts[each.plugin, each.reason] += each.count
    assert (record.node, record.node_count) == (told.node, told.n_nodes)
    if record.refusals is None:
        assert record.node and not in_full
    else:
        assert {(each.plugin, each.reason): each.count for each in record.refusals} == counts
    if not record.node:
        return
    assert record.feasible == told.n_feasible
    if record.feasible == 1:
        assert (record.chosen_by, record.level) == (ONLY, 0)
        return
    assert plain.scores is not None
    totals = plain.scores.total
    row = plain.nodes.row(record.node)
    others = np.delete(totals, row)
    assert record.total == totals[row] == totals.max()
    assert record.level == np.count_nonzero(totals == totals.max())
    assert record.margin == totals[row] - others.max()
    assert totals[plain.nodes.row(record.runner_up)] == others.max() and record.runner_up != record.node
    assert record.chosen_by == (SCORE if record.level == 1 else "seed")
    assert (record.scores is not None) == in_full
    if record.scores is None:
        return
    table = record.scores
    assert table.nodes[0] == record.node and EXTENDERS not in table.plugins
    assert table.plugins == tuple(plain.scores.by_plugin)
    for i, name in enumerate(table.nodes):
        at = plain.nodes.row(name)
        assert table.totals[i] == totals[at] == table.values[2, i].sum()
        assert table.values[2, i].tolist() == [column[at] for column in plain.scores.by_plugin.values()]
        assert table.values[0, i].tolist() == [column[at] for column in plain.scores.raw.values()]
    assert any(total < record.total for total in table.totals) == bool((totals[totals >= 0] < record.total).any())


@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.5]))
@settings(max_examples=50, deadline=None)
def test_a_record_says_what_was_decided_and_why(seed: int, share: float) -> None:
    random = Random(seed)
    store, profile = random_cluster(random)
    memo = EquivalenceCache(profile)
    rules = Rules(SeededTies(seed), preempts=False)
    recorder = DecisionRecorder(100, share=share)
    recorder._pause = 0.0  # nothing is too often
    recorder.attach(rules, SystemClock())
    anew = Rules(SeededTies(seed), preempts=False, scores_single=True)
    kinds = [clusters.random_pod(random, f"kind-{i}") for i in range(3)]
    kinds += [clusters.disguised(random, random.choice(kinds)) for _ in range(2)]
    for turn in range(20):
        pod = store.view(named(random.choice(kinds), f"p{turn}"))
        plain = attempt(pod, store.snapshot(), profile, anew)
        made = attempt(pod, store.snapshot(), profile, rules, memo if random.random() < 0.8 else None)
        record = recorded(recorder, made, share)
        check(record, plain, in_full=share >= 1)
        if isinstance(made.decision, Placed):
            store.assume(pod, made.decision.node_name)
        if random.random() < 0.4:
            change_something(random, store, turn)
