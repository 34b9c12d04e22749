"""Coscheduling: gangs by label, all or none, and what their members are told."""

import asyncio
from typing import Any

import pytest
from group_scene import COSCHEDULING, Scene, crew, labelled

from kubesched.contrib.coscheduling import Coscheduling, CoschedulingArgs
from kubesched.errors import ConfigError
from kubesched.scheduler import config
from kubesched.scheduler.engine.assembly import registry_with
from kubesched.scheduler.framework import Plugin, unschedulable
from kubesched.scheduler.framework.runtime.building import catalogue
from kubesched.testing import check_plugin, node, pod
from kubesched.tools.simulation.clock import run_virtually


def crew_of(count: int, group: str = "g", **given: Any) -> list[Any]:
    return [labelled(f"{group}-{i}", group, requests={"cpu": "1"}, **given) for i in range(count)]


def with_args(text: str) -> str:
    return COSCHEDULING + f"  pluginConfig: [{{name: Coscheduling, args: {text}}}]\n"


def test_it_keeps_the_contract() -> None:
    check_plugin(Coscheduling, seed=3)
    check_plugin(Coscheduling, CoschedulingArgs(permit_waiting_time_seconds=1), seed=4)


def test_a_gang_is_bound_when_all_of_it_fits() -> None:
    async def main() -> None:
        scene = Scene(node("n1", cpu="2"), crew(min_member=3), *crew_of(3), configuration=COSCHEDULING)
        await scene.settle()
        assert scene.bound == {} and scene.engine.store.n_assumed == 0 and len(scene.engine.waiting) == 0
        scene.put(node("n2", cpu="1"))
        await scene.settle(5)
        assert sorted(scene.bound) == ["g-0", "g-1", "g-2"]

    run_virtually(main())


def test_the_message_names_the_missing_member_and_what_it_lacks() -> None:
    async def main() -> None:
        scene = Scene(node("n1", cpu="2"), node("n2", cpu="500m"), crew(min_member=3), *crew_of(3), configuration=COSCHEDULING)
        await scene.settle()
        told = "podGroup default/g needs 3 members and 2 fit; g-2: 0/2 nodes are available: 2 Insufficient cpu"
        assert scene.said("g-0") == scene.said("g-1") == told
        assert scene.said("g-2").startswith("0/2 nodes are available: 2 Insufficient cpu.")
        assert scene.said("g-2").endswith(
            "PodGroup default/g gets rejected due to Pod g-2 is unschedulable even after PostFilter"
        )
        (condition,) = scene.statuses["g-0"]["conditions"]
        assert (condition["reason"], condition["message"]) == ("Unschedulable", told)
        assert scene.place("g-0") == scene.place("g-2") == "unschedulable", "they wait for an event, not for time"

    run_virtually(main())


def test_members_with_the_same_lack_are_named_together() -> None:
    async def main() -> None:
        big = [labelled(f"g-{i}", "g", requests={"example.com/gpu": "1"}) for i in range(1, 6)]
        scene = Scene(node("n1", cpu="2"), crew(min_member=6), *crew_of(1), *big, configuration=COSCHEDULING)
        await scene.settle()
        assert scene.said("g-0") == (
            "podGroup default/g needs 6 members and 1 fit; g-1, g-2, g-3 and 2 more: "
            "0/1 nodes are available: 1 Insufficient example.com/gpu"
        )

    run_virtually(main())


def test_a_gang_with_too_few_pods_says_how_many_there_are() -> None:
    async def main() -> None:
        scene = Scene(node("n1"), crew(min_member=3), *crew_of(2), configuration=COSCHEDULING)
        await scene.settle()
        assert scene.said("g-1").startswith(
            "0/1 nodes are available: pre-filter pod g-1 cannot find enough sibling pods, "
            "current pods number: 2, minMember of group: 3."
        )
        scene.put(*crew_of(3)[2:])
        await scene.settle(3)
        assert sorted(scene.bound) == ["g-0", "g-1", "g-2"]

    run_virtually(main())


