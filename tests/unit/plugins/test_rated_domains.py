"""Scores kept up to date count by count are the scores that the counts give when they are read anew."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import numpy as np
import pytest

from kubesched.framework import Reach
from kubesched.plugins._rated import RatedDomains, Scale
from kubesched.plugins.inter_pod_affinity import _Share
from kubesched.plugins.pod_topology_spread import _Emptiness


class Everything:
    """A reach that has the given domains."""

    def __init__(self, domains: Any) -> None:
        self._domains = domains

    def domains(self, key: str) -> Any:
        return self._domains


@pytest.mark.parametrize("scale", [_Share(), _Emptiness(1.3862943611198906, 4.0), _Emptiness(0.6931471805599453, 0.0)])
@pytest.mark.parametrize("seed", range(10))
def test_noting_changes_gives_the_scores_of_the_new_counts(scale: Scale, seed: int) -> None:
    random = Random(seed)
    size = random.randrange(2, 14)
    counts = np.array([*(random.randrange(6) for _ in range(size)), 0])
    scored = np.array([*(random.random() < 0.8 for _ in range(size)), False])
    scored[random.randrange(size)] = True
    reach = cast(Reach, Everything(scored))
    kept = RatedDomains("zone", counts, reach, scored, scale)
    for _ in range(200):
        code = random.randrange(size)
        before = int(counts[code])
        counts[code] = max(before + random.choice([-1, 1, 1]), 0)
        kept.note("zone", code, before, int(counts[code]))
        if random.random() < 0.7:
            if not kept.is_about("zone", counts, reach):
                kept = RatedDomains("zone", counts, reach, scored, scale)
            anew = RatedDomains("zone", counts, reach, scored, scale).table().values
            assert kept.table().values[scored].tolist() == anew[scored].tolist()


class Changing:
    """A reach whose domains come and go, as those of one that is kept from pod to pod."""

    def __init__(self, domains: Any) -> None:
        self.now = domains

    def domains(self, key: str) -> Any:
        return self.now


@pytest.mark.parametrize("most", [1, 6, 40])
@pytest.mark.parametrize("seed", range(20))
def test_domains_that_come_and_go_have_the_scores_of_the_counts_they_have_then(most: int, seed: int) -> None:
    random = Random(seed)
    size = random.randrange(3, 60)
    counts = np.array([*(random.randrange(most) for _ in range(size)), 0])
    changing = Changing(np.array([*(random.random() < 0.8 for _ in range(size)), False]))
    changing.now[0] = True
    reach, scale = cast(Reach, changing), _Share()
    kept = RatedDomains("zone", counts, reach, changing.now, scale)
    n_kept = 0
    for _ in range(300):
        code = random.randrange(size)
        before = int(counts[code])
        counts[code] = max(before + random.choice([-1, 1, 1]), 0)
        kept.note("zone", code, before, int(counts[code]))
        if random.random() < 0.3:
            changing.now = changing.now.copy()
            for at in random.sample(range(1, size), random.randrange(1, size)):
                changing.now[at] = random.random() < 0.8
        if random.random() < 0.7:
            if kept.is_about("zone", counts, reach):
                n_kept += 1
            else:
                kept = RatedDomains("zone", counts, reach, changing.now, scale)
            anew = RatedDomains("zone", counts, reach, changing.now, scale).table().values
            assert kept.table().values[changing.now].tolist() == anew[changing.now].tolist()
    assert n_kept


def test_another_key_ends_what_is_kept() -> None:
    domains = np.array([True, True, False])
    counts, reach = np.array([1, 2, 0]), cast(Reach, Everything(domains))
    kept = RatedDomains("zone", counts, reach, domains, _Share())
    assert kept.is_about("zone", counts, reach)
    kept.note("rack", 0, 0, 1)
    assert not kept.is_about("zone", counts, reach)
