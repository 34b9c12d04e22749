"""Scores kept up to date count by count are the scores that the counts give when they are read anew."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from kubesched.scheduler.framework.equivalence_cache.tracked import Tracked
from kubesched.scheduler.plugins.inter_pod_affinity.plugin import _Share
from kubesched.scheduler.plugins.pod_topology_spread.plugin import _Emptiness
from kubesched.scheduler.plugins.shared.domain_scores import Scale, ScoredDomains

SCALES = [_Share(), _Emptiness(1.3862943611198906, 4.0), _Emptiness(0.6931471805599453, 0.0)]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("most", [1, 6, 40])
@pytest.mark.parametrize("seed", range(8))
def test_counts_that_change_and_domains_that_come_and_go_give_the_scores_of_now(scale: Scale, most: int, seed: int) -> None:
    random = Random(seed)
    size = random.randrange(2, 60)
    counts = Tracked(np.array([*(random.randrange(most) for _ in range(size)), 0]))
    scored = np.array([*(random.random() < 0.8 for _ in range(size)), False])
    scored[0] = True
    kept = ScoredDomains("zone")
    for _ in range(200):
        code = random.randrange(size)
        counts.put(code, max(counts.values.item(code) + random.choice([-1, 1, 1]), 0))
        if random.random() < 0.3:
            scored = scored.copy()  # whoever has the old one can tell that it is not the same any more
            for at in random.sample(range(1, size), random.randrange(1, size)):
                scored[at] = random.random() < 0.8
            scored[-1] = isinstance(scale, _Share) and random.random() < 0.2  # feasible nodes that are in no domain
        if random.random() < 0.7:
            anew = ScoredDomains("zone").table(counts, scored, scale)
            assert kept.table(counts, scored, scale).values[scored].tolist() == anew.values[scored].tolist()


def test_a_domain_more_makes_a_new_table() -> None:
    counts, kept = Tracked(np.array([1, 2, 0])), ScoredDomains("zone")
    before = kept.table(counts, np.array([True, True, False]), _Share())
    assert before.values[:2].tolist() == [0, 100]
    counts.replace(np.array([1, 2, 3, 0]))
    after = kept.table(counts, np.array([True, True, True, False]), _Share())
    assert (after is before, after.values[:3].tolist()) == (False, [0, 50, 100])