def test_a_smaller_demand_wakes_the_gang_and_a_missing_group_holds_it() -> None:
    async def main() -> None:
        scene = Scene(node("n1", cpu="2"), *crew_of(3), configuration=COSCHEDULING)
        await scene.settle()
        assert scene.said("g-0").startswith("0/1 nodes are available: 1 PodGroup not found.")
        scene.put(crew(min_member=3))
        await scene.settle(3)
        assert scene.bound == {}
        scene.put(crew(min_member=2))
        await scene.settle(3)
        assert len(scene.bound) == 2

    run_virtually(main())


def test_two_gangs_that_could_each_hold_half_do_not_wait_for_each_other() -> None:
    async def main() -> None:
        mixed = [p for pair in zip(crew_of(3, "a"), crew_of(3, "b"), strict=True) for p in pair]
        scene = Scene(node("n1", cpu="4"), crew("a", 3), crew("b", 3), *mixed, configuration=COSCHEDULING)
        await scene.settle()
        winner = {name.split("-")[0] for name in scene.bound}
        assert len(scene.bound) == 3 and len(winner) == 1
        assert scene.engine.store.n_assumed == 0 and len(scene.engine.waiting) == 0
        for p in [p for p in mixed if p.metadata.name in scene.bound]:
            scene.drop(scene.known[type(p), p.key])
        await scene.settle(20)
        assert len(scene.bound) == 6

    run_virtually(main())


def test_a_gang_evicts_nobody_unless_all_of_it_fits_then() -> None:
    async def main() -> None:
        low = [pod(f"low{i}", on="n1", priority=1, requests={"cpu": "1"}) for i in range(2)]
        high = [labelled(f"g-{i}", "g", priority=10, requests={"cpu": "1"}) for i in range(3)]
        scene = Scene(node("n1", cpu="2"), *low, crew(min_member=3), *high, configuration=COSCHEDULING)
        await scene.settle(30)
        assert scene.deleted == [] and scene.bound == {}
        scene.put(node("n2", cpu="1"))
        await scene.settle(30)
        assert sorted(scene.deleted) == ["low0", "low1"]
        assert sorted(scene.bound) == ["g-0", "g-1", "g-2"]

    run_virtually(main())


class Refuses(Plugin):
    """Refuses one member at Reserve, once the rehearsal is over."""

    name = "Refuses"
    wakes_on = ()

    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        self.calls: dict[str, int] = {}

    def reserve(self, pod: Any, node_name: str, state: Any) -> Any:
        self.calls[pod.name] = self.calls.get(pod.name, 0) + 1
        if pod.name == "g-1" and self.calls[pod.name] == 2:
            return unschedulable("changed my mind")
        return None


REFUSING = COSCHEDULING.replace("multiPoint: {enabled: [", "multiPoint: {enabled: [{name: Refuses}, ")


@pytest.mark.parametrize(("members", "wanted", "bound"), [(3, 3, 0), (4, 3, 3), (3, 2, 2)])
def test_a_member_that_loses_its_place_at_the_last_moment_takes_the_gang_along_unless_enough_are_left(
    members: int, wanted: int, bound: int
) -> None:
    async def main() -> None:
        scene = Scene(
            node("n1", cpu="8"), crew(min_member=wanted), *crew_of(members), configuration=REFUSING, plugins=(Refuses,)
        )
        await asyncio.sleep(0.1)
        assert len(scene.bound) == bound
        assert len(scene.engine.waiting) == 0
        assert scene.engine.store.n_assumed == 0, "nothing is held"
        if not bound:
            assert scene.said("g-0").startswith(
                "0/1 nodes are available: 1 podGroup default/g cannot be completed: member g-1 lost its place on node n1."
            )
            assert scene.said("g-2").startswith("0/1 nodes are available: 1 podGroup default/g cannot be completed: ")
        scene.put(node("n2", cpu="8"))
        await scene.settle(400)
        assert len(scene.bound) == members

    run_virtually(main())


def test_a_gang_rests_after_it_came_to_nothing() -> None:
    async def main() -> None:
        scene = Scene(
            node("n1", cpu="2"), crew(min_member=3), *crew_of(3), configuration=with_args("{podGroupBackoffSeconds: 20}")
        )
        await scene.settle(1)
        scene.put(node("n2", cpu="2"))
        await scene.settle(5)
        assert scene.bound == {}
        assert "podGroup default/g failed recently" in scene.said("g-2")
        await scene.settle(20)
        assert len(scene.bound) == 3

    run_virtually(main())


