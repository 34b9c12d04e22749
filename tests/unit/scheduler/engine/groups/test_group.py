"""Pod groups of scheduling.k8s.io: tried together, bound together, told together."""

import asyncio
import threading
from typing import Any

import msgspec
from group_scene import GATES, Scene, gang, member

from kubesched.scheduler.cluster import GroupKey, PodView
from kubesched.scheduler.framework import Plugin
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.testing import node, pod
from kubesched.tools.simulation.clock import run_virtually

TOPOLOGY = f"{GATES},TopologyAwareWorkloadScheduling=true"
ZONE = "topology.kubernetes.io/zone"
ALONE = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)


def trio(count: int = 3, **given: Any) -> list[Any]:
    return [member(f"p{i}", "g", requests={"cpu": "1"}, **given) for i in range(1, count + 1)]


def test_a_gang_waits_for_its_pods_and_is_bound_together() -> None:
    async def main() -> None:
        p1, p2, p3 = trio()
        scene = Scene(node("n1", cpu="3"), gang(min_count=3), p1, p2, gates=GATES)
        await scene.settle()
        assert [scene.place(name) for name in ("p1", "p2")] == ["gated", "gated"]
        scene.put(p3)
        await scene.settle()
        assert scene.nodes("p1", "p2", "p3") == ["n1"] * 3
        (condition,) = scene.conditions
        assert (condition["type"], condition["status"], condition["reason"], condition["message"]) == (
            "PodGroupScheduled",
            "True",
            "Scheduled",
            "",
        )
        assert condition["observedGeneration"] == 1
        attempts = scene.metrics.counters["scheduler_podgroup_schedule_attempts_total"]
        assert dict(attempts) == {("scheduled", "default-scheduler"): 1}
        assert scene.engine.store.groups.get(next(iter(scene.engine.store.groups._groups))).n_scheduled == 3

    run_virtually(main())


def test_a_gang_that_does_not_fit_holds_nothing_and_every_pod_is_told_why() -> None:
    async def main() -> None:
        scene = Scene(node("n1", cpu="2"), gang(min_count=3), *trio(), gates=GATES)
        await scene.settle()
        assert scene.bound == {}
        assert scene.engine.store.n_assumed == 0 and len(scene.engine.waiting) == 0
        messages = sorted(scene.said(name) for name in ("p1", "p2", "p3"))
        assert messages[1:] == [ALONE, ALONE]
        assert messages[0].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert [scene.place(name) for name in ("p1", "p2", "p3")] == ["backoff"] * 3
        assert scene.conditions[0]["reason"] == "Unschedulable"
        assert scene.conditions[0]["message"] == "pod group is unschedulable"
        attempts = len(scene.events)
        await scene.settle(60)
        assert len(scene.events) - attempts <= 3 * 10, "a group in backoff sits its pause out"
        assert len(scene.conditions) == 1, "nothing new is not written"
        scene.put(node("n2", cpu="2"))
        await scene.settle(15)
        assert all(scene.nodes("p1", "p2", "p3"))
        assert scene.conditions[-1]["status"] == "True"

    run_virtually(main())


def test_surplus_pods_come_when_there_is_room_and_the_condition_stays() -> None:
    async def main() -> None:
        scene = Scene(node("n1", cpu="4"), gang(min_count=3), *trio(5), gates=GATES)
        await scene.settle()
        assert len(scene.bound) == 4
        await scene.settle(60)
        assert [condition["status"] for condition in scene.conditions] == ["True"]
        scene.put(node("n2", cpu="1"))
        await scene.settle(15)
        assert len(scene.bound) == 5

    run_virtually(main())


def test_members_are_tried_by_priority_and_then_by_age() -> None:
    async def main() -> None:
        scene = Scene(gang(min_count=4), gates=GATES)
        scene.put(member("p1", "g", priority=100), member("p2", "g", priority=200))
        await scene.settle(1)
        scene.put(member("p4", "g", priority=150))
        await scene.settle(1)
        tried: list[str] = []
        attempts = scene.engine.attempts
        decide = attempts.try_pod
        attempts.try_pod = lambda queued, *rest: tried.append(queued.view.name) or decide(queued, *rest)
        scene.put(node("n1"), member("p3", "g", priority=150))
        await scene.settle()
        assert sorted(tried[:4]) == ["p1", "p2", "p3", "p4"]
        assert tried[0] == "p2" and tried[3] == "p1"

    run_virtually(main())


def test_without_a_gang_policy_each_pod_is_for_itself() -> None:
    async def main() -> None:
        scene = Scene(node("n1", cpu="2"), gang(), *trio(), gates=GATES)
        await scene.settle()
        assert len(scene.bound) == 2
        (left,) = {"p1", "p2", "p3"} - set(scene.bound)
        assert scene.said(left).startswith("0/1 nodes are available: 1 Insufficient cpu.")

    run_virtually(main())


