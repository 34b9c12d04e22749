"""Pod groups as 1.37 has them: judged as a whole, with room made for all of them at once, and groups of groups."""

import asyncio
from typing import Any

import msgspec
import pytest
from group_scene import Scene, composite, gang, member, trio, two_groups

from kubesched.kube.api.workload import DisruptionMode, Nothing
from kubesched.testing import node, pod
from kubesched.tools.simulation.clock import run_virtually

GATES = "GenericWorkload=true"
TOPOLOGY = f"{GATES},TopologyAwareWorkloadScheduling=true"
COMPOSITE = f"{TOPOLOGY},CompositePodGroup=true"
ZONE = "topology.kubernetes.io/zone"
AS_ONE = DisruptionMode(all=Nothing())


def scene(*objects: Any, gates: str = GATES, **given: Any) -> Scene:
    return Scene(*objects, gates=gates, release=(1, 37), **given)


def played(*objects: Any, gates: str = GATES, seconds: float = 0.5) -> Scene:
    """Return what became of objects after some time."""

    async def main() -> Scene:
        made = scene(*objects, gates=gates)
        await made.settle(seconds)
        return made

    return run_virtually(main())


def test_a_gang_is_bound_together_and_its_condition_has_the_new_name() -> None:
    made = played(node("n1", cpu="3"), gang(min_count=3), *trio())
    assert made.nodes("g1", "g2", "g3") == ["n1"] * 3
    (condition,) = made.conditions
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodGroupInitiallyScheduled", "True", "Scheduled")


def test_a_gang_that_cannot_come_about_is_told_so_and_the_rest_is_not_tried() -> None:
    made = played(node("n1", cpu="1"), gang(min_count=3), *trio())
    cannot = "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"
    nobody = "pod group preemption: No preemption victims found for incoming preemptor"
    assert made.bound == {} and made.engine.store.n_assumed == 0
    assert made.said("g1") == f"pod group is unschedulable, {cannot}, {nobody}"
    assert made.said("g2").startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert made.said("g3") == cannot, "nobody looked at it"
    assert made.conditions[0]["message"] == f"{cannot}, {nobody}"


MISFITS = [
    ("", {"priority": 5}, "the same priority as the pod group's priority, got 5 and 0"),
    ("", {"preemption_policy": "Never"}, "the same preemption policy, got Never and PreemptLowerPriority"),
    (
        ",PodGroupPreemptionPolicy=true",
        {"preemption_policy": "Never"},
        "the same preemption policy as the pod group's preemption policy, got Never and PreemptLowerPriority",
    ),
]


@pytest.mark.parametrize(("gates", "given", "text"), MISFITS)
def test_members_must_be_like_their_group(gates: str, given: dict[str, Any], text: str) -> None:
    odd = member("g3", "g", requests={"cpu": "1"}, **given)
    made = played(node("n1"), gang(min_count=3), *trio(2), odd, gates=GATES + gates)
    assert made.bound == {}
    assert {made.said(name) for name in ("g1", "g2", "g3")} == {f"all pods in a single pod group should have {text}"}
    assert made.conditions[0]["reason"] == "SchedulerError"


@pytest.mark.parametrize("is_on", [False, True])
def test_the_policy_of_the_group_decides_whether_it_evicts_where_groups_have_one(is_on: bool) -> None:
    low = pod("low", on="n1", priority=1, requests={"cpu": "3"})
    never = gang(min_count=3, priority=10, preemption_policy="Never")
    members = trio(priority=10, preemption_policy="Never" if is_on else "")
    made = played(node("n1", cpu="3"), low, never, *members, gates=GATES + f",PodGroupPreemptionPolicy={str(is_on).lower()}")
    assert made.deleted == ([] if is_on else ["low"])
    if is_on:
        assert made.conditions[0]["message"].endswith("pod group preemption: not eligible due to preemptionPolicy=Never.")


def test_room_is_made_for_all_members_at_once_and_for_no_one_else() -> None:
    async def main() -> None:
        lows = [pod(f"low{i}", on=f"n{i}", priority=1, requests={"cpu": "2"}) for i in range(1, 5)]
        nodes = [node(f"n{i}", cpu="2") for i in range(1, 5)]
        made = scene(*nodes, *lows, gang(min_count=3, priority=10), *trio(priority=10))
        await made.settle(20)
        assert len(made.deleted) == 3, "members went to three nodes, and whoever is on the fourth is spared"
        assert all(made.nodes("g1", "g2", "g3"))
        message = "found a placement for podgroup, preempting 3 victims"
        assert any(message in each["message"] for each in made.conditions)
        note = next(note for name, reason, note in made.events if reason == "Preempted")
        assert note == "Preempted by podgroup uid-g on node cluster"
        attempts = made.metrics.counters["scheduler_podgroup_schedule_attempts_total"]
        assert attempts["waiting_on_preemption", "default-scheduler"] >= 1
        assert list(made.metrics.histograms["scheduler_workload_preemption_victims"][()]) == [3]

    run_virtually(main())


