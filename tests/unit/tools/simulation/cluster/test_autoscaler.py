"""Groups that grow and shrink by themselves, spot nodes, quotas and rollouts, in virtual time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubesched.errors import ConfigError
from kubesched.testing import node
from kubesched.tools.simulation.build import build_simulation
from kubesched.tools.simulation.scenario import Scenario, check, seconds
from kubesched.tools.simulation.simulation import Simulation
from kubesched.tools.snapshots.captured import Captured

Said = list[dict[str, Any]]


def group(name: str = "g", **more: Any) -> dict[str, Any]:
    return {"name": name, "count": 0, "max": 10, "capacity": {"cpu": 4}, "startup": 60, "price": 3.6, **more}


def jobs(count: int, runs: Any = 100, **more: Any) -> dict[str, Any]:
    return {"name": "job", "replicas": count, "runs": runs, "requests": {"cpu": "1"}, **more}


def run(*groups: dict[str, Any], duration: float = 3600, **parts: Any) -> tuple[Simulation, Said]:
    content = {"duration": duration, "autoscaler": {}, "cluster": {"nodes": list(groups or [group()])}, **parts}
    scenario = msgspec.convert(content, Scenario)
    check(scenario)
    said: Said = []
    with build_simulation(scenario, journal=said.append) as sim:
        sim.run(seconds(scenario.duration))
    return sim, said


def times(said: Said, event: str) -> list[float]:
    return [each["at"] for each in said if each["event"] == event]


def test_nodes_come_with_the_reference_s_delays_and_go_with_them() -> None:
    sim, said = run(workloads=[jobs(8)])
    assert [(each["at"], each["nodes"]) for each in said if each["event"] == "scaledUp"] == [(10.0, 2)]  # the first scan
    assert times(said, "nodeAdded") == [70.0, 70.0]
    assert 70 <= min(times(said, "placed")) <= max(times(said, "placed")) < 82  # pods that were refused pause for up to ten
    # Empty from the end of the pods on, found so by the next scan, unneeded for ten minutes.
    last = max(times(said, "finished"))
    assert last + 600 <= times(said, "nodeRemoved")[-1] <= last + 610 and len(times(said, "nodeRemoved")) == 2
    figures = sim.metrics()
    assert figures["nodes"] == {"scaledUp": 2, "scaledDown": 2, "reclaimed": 0}
    paid = sum(at - 10 for at in times(said, "nodeRemoved")) / 3600 * 3.6
    assert figures["cost"]["total"] == pytest.approx(paid, abs=1e-5) and figures["cost"]["perHour"]["peak"] == 7.2


SETTINGS: list[tuple[str, dict[str, Any], list[float], int]] = [
    ("as the reference", {}, [10.0], 1),
    ("a slower scan", {"scanInterval": 45}, [45.0], 1),
    ("young pods are left alone", {"newPodScaleUpDelay": 25}, [30.0], 1),
    ("nothing shrinks", {"scaleDown": False}, [10.0], 0),
    ("an hour of patience", {"scaleDownUnneededTime": "1h"}, [10.0], 0),
    ("an hour after the last node came", {"scaleDownDelayAfterAdd": "2h"}, [10.0], 0),
]


@pytest.mark.parametrize(
    ("settings", "grown", "n_removed"), [each[1:] for each in SETTINGS], ids=[each[0] for each in SETTINGS]
)
def test_settings(settings: dict[str, Any], grown: list[float], n_removed: int) -> None:
    _, said = run(workloads=[jobs(3)], autoscaler=settings)
    assert times(said, "scaledUp") == grown and len(times(said, "nodeRemoved")) == n_removed


def test_a_node_with_pods_goes_if_they_fit_elsewhere_and_its_requests_are_below_the_threshold() -> None:
    web = {"name": "web", "replicas": 6, "requests": {"cpu": "1"}}
    parts = {"workloads": [web], "events": [{"at": 60, "scale": {"workload": "web", "replicas": 3}}], "duration": 2400}
    there = group(count=2, min=1, startup=0)
    sim, said = run(there, **parts)
    (gone,) = [each for each in said if each["event"] == "scaledDown"]
    assert gone["at"] == 690.0  # unneeded from the scan at 90 s on, when the others are gone
    assert times(said, "nodeDrained") == [690.0] and times(said, "nodeRemoved") == [720.0]  # after the pod's grace period
    assert sim.metrics()["pods"]["running"] == 3 and sim.metrics()["pods"]["pending"] == 0
    _, said = run(there, **parts, autoscaler={"scaleDownUtilizationThreshold": 0.1})
    assert not times(said, "scaledDown")
    _, said = run(group(count=2, min=2, startup=0), **parts)
    assert not times(said, "scaledDown")


def test_one_group_grows_in_a_scan_the_cheapest_and_nodes_on_their_way_are_counted() -> None:
    asked = [jobs(4), jobs(1, name="big") | {"requests": {"cpu": "8"}}]
    _, said = run(group("a"), group("b", capacity={"cpu": 8}, price=9.0), workloads=asked, duration=200)
    grown = [(each["at"], each["group"], each["nodes"]) for each in said if each["event"] == "scaledUp"]
    assert grown[:2] == [(10.0, "b", 1), (20.0, "a", 1)]
    assert grown[2:] == [(80.0, "b", 1)]  # the small ones were quicker on the first b, as they may be on a cluster


def test_a_pod_that_nothing_helps_brings_no_nodes() -> None:
    sim, said = run(workloads=[jobs(1) | {"requests": {"cpu": "64"}}], duration=300)
    assert not times(said, "scaledUp") and sim.metrics()["pods"]["pending"] == 1


def test_spot_nodes_vanish_the_same_way_every_time_and_others_come() -> None:
    spot = group("s", spot={"meanLife": 600, "notice": 120})
    parts = {"workloads": [jobs(4, runs="forever")], "duration": 7200}
    sim, said = run(spot, **parts)
    reclaimed, removed = times(said, "nodeReclaimed"), times(said, "nodeRemoved")
    assert len(reclaimed) == sim.metrics()["nodes"]["reclaimed"] > 3
    assert [round(b - a, 3) for a, b in zip(reclaimed, removed, strict=False)] == [120.0] * len(removed)
    assert {each["why"] for each in said if each["event"] == "deleted"} == {"drained"}
    assert sim.metrics()["nodes"]["scaledUp"] > len(reclaimed) - 1
    assert run(spot, **parts)[1] == said
    _, abrupt = run(group("s", spot={"meanLife": 600, "notice": 0}), **parts)
    assert {each["why"] for each in abrupt if each["event"] == "deleted"} == {"lost"}


def test_nodes_of_a_snapshot_belong_to_groups_by_their_labels(tmp_path: Any) -> None:
    there = [node(f"x{i}", cpu="4", labels={"pool": "p"}) for i in range(3)]
    (tmp_path / "c.jsonl").write_bytes(b"".join(Captured(5.0, there).lines()))
    cluster = {"nodes": [group(selector={"pool": "p"}, min=1)], "snapshot": "c.jsonl"}
    sim, said = run(duration=1000, cluster=cluster, folder=str(tmp_path))
    assert len(times(said, "nodeRemoved")) == 2 and sim.metrics()["cost"]["perHour"]["peak"] == pytest.approx(10.8)


def test_quotas_keep_pods_from_being_created_until_others_end() -> None:
    parts: dict[str, Any] = {"cluster": {"nodes": [group(count=4, max=None, startup=0)]}, "autoscaler": None, "duration": 450}
    sim, said = run(workloads=[jobs(6)], quotas=[{"hard": {"requests.cpu": 2}}], **parts)
    assert [round(at) for at in times(said, "arrived")] == [0, 0, 100, 100, 200, 200]
    assert sim.metrics()["quotas"] == {"refused": 4, "waiting": 0} and len(times(said, "refusedByQuota")) == 4
    silent = [{"name": "s", "runs": 10, "pod": {"spec": {"containers": [{}]}}}]
    sim, _ = run(workloads=silent, quotas=[{"hard": {"limits.memory": "1Gi"}}], **parts)
    assert sim.metrics()["quotas"] == {"refused": 1, "waiting": 1}  # as the API server: it must say what is limited
    sim, _ = run(workloads=silent, quotas=[{"hard": {"pods": 0}, "namespace": "other"}], **parts)
    assert sim.metrics()["quotas"] == {"refused": 0, "waiting": 0}


ROLLOUTS: list[tuple[str, dict[str, Any], int, int]] = [
    ("a quarter more and less by default", {}, 6, 10),
    ("nobody missing", {"maxUnavailable": 0, "maxSurge": 1}, 8, 9),
    ("nobody more", {"maxUnavailable": "50%", "maxSurge": 0}, 4, 8),
    ("neither: then one is missing", {"maxUnavailable": 0, "maxSurge": 0}, 7, 8),
]


@pytest.mark.parametrize(("how", "fewest", "most"), [each[1:] for each in ROLLOUTS], ids=[each[0] for each in ROLLOUTS])
def test_a_rollout_keeps_to_its_bounds(how: dict[str, Any], fewest: int, most: int) -> None:
    web = {"name": "web", "replicas": 8, "requests": {"cpu": "1"}}
    content = {
        "cluster": {"nodes": [{"name": "n", "count": 4, "capacity": {"cpu": 8}}]},
        "workloads": [web],
        "events": [{"at": 100, "rollout": {"workload": "web", "readyAfter": 7, "requests": {"cpu": "500m"}, **how}}],
    }
    scenario = msgspec.convert(content, Scenario)
    check(scenario)
    ready, alive = list[int](), list[int]()
    with build_simulation(scenario) as sim:

        def count(record: Any = None) -> None:
            records = [each for each in sim.world.records.values() if each.is_alive and not each.is_going]
            alive.append(len(records))
            ready.append(sum(each.placed is not None and each.placed + 7 <= sim.now + 1e-6 for each in records))

        for second in range(100, 400):
            sim.at(second, count)
        sim.run()
    assert (min(ready), max(alive)) == (fewest, most) and ready[-1] == 8
    figures = sim.metrics()
    assert figures["rollouts"]["finished"] == 1 and figures["pods"]["running"] == 8
    assert {each.cpu_milli for each in sim.world.records.values() if each.is_alive} == {500}
    assert figures["pods"]["deletedBecause"] == {"rolledOut": 8}


def test_a_rollout_that_finds_no_place_is_held_up_and_loses_nobody() -> None:
    sim, said = run(
        group(count=2, startup=0, max=2),
        workloads=[{"name": "web", "replicas": 8, "requests": {"cpu": "1"}}],
        events=[{"at": 10, "rollout": {"workload": "web", "maxUnavailable": 0, "maxSurge": 1}}],
        duration=600,
    )
    figures = sim.metrics()
    assert (figures["pods"]["running"], figures["pods"]["pending"], figures["rollouts"]["finished"]) == (8, 1, 0)
    assert times(said, "rolloutBegan") == [10.0]


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ({"cluster": {"nodes": [group(max=None)]}}, "autoscaler: no group of cluster.nodes has a max"),
        ({"duration": None}, "autoscaler: it would scan forever: give a duration"),
        ({"autoscaler": {"scanInterval": 0}}, "autoscaler.scanInterval: must be longer than 0"),
        ({"autoscaler": {"scaleDownUtilizationThreshold": 7}}, "autoscaler.scaleDownUtilizationThreshold: must be between"),
        ({"autoscaler": {"maxDrainParallelism": -1}}, "autoscaler.maxDrainParallelism: must not be negative"),
        ({"cluster": {"nodes": [group(spot={"meanLife": 0})]}}, "cluster.nodes[0].spot.meanLife: must be longer than 0"),
        ({"quotas": [{"hard": {"services": 3}}]}, "quotas[0].hard.services: only what pods use is simulated"),
        ({"quotas": [{"hard": {"pods": "many"}}]}, "quotas[0].hard.pods"),
        ({"events": [{"at": 1, "rollout": {"workload": "x"}}]}, "events[0].rollout.workload: 'x' is none of the workloads"),
        (
            {"workloads": [jobs(1)], "events": [{"at": 1, "rollout": {"workload": "job", "maxSurge": "lots"}}]},
            "events[0].rollout.maxSurge: expected a number or a percentage, found 'lots'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(parts: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        run(**parts)
    assert complaint in str(refused.value)
