"""Namespaces lend each other what they do not use, and take it back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest

from kubesched import Simulation
from kubesched.contrib.capacity_scheduling import CapacityScheduling
from kubesched.kube.api import codec
from kubesched.kube.api.meta import TopLevel
from kubesched.kube.api.workload import ElasticQuota
from kubesched.scheduler.cluster import CPU, Objects, Store
from kubesched.scheduler.engine.assembly import registry_with
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework import CycleState, Status
from kubesched.testing import check_plugin, node, pod

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: CapacityScheduling}]}
    postFilter: {enabled: [{name: CapacityScheduling}], disabled: [{name: "*"}]}
"""


def quota(namespace: str, least: str = "", most: str = "", **more: str) -> TopLevel:
    spec: dict[str, Any] = {}
    for field, cpu in (("min", least), ("max", most)):
        if cpu:
            spec[field] = {"cpu": cpu, "memory": "1Ti", **more}
    return codec.decode(
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": "quota", "namespace": namespace},
            "spec": spec,
        }
    )


_made: list[Simulation] = []


@pytest.fixture(autouse=True)
def close_simulations() -> Iterator[None]:
    """End the bindings that single steps leave under way."""
    yield
    while _made:
        _made.pop().close()


def simulation(nodes: list[Any], objects: Sequence[Any]) -> Simulation:
    _made.append(Simulation(nodes, CONFIG, registry=registry_with([CapacityScheduling]), objects=objects, seed=1))
    return _made[-1]


def cluster(*objects: Any, cpus: tuple[str, ...] = ("10",)) -> Simulation:
    nodes = [node(f"n{i}", cpu=cpu) for i, cpu in enumerate(cpus)]
    return simulation(nodes, objects)


def asking(name: str, namespace: str, cpu: str = "1", priority: int = 0, **more: Any) -> Any:
    return pod(name, namespace=namespace, requests={"cpu": cpu}, priority=priority, **more)


def tried(sim: Simulation, new: Any) -> tuple[str, str]:
    """Return where a pod went and what was said of it."""
    sim.submit(new)
    decided = sim.step()
    return decided.node, decided.note


def test_it_keeps_the_contract() -> None:
    check_plugin(CapacityScheduling)


def test_a_namespace_borrows_up_to_its_max_and_not_beyond() -> None:
    sim = cluster(quota("a", "4", "6"), quota("b", "4", "6"))
    for i in range(6):
        assert tried(sim, asking(f"a-{i}", "a"))[0] == "n0"
    node_name, said = tried(sim, asking("a-6", "a"))
    assert node_name == ""
    assert "Pod a/a-6 is rejected in PreFilter because ElasticQuota a is more than Max" in said


def test_all_together_stay_within_the_sum_of_min() -> None:
    sim = cluster(quota("a", "2", "6"), quota("b", "2", "6"))
    for i in range(4):
        assert tried(sim, asking(f"a-{i}", "a"))[0] == "n0"
    said = tried(sim, asking("a-4", "a"))[1]
    assert "Pod a/a-4 is rejected in PreFilter because total ElasticQuota used is more than min" in said


def test_pods_without_a_quota_are_left_alone() -> None:
    sim = cluster(quota("a", "1", "1"))
    assert tried(sim, asking("x", "free", "5"))[0] == "n0"


@pytest.mark.parametrize(
    ("spec", "asks", "fits"),
    [
        ({"max": {"cpu": "4"}}, {"cpu": "1"}, False),
        ({"min": {"cpu": "4"}, "max": {"cpu": "4"}}, {"cpu": "1"}, True),
        ({"min": {"cpu": "4"}, "max": {"cpu": "4"}}, {"cpu": "1", "memory": "1Gi"}, False),
        ({"min": {"cpu": "4", "memory": "4Gi"}}, {"cpu": "1", "memory": "1Gi"}, True),
        ({"min": {"cpu": "4"}, "max": {"cpu": "4"}}, {"cpu": "1", "example.com/gpu": "1"}, False),
        ({"min": {"cpu": "4", "example.com/gpu": "1"}, "max": {"cpu": "4"}}, {"cpu": "1", "example.com/gpu": "1"}, True),
    ],
    ids=[
        "no min is nothing that is sure",
        "what nobody asks for is not limited",
        "memory that max leaves out is 0",
        "no max is no limit",
        "a device that min leaves out is 0",
        "a device that max leaves out is not limited",
    ],
)
def test_what_is_left_out_of_a_quota(spec: dict[str, Any], asks: dict[str, str], fits: bool) -> None:
    made = codec.decode(
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": "q", "namespace": "a"},
            "spec": spec,
        }
    )
    nodes = [node("n0", cpu="8", offers={"example.com/gpu": "2"})]
    sim = simulation(nodes, [made])
    assert (tried(sim, pod("p", namespace="a", requests=asks))[0] == "n0") is fits