def test_nobody_is_evicted_if_the_group_does_not_fit_even_then() -> None:
    low = pod("low", on="n1", priority=1, requests={"cpu": "1"})
    made = played(node("n1", cpu="2"), low, gang(min_count=3, priority=10), *trio(priority=10), seconds=20)
    assert made.deleted == [] and made.bound == {}
    assert made.engine.store.pods_on("n1").keys() == {low.metadata.uid}


def test_those_of_a_group_that_goes_as_one_go_together_or_not_at_all() -> None:
    def lows(**mode: Any) -> list[Any]:
        """One low pod on each of two nodes, of one group."""
        placed = [member(f"low{i}", "low", requests={"cpu": "1"}, priority=1, on=f"n{i}") for i in (1, 2)]
        return [gang("low", min_count=1, priority=1, **mode), *placed]

    nodes = [node("n1", cpu="1"), node("n2", cpu="1")]
    urgent = pod("urgent", priority=10, requests={"cpu": "1"})
    assert len(played(*nodes, *lows(), urgent, seconds=0.02).deleted) == 1
    assert sorted(played(*nodes, *lows(disruption_mode=AS_ONE), urgent, seconds=0.02).deleted) == ["low1", "low2"]
    whole = [gang(min_count=1, priority=10), member("g1", "g", requests={"cpu": "1"}, priority=10)]
    assert sorted(played(*nodes, *lows(disruption_mode=AS_ONE), *whole, seconds=0.02).deleted) == ["low1", "low2"]


def test_pods_of_a_group_count_with_the_priority_of_the_group() -> None:
    placed = member("low1", "low", requests={"cpu": "1"}, priority=1, on="n1")
    urgent = pod("urgent", priority=10, requests={"cpu": "1"})
    made = played(node("n1", cpu="1"), gang("low", min_count=1, priority=20), placed, urgent, seconds=5)
    assert made.deleted == []


def test_surplus_members_evict_once_enough_of_their_group_have_a_place() -> None:
    low = pod("low", on="n2", priority=1, requests={"cpu": "1"})
    nodes = [node("n1", cpu="2"), node("n2", cpu="1")]
    made = played(*nodes, low, gang(min_count=2, priority=10), *trio(priority=10), seconds=20)
    assert made.deleted == ["low"]
    assert sorted(made.nodes("g1", "g2", "g3")) == ["n1", "n1", "n2"]


def test_a_group_that_needs_fewer_pods_is_tried_again() -> None:
    async def main() -> None:
        made = scene(node("n1"), gang(min_count=3), *trio(2))
        await made.settle()
        assert made.place("g1") == "gated"
        made.put(gang(min_count=2, generation=2))
        await made.settle(2)
        assert made.nodes("g1", "g2") == ["n1", "n1"]

    run_virtually(main())


def test_a_group_lies_in_one_zone_and_room_is_made_there() -> None:
    low = pod("low", on="b1", priority=1, requests={"cpu": "3"})
    nodes = [node("a1", cpu="2", zone="a"), node("b1", cpu="4", zone="b")]
    made = played(*nodes, low, gang(min_count=3, priority=10, topology=ZONE), *trio(priority=10), gates=TOPOLOGY, seconds=20)
    assert made.deleted == ["low"]
    assert made.nodes("g1", "g2", "g3") == ["b1"] * 3
    tried = made.metrics.counters["scheduler_placement_evaluations_total"]
    assert tried["infeasible", "default-scheduler"] and tried["feasible", "default-scheduler"]
    text = "0/2 placements are available, first placement status: minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"
    assert made.conditions[0]["message"].startswith(f"pod group is unschedulable, {text}")


def test_groups_of_groups_come_about_together_or_not_at_all() -> None:
    small, large = node("n1", cpu="3"), node("n2", cpu="1")
    alone = played(small, composite(), *two_groups(), gates=COMPOSITE)
    assert alone.bound == {}
    assert alone.engine.store.n_assumed == 0
    both = played(small, large, composite(), *two_groups(), gates=COMPOSITE)
    assert len(both.bound) == 4
    assert [condition["status"] for condition in both.conditions] == ["True", "True"]
    one = played(small, composite(min_groups=1), *two_groups(), gates=COMPOSITE)
    assert len(one.bound) == 2, "one group is enough, and the other one does not fit"
    without = played(small, composite(), *two_groups(), gates=TOPOLOGY)
    assert len(without.bound) == 2, "without the gate each group is for itself"


def test_pods_wait_for_the_whole_tree() -> None:
    async def main() -> None:
        made = scene(node("n1"), *two_groups(), gates=COMPOSITE)
        await made.settle()
        assert made.place("g1") == "gated", "the group around it is missing"
        made.put(composite())
        await made.settle(2)
        assert len(made.bound) == 4

    run_virtually(main())


def test_a_group_of_groups_lies_in_one_zone() -> None:
    nodes = [node("a1", cpu="3", zone="a"), node("b1", cpu="2", zone="b"), node("b2", cpu="2", zone="b")]
    made = played(*nodes, composite(topology=ZONE), *two_groups(), gates=COMPOSITE)
    assert sorted(made.bound.values()) == ["b1", "b1", "b2", "b2"]


