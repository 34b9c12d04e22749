"""Disruption budgets, several of them on one pod: what the reference makes of it in some order of its budgets."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import permutations

import pytest

from kubesched.kube.api.meta import LabelSelector, ObjectMeta
from kubesched.kube.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kubesched.scheduler.cluster import PodView, Store
from kubesched.scheduler.plugins.default_preemption.budgets import Budgets
from kubesched.testing import pod

NAMES = "abcd"


def budget(name: str, allowed: int) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={name: "yes"})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


def charge_up_to_the_first(order: Sequence[str], allowed: Mapping[str, int], pods: Sequence[PodView]) -> list[bool]:
    """Return which pods violate a budget if each pod is charged to its budgets in order, up to the first that is used up."""
    left = dict(allowed)
    found = []
    for each in pods:
        is_over = False
        for name in order:
            if name in each.labels:
                left[name] -= 1
                if left[name] < 0:
                    is_over = True
                    break
        found.append(is_over)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_charging_all_budgets_of_a_pod_is_what_the_reference_does_in_some_order(seed: int) -> None:
    chance = random.Random(seed)
    store = Store()
    allowed = {name: chance.randrange(3) for name in NAMES}
    pods = [
        store.view(pod(f"p{i}", labels={name: "yes" for name in NAMES if chance.random() < 0.5}))
        for i in range(chance.randrange(1, 8))
    ]
    for name, most in allowed.items():
        store.objects.put(budget(name, most))
    budgets = Budgets(store.objects)
    budgets.follow()
    ours = [n > 0 for n in budgets.violations([[each] for each in pods])]
    assert ours in [charge_up_to_the_first(order, allowed, pods) for order in permutations(NAMES)]
