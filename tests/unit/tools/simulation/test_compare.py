"""Two configurations compared."""

from __future__ import annotations

import msgspec

from kubesched.testing import node, pod
from kubesched.tools.simulation.compare import compare, decide_anew
from kubesched.tools.simulation.simulation import Simulation
from kubesched.tools.snapshots.captured import Captured

NODES = [node("a", zone="x"), node("b", zone="y")]


def ran(*cpus: str, nodes: int = 2) -> Simulation:
    sim = Simulation(NODES[:nodes], seed=1)
    for i, cpu in enumerate(cpus):
        sim.submit(pod(f"p{i}", requests={"cpu": cpu}), at=i, workload="w")
    sim.run()
    return sim


def test_the_same_twice_moves_nothing() -> None:
    document = compare(ran("1", "1", "1"), ran("1", "1", "1"))
    assert document["moves"] == {
        "placed": 3,
        "moved": 0,
        "otherZone": 0,
        "onlyA": 0,
        "onlyB": 0,
        "pods": [],
        "workloads": [{"workload": "w", "placed": 3, "moved": 0, "otherZone": 0, "onlyA": 0, "onlyB": 0}],
    }
    assert document["a"] == document["b"]


def test_what_moves_is_counted_and_named() -> None:
    moves = compare(ran("3", "3"), ran("3", "3", nodes=1))["moves"]
    assert (moves["placed"], moves["moved"], moves["onlyA"], moves["onlyB"]) == (1, moves["moved"], 1, 0)
    assert len(moves["pods"]) == moves["moved"] == moves["otherZone"]


def test_pending_pods_of_a_cluster_are_decided_and_placed_ones_stay() -> None:
    with decide_anew(Captured(9.0, [pod("new"), pod("old", on="a"), *NODES])) as sim:
        sim.run()
        assert sim.pods["default/old"].placed is None and sim.pods["default/new"].placed is not None


def test_rescheduled_pods_come_again_oldest_first() -> None:
    pods = [pod(f"p{i}", on="a", requests={"cpu": "3"}) for i in range(3)]
    pods = [
        msgspec.structs.replace(
            each, metadata=msgspec.structs.replace(each.metadata, creation_timestamp=f"2026-01-0{3 - i}T00:00:00Z")
        )
        for i, each in enumerate(pods)
    ]
    stays = [pod("theirs", on="a", scheduler="other"), pod("ending", on="b", deleted_at="2026-01-01T00:00:00Z")]
    with decide_anew(Captured(9.0, [*pods, *stays, *NODES]), reschedule=True, movable={"default-scheduler"}) as sim:
        sim.run()
        records = sim.pods
    assert [records[f"default/p{i}"].state for i in range(3)] == ["pending", "running", "running"]
    assert [records[f"default/{name}"].placed for name in ("theirs", "ending")] == [None, None]
    assert records["default/p2"].arrived < records["default/p1"].arrived < records["default/p0"].arrived
