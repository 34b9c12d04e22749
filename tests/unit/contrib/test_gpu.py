"""Sharing GPUs, and the policies that choose among nodes that have room."""

from __future__ import annotations

from math import exp
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from kubesched import Simulation
from kubesched.contrib import (
    gpu_best_fit,
    gpu_clustering,
    gpu_dot_product,
    gpu_fragmentation,
    gpu_packing,
    gpu_random,
    gpu_table,
)
from kubesched.contrib.gpu_share import OpenGpuShare
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.config.releases.gates import Gates
from kubesched.scheduler.engine.assembly import registry_with
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.testing import check_plugin, node, pod

TYPICAL = [
    {"cpuMilli": 4000, "gpuCount": 1, "gpuMilli": 500, "frequency": 0.5},
    {"cpuMilli": 8000, "gpuCount": 2, "gpuMilli": 1000, "gpuModels": ["V100"], "frequency": 0.3},
    {"cpuMilli": 2000, "frequency": 0.2},
]
POLICIES: list[type[Plugin]] = [
    gpu_dot_product.DotProductScore,
    gpu_best_fit.BestFitScore,
    gpu_packing.GpuPackingScore,
    gpu_clustering.GpuClusteringScore,
]


def gpu_node(name: str, gpus: int, model: str = "T4", cpu: str = "32") -> Node:
    return node(name, cpu=cpu, labels={gpu_table.MODEL: model}, offers={gpu_table.COUNT: str(gpus)})


def gpu_pod(name: str, count: int = 1, milli: int = 1000, models: str = "", cpu: str = "1", **more: Any) -> Pod:
    made = pod(name, requests={"cpu": cpu}, **more)
    said = {gpu_table.COUNT: str(count), gpu_table.MILLI: str(milli), gpu_table.MODEL: models}
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, annotations=said))


def simulated(nodes: list[Node], policy: type[Plugin] | None = None, select: str = "best", args: Any = None) -> Simulation:
    registry = registry_with()
    names = ["PrioritySort", "NodeResourcesFit", "DefaultPreemption", "DefaultBinder", OpenGpuShare.name]
    configured = [{"name": OpenGpuShare.name, "args": {"gpuSelMethod": select}}]
    registry.register(OpenGpuShare)
    if policy is not None:
        registry.register(policy)
        names.append(policy.name)
        if args is not None:
            configured.append({"name": policy.name, "args": args})
    plugins = {
        "multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in names]},
        "score": {"disabled": [{"name": "NodeResourcesFit"}]},
    }
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins, "pluginConfig": configured}],
    }
    return Simulation(nodes, msgspec.json.encode(document).decode(), registry=registry, seed=1)


def placed(sim: Simulation) -> dict[str, str]:
    return {life.pod.metadata.name: life.node for life in sim.pods.values()}


def cards(sim: Simulation, name: str) -> str:
    return (sim.pods[f"default/{name}"].pod.metadata.annotations or {}).get(gpu_table.INDEX, "")


@pytest.mark.parametrize("cls", [OpenGpuShare, *POLICIES], ids=lambda cls: cls.name)
def test_the_contract(cls: type[Plugin]) -> None:
    check_plugin(cls, rounds=5)


def test_random_takes_any_node_that_has_room() -> None:
    sim = simulated([gpu_node(f"n{i}", 8) for i in range(4)], gpu_random.RandomScore, "random")
    for i in range(40):
        sim.submit(gpu_pod(f"p{i}", milli=500), at=i)
    sim.run(60)
    homes = list(placed(sim).values())
    assert all(homes.count(f"n{i}") >= 3 for i in range(4))
    assert len({cards(sim, f"p{i}") for i in range(40)}) > 4


def test_the_contract_of_fragmentation() -> None:
    args = msgspec.convert({"typicalPods": TYPICAL}, gpu_fragmentation.FGDScoreArgs).defaulted(Gates.defaults())
    check_plugin(gpu_fragmentation.FGDScore, args, rounds=5)


def test_shares_fill_a_gpu_before_another_is_begun_and_the_pod_is_told_which() -> None:
    sim = simulated([gpu_node("a", 2)])
    for i, milli in enumerate((600, 300, 300, 1000)):
        sim.submit(gpu_pod(f"p{i}", milli=milli), at=i)
    sim.run(10)
    assert placed(sim) == {"p0": "a", "p1": "a", "p2": "a", "p3": ""}
    assert [cards(sim, f"p{i}") for i in range(4)] == ["0", "0", "1", ""]


def test_a_pod_that_ends_gives_its_gpu_back() -> None:
    sim = simulated([gpu_node("a", 1)])
    sim.submit(gpu_pod("first"), at=0, runs=10)
    sim.submit(gpu_pod("second"), at=1)
    sim.run(60)
    assert placed(sim) == {"first": "a", "second": "a"}
    assert sim.pods["default/second"].placed >= 10


def test_several_gpus_must_be_whole_and_of_the_model() -> None:
    sim = simulated([gpu_node("t4", 4), gpu_node("v100", 2, "V100")])
    sim.submit(gpu_pod("two", 2, models="V100|A100"), at=0)
    sim.submit(gpu_pod("more", 2, models="V100|A100"), at=1)
    sim.submit(gpu_pod("any", 3), at=2)
    sim.run(10)
    assert placed(sim) == {"two": "v100", "more": "", "any": "t4"}
    assert cards(sim, "any") == "0-1-2"
    note = sim.pods["default/more"].note
    assert "didn't have the GPU model" in note and "Insufficient alibabacloud.com/gpu-milli" in note


