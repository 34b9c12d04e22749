"""Our own decisions agree with themselves, and whatever else was chosen is told exactly."""

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cluster import random_cluster

from kubesched.scheduler.engine.deciding.agreement import Agreement, compare
from kubesched.scheduler.engine.deciding.cycle import Rules, attempt
from kubesched.scheduler.engine.deciding.ties import SeededTies
from kubesched.scheduler.framework.verdicts import Placed
from kubesched.testing import clusters


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_every_choice_is_judged_as_the_attempt_says(seed: int) -> None:
    random = Random(seed)
    store, profile = random_cluster(random)
    for i in range(random.randrange(12)):
        store.put_pod(clusters.random_pod(random, f"other-{i}", on=random.choice(list(store.nodes.rows))))
    rules = Rules(SeededTies(seed), preempts=False, scores_single=True)
    for turn in range(5):
        pod, nodes = store.view(clusters.random_pod(random, f"p{turn}")), store.snapshot()
        made = attempt(pod, nodes, profile, rules)
        found = {name: compare(pod, nodes, profile, rules, name) for name in nodes.names}
        if not isinstance(made.decision, Placed):
            assert {each.kind for each in found.values()} == {Agreement.INFEASIBLE}
            continue
        ours = made.decision.node_name
        assert found[ours].kind is Agreement.SAME and found[ours].ours == ours
        assert made.scores is not None and made.feasible is not None and made.verdicts is not None
        best = made.scores.total[nodes.row(ours)]
        for row, name in enumerate(nodes.names):
            told = found[name]
            assert told.n_feasible == np.count_nonzero(made.feasible)
            if not made.feasible[row]:
                assert told.kind is Agreement.INFEASIBLE and told.reasons
                continue
            columns = {plugin: column[nodes.row(ours)] - column[row] for plugin, column in made.scores.by_plugin.items()}
            assert told.behind == best - made.scores.total[row]
            assert told.kind is (Agreement.SAME if name == ours else Agreement.WORSE if told.behind else Agreement.TIE)
            assert told.by_plugin == ({plugin: by for plugin, by in columns.items() if by} if told.behind else {})
            assert sum(told.by_plugin.values()) == told.behind
        store.assume(pod, ours)
