"""Explaining does not loop over nodes in Python either: the scheduler does it for the page between two decisions."""

from __future__ import annotations

from typing import Any

import pytest
from test_no_loops import SLACK, executed

from kubesched.scheduler import config
from kubesched.scheduler.engine.assembly import default_configuration
from kubesched.scheduler.engine.explaining.explain import explain_now
from kubesched.testing import even, near, node, pod, taint
from kubesched.tools.snapshots.captured import Captured

PODS = {
    "resources": pod(requests={"cpu": "3", "memory": "1Gi"}),
    "nothing is large enough": pod(requests={"cpu": "99"}),
    "selector": pod(node_selector={"disk": "nvme"}),
    "spread": pod(labels={"app": "web"}, requests={"cpu": "3"}, spread=[even({"app": "web"})]),
    "affinity": pod(affinity=near({"app": "nobody"})),
    "a claim that is not there": pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]),
    "it fits": pod(requests={"cpu": "100m"}),
}


def cluster(n: int) -> Captured:
    nodes = [
        node(
            f"n{i}",
            zone=f"z{i % 5}",
            labels={"disk": "ssd"},
            cordoned=i % 10 == 3,
            taints=[taint("gpu")] if i % 10 == 4 else [],
        )
        for i in range(n)
    ]
    return Captured(7.5, [*nodes, *(pod(f"p{i}", on=f"n{i}", labels={"app": "web"}, requests={"cpu": "2"}) for i in range(n))])


@pytest.mark.parametrize("wanted", PODS.values(), ids=PODS)
def test_ten_times_the_nodes_take_no_more_instructions(wanted: Any) -> None:
    gates, counts = config.Gates.defaults(), []
    for n in (200, 2000):
        engine = cluster(n).engine(default_configuration(gates), gates)
        view = engine.store.view(wanted)
        explain_now(engine, view)
        counts.append(executed(lambda engine=engine, view=view: explain_now(engine, view)))  # type: ignore[misc]
    small, large = counts
    assert sum(small.values()) > 1000
    more = {name: (small[name], count) for name, count in large.items() if count - small[name] > SLACK}
    assert not more, f"these grow with the cluster: {more}"