def test_min_resources_are_asked_of_the_whole_cluster_first() -> None:
    async def main() -> None:
        needs = crew(min_member=2, min_resources={"cpu": "6", "example.com/gpu": "2"})
        scene = Scene(node("n1", cpu="4"), needs, *crew_of(2), configuration=COSCHEDULING)
        await scene.settle()
        assert scene.said("g-0").startswith(
            "0/1 nodes are available: podGroup default/g needs 2000m cpu, 2 example.com/gpu more than is free."
        )
        scene.put(node("n2", cpu="4", offers={"example.com/gpu": "2"}))
        scene.put(crew(min_member=2, min_resources={"cpu": "7", "example.com/gpu": "2"}))
        await scene.settle(5)
        assert len(scene.bound) == 2

    run_virtually(main())


def test_the_older_label_counts_too_and_loners_go_by_themselves() -> None:
    async def main() -> None:
        old = [pod(f"o{i}", labels={"pod-group.scheduling.sigs.k8s.io": "g"}) for i in range(2)]
        scene = Scene(node("n1"), crew(min_member=2), old[0], pod("loner"), configuration=COSCHEDULING)
        await scene.settle()
        assert list(scene.bound) == ["loner"]
        scene.put(old[1])
        await scene.settle(3)
        assert sorted(scene.bound) == ["loner", "o0", "o1"]

    run_virtually(main())


def test_pods_are_sorted_by_priority_the_age_of_their_group_and_name() -> None:
    async def main() -> None:
        scene = Scene(
            crew("old", created="2025-01-01T00:00:00Z"), crew("new", created="2025-06-01T00:00:00Z"), configuration=COSCHEDULING
        )
        await scene.settle()
        plugin = next(p for p in scene.engine.profiles["default-scheduler"].plugins if p.name == "Coscheduling")
        pods = [labelled("b", "new"), labelled("c", "old"), pod("a"), labelled("d", "new", priority=5), labelled("b2", "old")]
        keys = sorted((plugin.sort_key(scene.engine.store.view(p), scene.clock.now()), p.metadata.name) for p in pods)
        assert [name for _, name in keys] == ["d", "b2", "c", "b", "a"]

    run_virtually(main())


def test_the_configuration_that_people_have_is_read() -> None:
    args = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: CoschedulingArgs, permitWaitingTimeSeconds: 10}"
    known = catalogue(registry_with())
    loaded = config.load(with_args(args), gates=config.Gates.defaults(), registry=known)
    (profile,) = loaded.profiles
    assert profile.args["Coscheduling"] == CoschedulingArgs(permit_waiting_time_seconds=10)
    assert [entry.name for entry in profile.points["queue_sort"]] == ["Coscheduling"]
    with pytest.raises(ConfigError, match="permitWaitingTimeSeconds: Invalid value: -1: must be greater than or equal to 0"):
        config.load(with_args("{permitWaitingTimeSeconds: -1}"), gates=config.Gates.defaults(), registry=known)


def test_how_long_a_member_may_wait() -> None:
    async def main() -> None:
        waits: list[float] = []

        class Spy(Coscheduling):
            name = "Coscheduling"

            def permit(self, pod: Any, node_name: str, state: Any) -> Any:
                status, seconds = super().permit(pod, node_name, state)
                waits.append(seconds)
                return status, seconds

        for group, expected in ((crew(min_member=2), 60.0), (crew(min_member=2, schedule_timeout_seconds=7), 7.0)):
            waits.clear()
            scene = Scene(node("n1"), group, *crew_of(2), configuration=COSCHEDULING)
            plugin = next(p for p in scene.engine.profiles["default-scheduler"].plugins if p.name == "Coscheduling")
            plugin.__class__ = Spy
            await scene.settle()
            assert waits == [expected, 0.0] * 2, "once in the rehearsal, once for real"

    run_virtually(main())