def test_who_is_below_min_takes_back_what_was_lent_whatever_the_priority() -> None:
    sim = cluster(quota("a", "4", "8"), quota("b", "4", "8"), cpus=("8",))
    for i in range(8):
        assert tried(sim, asking(f"b-{i}", "b", priority=100 if i else 1000))[0] == "n0"
    sim.submit(asking("a-0", "a", "2", priority=-5))
    sim.run(until=sim.now + 60)
    assert sim.pods["a/a-0"].node == "n0"
    gone = [key for key, record in sim.pods.items() if record.preempted_by == "a/a-0"]
    assert len(gone) == 2 and "b/b-0" not in gone, "two of the least important ones, and no more"


def test_who_is_above_min_evicts_only_lower_priority_in_its_own_namespace() -> None:
    sim = cluster(quota("a", "2", "8"), quota("b", "6", "8"), cpus=("8",))
    for i in range(4):
        assert tried(sim, asking(f"b-{i}", "b"))[0] == "n0"
    for i in range(4):
        assert tried(sim, asking(f"a-{i}", "a"))[0] == "n0"
    assert tried(sim, asking("same", "a"))[0] == "", "as important as those that are there"
    sim.submit(asking("more", "a", priority=10))
    sim.run(until=sim.now + 60)
    assert sim.pods["a/more"].node == "n0"
    gone = [key for key, record in sim.pods.items() if record.preempted_by]
    assert len(gone) == 1 and gone[0].startswith("a/a-")


def test_pods_that_are_imagined_away_are_counted_again() -> None:
    sim = cluster(quota("a", "4", "8"), quota("b", "4", "8"), cpus=("4", "4"))
    for i in range(8):
        tried(sim, asking(f"b-{i}", "b"))
    plugin = next(p for p in sim.engine.profiles["default-scheduler"].plugins if p.name == "CapacityScheduling")
    assert isinstance(plugin, CapacityScheduling)
    sim.submit(asking("never", "a", preemption_policy="Never"))
    assert "not eligible due to preemptionPolicy=Never" in sim.step().note
    before = dict(plugin.quotas.by_namespace["b"].used)
    assert before[CPU] == 8000
    sim.submit(asking("huge", "a", "64"))
    sim.step()
    assert dict(plugin.quotas.by_namespace["b"].used) == before


def test_who_finds_no_room_after_pods_like_it_is_known_to_borrow() -> None:
    sim = cluster(quota("a", "2", "8"), quota("b", "0", "2"), quota("c", "8", "8"), cpus=("5",))
    assert tried(sim, asking("b-0", "b"))[0] == "n0"
    for i in range(4):
        assert tried(sim, asking(f"a-{i}", "a"))[0] == "n0"
    assert tried(sim, asking("a-4", "a"))[0] == ""
    assert not [key for key, record in sim.pods.items() if record.preempted_by], "above its min it takes back from nobody"


@pytest.mark.parametrize("seed", range(15))
def test_counting_pods_that_are_alike_down_equals_adding_all_of_them_up(seed: int) -> None:
    random, store = Random(seed), Store()
    store.put(node("n0", cpu="1000"))
    plugin, placed = CapacityScheduling(None, EngineHandle(store.objects)), []
    said = Counter[str]()
    for i in range(250):
        chance = random.random()
        if chance < 0.04:
            store.objects.put(quota(random.choice("ab"), str(random.randrange(2, 40)), random.choice(["", "5", "9", "20"])))
        elif chance < 0.1 and placed:
            store.remove_pod(placed.pop(random.randrange(len(placed))).metadata.uid)
        namespace, cpu = random.choice(["a"] * 8 + ["b", "c"]), random.choice(["1"] * 8 + ["2", "0"])
        new, nodes = asking(f"p-{i}", namespace, cpu), store.snapshot()
        expected = CapacityScheduling(None, EngineHandle(Objects(store.objects.all(ElasticQuota))))
        view = store.view(new)
        answer = plugin.pre_filter(view, nodes, CycleState())
        assert answer == expected.pre_filter(view, nodes, CycleState()), i
        said[answer.code.name if isinstance(answer, Status) else "fits"] += 1
        if answer is None or random.random() < 0.1:
            placed.append(asking(f"p-{i}", namespace, cpu, on="n0"))
            store.put(placed[-1])
    assert len(said) == 3, "some fit, some are refused, some have no quota"


def test_a_quota_that_changes_counts_at_once_and_one_that_cannot_be_read_is_named() -> None:
    sim = cluster(quota("a", "1", "1"))
    assert tried(sim, asking("a-0", "a"))[0] == "n0"
    assert tried(sim, asking("a-1", "a"))[0] == ""
    sim.add(quota("a", "2", "2"))
    sim.run(until=sim.now + 30)
    assert sim.pods["a/a-1"].node == "n0", "the quota's change wakes the pod"
    sim.add(quota("a", "many", "2"))
    said = tried(sim, asking("a-2", "a"))[1]
    assert "elasticquota a/quota: spec.min[cpu]: invalid value 'many'" in said
