"""Whatever a scenario says: the same seed gives the same bytes, no pod is lost, and no node is booked past what it offers.

Scenarios are drawn by chance: nodes in zones; workloads of several priorities that come in steps, by chance and in bursts, and
run for a while or forever; nodes that fail, recover, are drained, taken away and added. All of it is played in virtual time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.scheduler.engine.assembly import EngineOptions
from kubesched.tools.simulation.build import build_simulation
from kubesched.tools.simulation.pod_record import DELETED, FINISHED, PENDING, RUNNING
from kubesched.tools.simulation.scenario import Scenario, check, seconds
from kubesched.tools.simulation.simulation import Simulation

ZONE = "topology.kubernetes.io/zone"


def drawn(seed: int) -> Scenario:
    """Return a scenario that follows from a seed."""
    random = Random(seed)
    raw = {
        "seed": random.randrange(1 << 30),
        "duration": random.choice((120, 600)),
        "bindingLatency": random.choice((0, 0, 0.05, 2)),
        "decisionTime": random.choice((0, 0.001, 0.1)),
        "sampleEvery": 7,
        "cluster": {"nodes": [group(random, name) for name in ("small", "large")]},
        "workloads": [workload(random, f"w{i}") for i in range(random.randrange(1, 5))],
    }
    raw["events"] = [event(random, raw["workloads"]) for _ in range(random.randrange(5))]
    scenario = msgspec.convert(raw, Scenario)
    check(scenario)
    return scenario


def group(random: Random, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "count": random.randrange(1, 4),
        "labels": {ZONE: "z{i%2}"},
        "startup": random.choice((0, 0, 20)),
        "capacity": {"cpu": random.choice((1, 2, 4)), "memory": "8Gi", "pods": random.choice((3, 110))},
    }


def workload(random: Random, name: str) -> dict[str, Any]:
    arrivals = random.choice(
        (
            {"at": [0, random.randrange(60)]},
            {"every": 10, "count": 5},
            {"rate": 0.3, "end": 60},
            {"every": 30, "size": 4, "within": 5, "end": 100},
        )
    )
    runs = random.choice(("forever", 20, {"exponential": 30}, {"uniform": [5, 50]}))
    made: dict[str, Any] = {
        "name": name,
        "arrivals": arrivals,
        "runs": runs,
        "priority": random.choice((0, 0, 10, 100)),
        "replicas": random.choice((1, 1, 3)),
        "restarts": random.random() < 0.8,
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": name}},
    }
    made["pod"] = {
        "spec": {
            "containers": [{"resources": {"requests": {"cpu": random.choice(("100m", "500m", "1", "3"))}}}],
            "terminationGracePeriodSeconds": random.choice((0, 5, 30)),
            **({"topologySpreadConstraints": [spread]} if random.random() < 0.3 else {}),
        }
    }
    return made


def event(random: Random, workloads: list[dict[str, Any]]) -> dict[str, Any]:
    choice = {"nodes": random.choice(("*", "small-*", "large-0")), "count": 1}
    happens = random.choice(
        (
            {"fail": {**choice, "lostAfter": random.choice((0, 30))}},
            {"recover": {}},
            {"remove": choice},
            {"drain": choice},
            {"cordon": choice},
            {"uncordon": {}},
            {"add": group(random, "late")},
            {"scale": {"workload": random.choice(workloads)["name"], "replicas": random.randrange(6)}},
        )
    )
    return {"at": random.randrange(100), **happens}


def play(scenario: Scenario, *, remembers: bool = True, watch: bool = False) -> tuple[Simulation, bytes]:
    """Play a scenario; return everything that it said, as bytes."""
    said: list[Any] = []
    sim = build_simulation(scenario, options=EngineOptions(remembers=remembers), journal=said.append)
    sim.measures.on_row = said.append
    if watch:
        for at in range(0, 600, 13):
            sim.at(at, lambda: look(sim))
    with sim:
        said.append(sim.run(seconds(scenario.duration)))
    if watch:
        look(sim)
    return sim, b"\n".join(map(msgspec.json.encode, said))


def look(sim: Simulation) -> None:
    """Look at everything that must never happen."""
    cluster, store, queue = sim.world, sim.engine.store, sim.engine.queue
    nodes = store.snapshot()
    for resource in range(len(nodes.templates.resources)):
        over = nodes.requested(resource) > nodes.allocatable(resource)
        assert not over.any(), f"booked past what is offered: {[nodes.names[i] for i in over.nonzero()[0]]}"
    assert not (nodes.pod_count > nodes.allowed_pods).any()
    states = Counter(record.state for record in cluster.records.values())
    assert states == +sim.measures.states, "the measures count otherwise"
    assert sim.measures.n_pods == sum(states[state] for state in (PENDING, RUNNING, FINISHED, DELETED)) == len(cluster.records)
    if len(sim.engine.inbox):
        return
    queued = Counter(entry.view.uid for entry in queue)
    for uid, record in cluster.records.items():
        if record.state == PENDING:
            assert queued[uid] + queue.is_in_flight(uid) + store.is_assumed(uid) >= 1, f"{record.key} is lost"
            assert queued[uid] <= 1, f"{record.key} is queued twice"
        else:
            assert not queued[uid], f"{record.key} is {record.state} and queued"
            placed = store.pod(uid)
            assert (placed is not None and placed.node_name == record.node) == (record.state == RUNNING), record


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_no_pod_is_lost_and_no_node_overbooked(seed: int) -> None:
    sim, _ = play(drawn(seed), watch=True)
    records = list(sim.world.records.values())
    for record in records:
        assert (record.ended is not None) == (record.state in (FINISHED, DELETED))
        assert record.placed is None or record.arrived <= record.placed <= (
            record.ended if record.ended is not None else sim.now
        )
        if record.state == FINISHED:
            assert record.runs is not None and record.placed is not None and record.ended is not None
            assert record.ended - record.placed >= record.runs - 1e-6
    figures = sim.metrics()
    assert 0 <= figures["utilisation"]["cpu"]["peak"] <= 1.0 and 0 <= figures["packing"]["fragmentation"]["mean"] <= 1.0


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_the_same_seed_gives_the_same_bytes_with_and_without_memory(seed: int) -> None:
    scenario = drawn(seed)
    _, first = play(scenario)
    assert play(scenario)[1] == first
    assert play(scenario, remembers=False)[1] == first


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_going_step_by_step_loses_nothing_and_always_goes_the_same_way(seed: int) -> None:
    scenario = msgspec.structs.replace(drawn(seed), duration=None)
    ways = []
    for _ in range(2):
        with build_simulation(scenario) as sim:
            decisions = []
            while (decided := sim.step()) is not None:
                decisions.append(decided)
                look(sim)
            ways.append((decisions, sim.metrics()))
    assert ways[0] == ways[1]


@pytest.mark.nightly
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=2000, deadline=None)
def test_no_pod_is_lost_over_many_scenarios(seed: int) -> None:
    play(drawn(seed), watch=True)


def test_the_same_seed_gives_the_same_bytes_in_other_processes(tmp_path: Path) -> None:
    file = tmp_path / "scenario.json"
    raw = msgspec.to_builtins(drawn(5))
    file.write_bytes(msgspec.json.encode({key: value for key, value in raw.items() if value is not None}))
    said = set()
    for seed in ("0", "1", "random"):
        command = [
            sys.executable,
            "-c",
            "from kubesched.cli import main; main()",
            "simulate",
            str(file),
            "-o",
            "json",
            "--events",
            "events",
            "--series",
            "series",
        ]
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        )
        said.add((done.stdout, (tmp_path / "events").read_bytes(), (tmp_path / "series").read_bytes()))
    assert len(said) == 1
