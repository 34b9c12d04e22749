"""A log as a scenario: what it says happens, and the scheduler decides anew."""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.kube.api import codec
from kubesched.testing import node, pod
from kubesched.tools.simulation.from_log import simulation_of_log
from kubesched.tools.simulation.replay import entries_of
from kubesched.tools.simulation.simulation import Simulation
from kubesched.tools.snapshots.captured import Captured


def entry(at: float, obj: Any = None, **fields: Any) -> bytes:
    said = {"kind": obj.kind, "object": codec.to_dict(obj)} if obj is not None else {}
    return msgspec.json.encode({"at": at, **said, **fields})


def played(*lines: bytes) -> Simulation:
    with simulation_of_log(entries_of([entry(100.0, seed=4), *lines])) as sim:
        sim.run()
    return sim


def test_pods_are_decided_anew_and_run_until_the_log_says_that_they_are_gone() -> None:
    sim = played(
        entry(100.0, pod("one", requests={"cpu": "3"})),
        entry(100.0, node("a", cpu="4")),
        entry(101.0, bound="uid-default-one", node="elsewhere"),
        entry(101.0, pod("one", requests={"cpu": "3"}, on="elsewhere")),
        entry(105.0, pod("two", requests={"cpu": "3"})),
        entry(160.0, kind="Pod", gone={"name": "one", "namespace": "default"}),
    )
    one, two = sim.pods["default/one"], sim.pods["default/two"]
    assert sim.seed == 4 and (one.node, one.ended, one.why) == ("a", 60.0, "removed")
    assert two.node == "a" and 60 <= (two.placed or 0) < 62


def test_a_pod_that_ended_in_the_log_has_finished() -> None:
    done = pod("one", on="a")
    done = msgspec.structs.replace(done, status=msgspec.structs.replace(done.status, phase="Succeeded"))
    sim = played(entry(100.0, node("a")), entry(100.0, pod("one")), entry(130.0, done), entry(130.0, done))
    assert (sim.pods["default/one"].state, sim.pods["default/one"].ended) == ("finished", 30.0)


def test_the_pods_of_other_schedulers_go_where_the_log_says() -> None:
    sim = played(
        entry(100.0, node("a")),
        entry(100.0, pod("theirs", scheduler="other")),
        entry(110.0, pod("theirs", scheduler="other", on="a")),
    )
    assert (sim.pods["default/theirs"].node, sim.pods["default/theirs"].placed) == ("a", 10.0)


def test_nodes_come_and_go() -> None:
    sim = played(
        entry(100.0, node("a")),
        entry(100.0, pod("p")),
        entry(120.0, kind="Node", gone={"name": "a"}),
        entry(130.0, node("b")),
        entry(140.0, pod("q")),
    )
    assert sim.pods["default/p"].why == "lost" and sim.pods["default/q"].node == "b"


def test_a_snapshot_is_a_log_of_one_moment() -> None:
    cluster = Captured(50.0, [pod("new"), pod("old", on="a"), node("a")], seed=9)
    with simulation_of_log(entries_of(cluster.lines())) as sim:
        figures = sim.run()
    assert (figures["pods"]["there"], figures["pods"]["placed"], sim.world.replaces) == (1, 1, True)