def test_pods_wait_for_their_group_to_be_created() -> None:
    async def main() -> None:
        scene = Scene(node("n1"), *trio(), gates=GATES)
        await scene.settle()
        assert scene.place("p1") == "gated"
        gate = next(p for p in scene.engine.profiles["default-scheduler"].plugins if p.name == "GangScheduling")
        view = scene.engine.intake.pod("default/p1")
        assert gate.pre_enqueue(view).message == 'waiting for pods\'s pod group "g" to appear in scheduling queue'
        scene.put(gang(min_count=4))
        await scene.settle()
        assert gate.pre_enqueue(view).message == "waiting for minCount pods from a gang to appear in scheduling queue"
        scene.put(member("p4", "g"))
        await scene.settle()
        assert len(scene.bound) == 4

    run_virtually(main())


def test_a_gang_is_scheduled_by_one_profile() -> None:
    async def main() -> None:
        two = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler}, {schedulerName: other}]
"""
        scene = Scene(
            node("n1"),
            gang(min_count=2),
            member("p1", "g"),
            member("p2", "g", scheduler="other"),
            gates=GATES,
            configuration=two,
        )
        await scene.settle()
        expected = (
            'all pods in a single pod group should have the same .spec.schedulerName set, got: "other" and "default-scheduler"'
        )
        assert {scene.said("p1"), scene.said("p2")} <= {
            expected,
            expected.replace('"other" and "default-scheduler"', '"default-scheduler" and "other"'),
        }
        assert scene.bound == {}

    run_virtually(main())


class Breaks(Plugin):
    """Breaks for the pod p2."""

    mode = "raise"

    def pre_filter(self, pod: Any, nodes: Any, state: Any) -> Any:
        if pod.name == "p2":
            raise ZeroDivisionError("no")
        return None


def test_a_plugin_that_breaks_at_one_member_costs_the_group_one_attempt() -> None:
    async def main() -> None:
        with_breaks = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {preFilter: {enabled: [{name: Breaks}]}}
"""
        scene = Scene(node("n1"), gang(min_count=1), *trio(), gates=GATES, configuration=with_breaks, plugins=(Breaks,))
        await scene.settle()
        assert scene.bound == {} and scene.engine.store.n_assumed == 0
        assert scene.said("p2") == 'running PreFilter plugin "Breaks": ZeroDivisionError: no'
        assert scene.said("p1") == f"failed to schedule other pod from a pod group: {scene.said('p2')}"
        assert scene.conditions[0]["reason"] == "SchedulerError"
        await scene.settle(5)
        assert len(scene.engine.queue) + scene.engine.queue.n_in_flight == 3

    run_virtually(main())


def test_a_gang_that_needs_evictions_waits_for_them_as_a_whole() -> None:
    async def main() -> None:
        low = pod("low", on="n1", priority=1, requests={"cpu": "1"})
        scene = Scene(node("n1", cpu="3"), low, gates=GATES)
        await scene.settle()
        scene.put(gang(min_count=3), *trio(priority=10))
        await asyncio.sleep(0.005)
        assert scene.bound == {}
        assert (
            sum(
                1
                for name in ("p1", "p2", "p3")
                if scene.said(name) == ("pod group is unschedulable, pod group is waiting for preemption to complete")
            )
            == 2
        )
        await scene.settle(30)
        assert scene.deleted == ["low"]
        assert scene.nodes("p1", "p2", "p3") == ["n1"] * 3
        attempts = scene.metrics.counters["scheduler_podgroup_schedule_attempts_total"]
        assert attempts["waiting_on_preemption", "default-scheduler"] >= 1

    run_virtually(main())


def test_a_bind_that_fails_is_tried_again_for_that_pod_alone() -> None:
    async def main() -> None:
        scene = Scene(node("n1", cpu="3"), gang(min_count=3), gates=GATES)
        scene.failing_binds["p2"] = 2
        scene.put(*trio())
        await scene.settle()
        assert len(scene.bound) == 2
        await scene.settle(20)
        assert scene.nodes("p1", "p2", "p3") == ["n1"] * 3

    run_virtually(main())


def test_a_group_lies_in_one_domain_of_its_topology() -> None:
    async def main() -> None:
        scene = Scene(
            node("a1", cpu="2", zone="a"),
            node("b1", cpu="2", zone="b"),
            node("b2", cpu="2", zone="b"),
            node("x", cpu="9"),
            gang(min_count=3, topology=ZONE),
            *trio(),
            gates=TOPOLOGY,
        )
        await scene.settle()
        assert all(name.startswith("b") for name in scene.nodes("p1", "p2", "p3"))
        scene.put(member("p4", "g", requests={"cpu": "1"}), member("p5", "g", requests={"cpu": "1"}))
        await scene.settle(20)
        assert scene.bound["p4"].startswith("b") != scene.bound.get("p5", "").startswith("b")
        assert "0/1 placements are available" in scene.conditions[-1]["message"] or len(scene.conditions) == 1

    run_virtually(main())