def test_a_placement_inside_another_is_scored_by_the_nodes_of_both() -> None:
    nodes = [
        node("a1", cpu="4", labels={ZONE: "a", "rack": "1"}),
        node("a2", cpu="5", labels={ZONE: "a", "rack": "2"}),
        node("b1", cpu="1", labels={ZONE: "b", "rack": "1"}),  # would make rack 1 look emptier
        node("b2", cpu="1", labels={ZONE: "b", "rack": "1"}),
    ]
    inner = gang("g", min_count=3, topology="rack", parent_composite_pod_group_name="all")
    made = played(*nodes, composite(min_groups=1, topology=ZONE), inner, *trio(), gates=COMPOSITE)
    assert set(made.bound.values()) == {"a1"}


@pytest.mark.parametrize(("older", "placed"), [("x", {"x1", "x2"}), ("y", {"y1", "y2"})])
def test_the_oldest_of_the_groups_of_a_group_is_tried_first(older: str, placed: set[str]) -> None:
    groups = [gang(name, min_count=2, parent_composite_pod_group_name="all") for name in ("x", "y")]
    born = {name: f"2026-01-01T00:00:0{int(name != older)}Z" for name in ("x", "y")}
    for at, group in enumerate(groups):
        metadata = msgspec.structs.replace(group.metadata, creation_timestamp=born[group.metadata.name])
        groups[at] = msgspec.structs.replace(group, metadata=metadata)
    members = [*trio(2, "x"), *trio(2, "y")]
    made = played(node("n1", cpu="3"), composite(min_groups=1), *groups, *members, gates=COMPOSITE)
    assert set(made.bound) == placed


def test_room_is_made_for_a_group_of_groups() -> None:
    low = pod("low", on="n1", priority=-1, requests={"cpu": "2"})
    made = played(node("n1", cpu="4"), low, composite(), *two_groups(), gates=COMPOSITE, seconds=20)
    assert made.deleted == ["low"] and len(made.bound) == 4
    assert ("low", "Preempted", "Preempted by compositepodgroup uid-all on node cluster") in made.events


def test_room_is_made_for_a_group_that_is_left_over_when_enough_groups_have_a_place() -> None:
    low = pod("low", on="n2", priority=-1, requests={"cpu": "2"})
    nodes = [node("n1", cpu="2"), node("n2", cpu="2")]
    made = played(*nodes, low, composite(min_groups=1), *two_groups(), gates=COMPOSITE, seconds=5)
    assert made.deleted == ["low"] and len(made.bound) == 4


def test_members_are_tried_in_the_order_in_which_they_came() -> None:
    async def main() -> None:
        made = scene(node("n1", cpu="1"), gang(min_count=2), member("g2", "g", requests={"cpu": "1"}))
        await made.settle()
        made.put(member("g1", "g", requests={"cpu": "1"}))
        await made.settle()
        assert made.said("g2").startswith("pod group is unschedulable, "), "it came first, and has a place"
        assert made.said("g1").startswith("0/1 nodes are available")

    run_virtually(main())


class SlowStatus(Scene):
    """A cluster in which the status of groups is written slowly."""

    async def patch_status(self, obj: Any, status: Any) -> None:
        await asyncio.sleep(3)
        await super().patch_status(obj, status)


def test_a_group_that_was_scheduled_is_not_told_otherwise_before_its_condition_has_come_back() -> None:
    async def main() -> list[str]:
        made = SlowStatus(node("n1", cpu="2"), gang(min_count=2), *trio(3), gates=GATES, release=(1, 37))
        await made.settle(10)
        assert sorted(made.nodes("g1", "g2", "g3")) == ["", "n1", "n1"]
        return [condition["status"] for condition in made.conditions]

    assert run_virtually(main()) == ["True"]


def test_a_group_is_told_things_once_and_in_order() -> None:
    async def main() -> list[tuple[str, str]]:
        made = SlowStatus(node("n1", cpu="1"), gang(min_count=2), *trio(2), gates=GATES, release=(1, 37))
        await made.settle(2.5)
        assert sum(pod == "g1" for pod, _, _ in made.events) > 1, "it was tried again meanwhile"
        made.put(node("n2", cpu="1"))
        await made.settle(10)
        return [(condition["status"], condition["reason"]) for condition in made.conditions]

    assert run_virtually(main()) == [("False", "Unschedulable"), ("True", "Scheduled")]


@pytest.mark.parametrize("stages", ["AllAlpha=true,GenericWorkload=true", "AllAlpha=true,AllBeta=true", "AllBeta=true"])
def test_pods_and_groups_are_scheduled_with_every_gate_of_a_stage_on(stages: str) -> None:
    made = played(node("n1", cpu="4"), gang(min_count=3), *trio(), pod("alone", requests={"cpu": "1"}), gates=stages, seconds=5)
    assert made.nodes("g1", "g2", "g3", "alone") == ["n1"] * 4