def test_preemption_knows_whose_gpu_would_be_free() -> None:
    sim = simulated([gpu_node("a", 1), gpu_node("b", 1)])
    sim.submit(gpu_pod("low", 1, 600, priority=1), at=0)
    sim.submit(gpu_pod("high", 1, 600, priority=5), at=1)
    sim.submit(gpu_pod("urgent", 1, 600, priority=9), at=2)
    sim.run(100)
    homes = placed(sim)
    assert homes["urgent"] == homes["low"] != homes["high"]
    assert sim.pods["default/low"].preempted_by == "default/urgent"


@pytest.mark.parametrize(
    ("annotations", "word"),
    [
        ({gpu_table.COUNT: "many"}, "gpu-count must be a whole number"),
        ({gpu_table.COUNT: "1", gpu_table.MILLI: "1001"}, "gpu-milli must be a whole number up to 1000"),
        ({gpu_table.COUNT: "2", gpu_table.MILLI: "500"}, "gpu-milli must be 1000 where"),
        ({gpu_table.COUNT: "9" * 200_000}, "gpu-count must be a whole number"),
    ],
    ids=["no number", "more than one GPU", "shares of several", "a long number"],
)
def test_an_annotation_that_cannot_be_read_is_named(annotations: dict[str, str], word: str) -> None:
    sim, made = simulated([gpu_node("a", 1)]), gpu_pod("odd")
    sim.submit(msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, annotations=annotations)), at=0)
    sim.run(5)
    note = sim.pods["default/odd"].note
    assert word in note and "default/odd" in note and len(note) < 400


CHOICES = [
    ("packing takes a GPU in use before an idle one", gpu_packing.GpuPackingScore, gpu_pod("p", milli=300), "used"),
    ("best fit takes the node that is left with least", gpu_best_fit.BestFitScore, gpu_pod("p", milli=300), "small"),
    ("clustering goes to its own kind", gpu_clustering.GpuClusteringScore, gpu_pod("p", milli=300), "used"),
    ("the dot product keeps large nodes for others", gpu_dot_product.DotProductScore, gpu_pod("p", milli=300), "small"),
]


@pytest.mark.parametrize(("why", "policy", "made", "expected"), CHOICES, ids=[case[0] for case in CHOICES])
def test_where_a_policy_goes(why: str, policy: type[Plugin], made: Pod, expected: str) -> None:
    sim = simulated([gpu_node("used", 8, cpu="96"), gpu_node("idle", 8, cpu="96"), gpu_node("small", 1, cpu="8")], policy)
    holder = gpu_pod("holder", milli=500, on="used")
    sim.add(holder)
    sim.submit(made, at=1)
    sim.run(5)
    assert placed(sim)["p"] == expected


def slow_fragmentation(left: list[int], cpu: int, model: str) -> float:
    total = 0.0
    for typical in TYPICAL:
        milli, count, models = typical.get("gpuMilli", 0), typical.get("gpuCount", 0), typical.get("gpuModels", [])
        fits = (
            count > 0
            and (not models or model in models)
            and cpu >= typical["cpuMilli"]
            and sum(amount >= milli for amount in left) >= count
        )
        total += typical["frequency"] * (sum(a for a in left if a < milli) if fits else sum(left))
    return total


def slow_score(left: list[int], cpu: int, model: str, asked: tuple[int, int, int]) -> int:
    count, milli, cpu_asked = asked
    worlds = []
    if count == 1 and milli < 1000:
        worlds = [[*left[:i], amount - milli, *left[i + 1 :]] for i, amount in enumerate(left) if amount >= milli]
    else:
        taken, world = count, []
        for amount in left:
            takes = taken > 0 and amount >= milli
            world.append(amount - milli if takes else amount)
            taken -= takes
        worlds = [world]
    before = slow_fragmentation(left, cpu, model)
    return max(int(100 / (1 + exp((slow_fragmentation(world, cpu - cpu_asked, model) - before) / 1000))) for world in worlds)


@pytest.mark.parametrize(("seed", "most_changes"), [(0, 1 << 16), (1, 1 << 16), (2, 3), (3, 3)])
def test_fragmentation_scores_as_the_slow_way_does_while_pods_come_and_go(seed: int, most_changes: int) -> None:
    random = Random(seed)
    nodes = [gpu_node(f"n{i}", random.choice([1, 2, 4]), random.choice(["T4", "V100"])) for i in range(6)]
    sim = simulated(nodes, gpu_fragmentation.FGDScore, "FGDScore", {"typicalPods": TYPICAL})
    n_compared = 0
    score = gpu_fragmentation.FGDScore.score

    def compared(self: Any, view: Any, snapshot: Any, state: Any) -> Any:
        nonlocal n_compared
        scores, asked = score(self, view, snapshot, state), gpu_table.request_of(view.pod)
        for row in np.flatnonzero(self.table.fits(asked, self.table.left)).tolist():
            cpu = int(snapshot.free(0)[row])
            if cpu < dict(view.requests)[0]:
                continue
            left = self.table.left[row][: self.table.count[row]].tolist()
            model = snapshot.node(row).metadata.labels[gpu_table.MODEL]
            assert scores[row] == slow_score(left, cpu, model, (asked.count, asked.milli, dict(view.requests)[0]))
            n_compared += 1
        return scores

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_fragmentation.FGDScore, "score", compared)
        patch.setattr(gpu_table, "MOST_CHANGES", most_changes)
        for i in range(40):
            count = random.choice([1, 1, 1, 2])
            milli = 1000 if count > 1 else random.choice([250, 500, 1000])
            asked = gpu_pod(f"p{i}", count, milli, random.choice(["", "V100"]), cpu=str(random.randint(1, 8)))
            sim.submit(asked, at=i, runs=random.choice([5, 20, None]))
        sim.run(60)
    assert n_compared > 20
    table = gpu_table.table_of(sim.engine.handle.objects)
    assert (table.left >= 0).all()
    assert len(table.changed) <= most_changes