def test_the_fuller_of_two_equal_domains_is_taken() -> None:
    async def main() -> None:
        scene = Scene(
            node("a1", cpu="8", zone="a"),
            node("b1", cpu="8", zone="b"),
            pod("old", on="b1", requests={"cpu": "2"}),
            gang(min_count=3, topology=ZONE),
            *trio(),
            gates=TOPOLOGY,
        )
        await scene.settle()
        assert scene.nodes("p1", "p2", "p3") == ["b1"] * 3

    run_virtually(main())


def test_no_domain_holds_the_group() -> None:
    async def main() -> None:
        scene = Scene(
            node("a1", cpu="2", zone="a"),
            node("b1", cpu="1", zone="b"),
            gang(min_count=3, topology=ZONE),
            *trio(),
            gates=TOPOLOGY,
        )
        await scene.settle()
        assert scene.conditions[0]["message"] == (
            "0/2 placements are available, first placement status: pod group is unschedulable"
        )
        assert scene.engine.store.n_assumed == 0
        refused = [name for name in ("p1", "p2", "p3") if scene.said(name).startswith("0/1 nodes are available: 1 Insuff")]
        assert len(refused) == 1

    run_virtually(main())


def test_a_member_that_must_lie_in_one_domain_evicts_nobody() -> None:
    async def main() -> None:
        low = pod("low", on="a1", priority=1, requests={"cpu": "3"})
        scene = Scene(node("a1", cpu="3", zone="a"), low, gang(min_count=3, topology=ZONE), *trio(priority=10), gates=TOPOLOGY)
        await scene.settle(30)
        assert scene.deleted == [] and scene.bound == {}
        assert scene.said("p1").endswith("preemption: not eligible due to placement-based pod group scheduling limitation")

    run_virtually(main())


def test_no_node_has_the_topology() -> None:
    async def main() -> None:
        scene = Scene(node("x"), gang(min_count=3, topology=ZONE), *trio(), gates=TOPOLOGY)
        await scene.settle()
        assert scene.said("p1") == scene.said("p3") == "no feasible placements found"

    run_virtually(main())


class OnlyNode:
    """An extender that lets one node pass."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.threads: set[str] = set()

    def post(self, url: str, body: bytes, extender: Any) -> bytes:
        self.threads.add(threading.current_thread().name)
        return msgspec.json.encode({"NodeNames": [n for n in msgspec.json.decode(body)["NodeNames"] if n == self.name]})


async def test_with_extenders_a_group_is_rehearsed_beside_the_loop() -> None:
    extended = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: "http://there", filterVerb: filter, nodeCacheCapable: true}]
"""
    poster = OnlyNode("n2")
    scene = Scene(
        node("n1", cpu="9"),
        node("n2", cpu="2"),
        gang(min_count=2),
        *trio(3),
        gates=GATES,
        configuration=extended,
        poster=poster,
    )
    for _ in range(200):
        await asyncio.sleep(0.01)
        if len(scene.bound) == 2:
            break
    assert sorted(scene.bound.values()) == ["n2", "n2"]
    assert threading.main_thread().name not in poster.threads
    scene.running.cancel()


def test_the_gates_off_nothing_of_this_happens() -> None:
    async def main() -> None:
        scene = Scene(node("n1", cpu="2"), *trio())
        await scene.settle()
        assert len(scene.bound) == 2
        assert not scene.engine.store.groups.are_kept

    run_virtually(main())


class Fickle(Plugin):
    """Sees all pods as one group, and breaks over the first that it sees."""

    n_asked = 0

    def group_of(self, pod: PodView) -> GroupKey | None:
        Fickle.n_asked += 1
        if Fickle.n_asked == 1:
            raise RuntimeError("not yet")
        return GroupKey("fickle", "default", "all")

    def post_bind(self, pod: PodView, node_name: str, state: CycleState) -> None:
        """Do nothing: a plugin has a point."""


def test_a_pod_that_its_group_does_not_know_is_not_in_flight_for_ever() -> None:
    configuration = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Fickle}]}}}]
"""

    async def main() -> None:
        Fickle.n_asked = 0
        scene = Scene(node("n1"), pod("p1"), pod("p2"), configuration=configuration, plugins=(Fickle,))
        await scene.settle()
        assert scene.nodes("p2") == ["n1"]
        assert scene.engine.queue.n_in_flight == 0 and scene.place("p1") == "backoff"

    run_virtually(main())
