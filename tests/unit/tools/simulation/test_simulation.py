"""The importable simulation: pods submitted, run in virtual time, measured."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import msgspec
import numpy as np
import pytest

from kubesched import CycleState, Plugin, PodView, Simulation, Snapshot
from kubesched.errors import ConfigError, SchedulerError
from kubesched.kube.api.meta import OwnerReference
from kubesched.kube.api.workload import PriorityClass
from kubesched.scheduler.cluster import Ints
from kubesched.testing import node, pod
from kubesched.tools.bench import workloads
from kubesched.tools.simulation.cluster import incidents

PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


class Fullest(Plugin):
    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        return np.minimum(nodes.pod_count, 100).astype(np.int64)


def owned(name: str, kind: str = "ReplicaSet", **more: Any) -> Any:
    made = pod(name, **more)
    owner = OwnerReference(kind=kind, name="web", uid="uid-web", controller=True)
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, owner_references=(owner,)))


def where(sim: Simulation) -> dict[str, str]:
    return {key.removeprefix("default/"): record.node for key, record in sim.pods.items()}


def test_pods_come_run_and_finish_at_their_times() -> None:
    with Simulation([node("a", cpu="1")]) as sim:
        sim.submit(pod("first", requests={"cpu": "1"}), at=10, runs=100)
        sim.submit(pod("second", requests={"cpu": "1"}), at=20)
        figures = sim.run(until=500)
        first, second = sim.pods["default/first"], sim.pods["default/second"]
    assert (first.state, first.placed, first.ended) == ("finished", pytest.approx(10), pytest.approx(110))
    assert (second.state, second.placed) == ("running", pytest.approx(110, abs=2))
    assert figures["seconds"] == 500 and figures["utilisation"]["cpu"]["peak"] == 1.0
    assert figures["pods"]["finished"] == 1 == figures["pods"]["running"]
    assert figures["timeToPlacement"]["max"] == pytest.approx(90, abs=2)


def test_without_an_end_it_runs_until_nothing_happens_any_more() -> None:
    with Simulation([node("a", cpu="1")]) as sim:
        sim.submit(pod("fits", requests={"cpu": "1"}), at=5)
        sim.submit(pod("does-not", requests={"cpu": "2"}), at=7)
        figures = sim.run()
        assert figures["pods"]["pending"] == 1 and sim.now < 60
        assert "Insufficient cpu" in sim.pods["default/does-not"].note


def test_a_plugin_handed_in_takes_part_with_its_weight() -> None:
    nodes = [node(f"n{i}") for i in range(5)]
    with Simulation(nodes, plugins=[(Fullest, 100)], seed=1) as sim:
        for i in range(6):
            sim.submit(pod(f"p{i}", requests={"cpu": "100m"}), at=i)
        sim.run()
        assert len(set(where(sim).values())) == 1
    with Simulation(nodes, seed=1) as sim:
        for i in range(6):
            sim.submit(pod(f"p{i}", requests={"cpu": "100m"}), at=i)
        sim.run()
        assert len(set(where(sim).values())) == 5


def test_a_configuration_is_taken_as_text_or_path(tmp_path: Any) -> None:
    (tmp_path / "c.yaml").write_text(PACKING)
    for given in (PACKING, tmp_path / "c.yaml", str(tmp_path / "c.yaml")):
        with Simulation([node("a"), node("b")], config=given) as sim:
            assert sim.engine.profiles.keys() == {"default-scheduler"}
    with pytest.raises(ConfigError):
        Simulation(config="kind: Nonsense\napiVersion: v1\n")


def test_step_goes_from_decision_to_decision() -> None:
    with Simulation([node("a", cpu="1")]) as sim:
        sim.submit(pod("one", requests={"cpu": "1"}), at=3)
        sim.submit(pod("two", requests={"cpu": "1"}), at=4)
        first, second = sim.step(), sim.step()
        assert first is not None and (first.at, first.pod, first.node) == (pytest.approx(3), "default/one", "a")
        assert second is not None and second.node == "" and "Insufficient cpu" in second.note
        assert sim.pods["default/one"].node == "a"


def test_wire_objects_are_taken_as_well() -> None:
    raw = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "pods": "10"}}}
    with Simulation([{"apiVersion": "v1", "kind": "Node", **raw}], objects=[PriorityClass(value=5)]) as sim:
        sim.submit({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}})
        assert sim.run()["pods"]["running"] == 1


def test_a_victim_goes_after_its_grace_and_comes_again_if_a_controller_owns_it() -> None:
    with Simulation([node("a", cpu="1")]) as sim:
        sim.submit(owned("low", requests={"cpu": "1"}), runs=1000)
        sim.submit(pod("high", requests={"cpu": "1"}, priority=10), at=100, runs=200)
        figures = sim.run(until=250)
        low, high, again = (sim.pods[f"default/{name}"] for name in ("low", "high", "low-r1"))
        assert (low.state, low.why, low.ended) == ("deleted", "preempted", pytest.approx(130))
        assert high.placed == pytest.approx(130, abs=2) and again.state == "pending"
        assert again.arrived == pytest.approx(100) and again.runs == 1000
        assert figures["pods"]["preempted"] == 1 and figures["pods"]["deletedBecause"] == {"preempted": 1}
        sim.run(until=500)
        assert again.state == "running"


def test_a_bare_victim_does_not_come_again_and_a_stateful_one_keeps_its_name() -> None:
    with Simulation([node("a", cpu="1")]) as sim:
        sim.submit(pod("bare", requests={"cpu": "1"}))
        sim.at(10, lambda: sim.world.drop_node("a"))
        sim.at(20, lambda: sim.add(node("b", cpu="1")))
        sim.submit(owned("db-0", "StatefulSet", requests={"cpu": "1"}), at=30)
        sim.at(40, lambda: incidents.drain(sim.world, "b"))
        sim.at(90, lambda: incidents.cordon(sim.world, "b", False))
        sim.run()
        assert sim.pods["default/bare"].why == "lost" and len(sim.pods) == 2
        assert (sim.pods["default/db-0"].n_before, sim.pods["default/db-0"].state) == (1, "running")


def test_nothing_ends_on_a_node_that_does_not_answer() -> None:
    with Simulation([node("a")]) as sim:
        sim.submit(pod("p"), runs=10)
        sim.at(5, lambda: incidents.fail(sim.world, "a"))
        sim.submit(pod("late"), at=6)
        sim.at(50, lambda: incidents.recover(sim.world, "a"))
        sim.run()
        assert sim.pods["default/p"].ended == pytest.approx(50)
        assert sim.pods["default/late"].placed == pytest.approx(50, abs=2)


def test_devices_are_free_again_when_their_pods_have_ended() -> None:
    with Simulation(objects=workloads.cluster("dra", 1, 0, 25)) as sim:  # one node with ten devices
        for i in range(25):
            sim.submit(workloads.pod(i, "dra"), at=i, runs=5)
        assert sim.run()["pods"]["finished"] == 25


def test_two_pods_of_one_name_cannot_be_there_together() -> None:
    with Simulation([node("a")]) as sim:
        sim.submit(pod("p"))
        sim.submit(pod("p"))
        with pytest.raises(SchedulerError, match="pod default/p is there already"):
            sim.run()


def test_it_runs_where_a_loop_runs_already() -> None:
    async def notebook() -> int:
        with Simulation([node("a")]) as sim:
            sim.submit(pod("p"))
            return int(sim.run()["pods"]["placed"])

    assert asyncio.run(notebook()) == 1


def test_a_plugin_that_always_breaks_does_not_keep_it_running() -> None:
    class Broken(Plugin):
        def filter_node(self, pod: PodView, node: Any, state: CycleState) -> None:
            raise ZeroDivisionError

    with Simulation([node("a")], plugins=[Broken]) as sim:
        sim.submit(pod("p"))
        assert sim.run()["pods"]["pending"] == 1 and 600 < sim.now < 700


def test_a_simulation_that_nobody_closed_is_dropped_without_complaints(caplog: pytest.LogCaptureFixture) -> None:
    sim = Simulation()
    sim.at(0, lambda: asyncio.create_task(asyncio.sleep(100)))
    sim.run(until=1)
    del sim
    gc.collect()
    assert not caplog.records
