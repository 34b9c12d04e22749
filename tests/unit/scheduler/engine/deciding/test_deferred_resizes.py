"""Running pods whose resize the kubelet put off: with the gate others are evicted beside them, and nobody is bound or told."""

from typing import Any

import msgspec
import pytest
from group_scene import Scene

from kubesched.kube.api.node import NodePodPreemptionPolicy
from kubesched.kube.api.pod import ContainerStatus, PodCondition, ReportedResources
from kubesched.testing import node, pod
from kubesched.tools.simulation.clock import run_virtually

GATE = "InPlacePodVerticalScalingSchedulerPreemption=true"
DEFERRED = PodCondition(type="PodResizePending", status="True", reason="Deferred")


def growing(cpu: str, conditions: Any = (DEFERRED,), **given: Any) -> Any:
    return pod("big", on="n1", priority=10, requests={"cpu": cpu}, conditions=conditions, **given)


def low(name: str, cpu: str = "1", on: str = "n1") -> Any:
    return pod(name, on=on, priority=1, requests={"cpu": cpu})


@pytest.mark.parametrize("is_on", [False, True])
def test_room_is_made_on_the_pods_own_node(is_on: bool) -> None:
    async def main() -> None:
        gates = GATE if is_on else ""
        scene = Scene(node("n1", cpu="4"), low("a"), low("b"), growing("2", ()), gates=gates, release=(1, 37))
        await scene.settle()
        assert scene.deleted == []
        scene.put(growing("3"))
        await scene.settle(5)
        assert len(scene.deleted) == (1 if is_on else 0), "one of them is enough"
        assert scene.bound == {} and scene.statuses.get("big") is None
        assert not [note for name, reason, note in scene.events if name == "big"]
        assert scene.place("big") == ("backoff" if is_on else ""), (
            "there is room, and it is tried again until the kubelet uses it"
        )
        scene.put(growing("3", ()))
        await scene.settle()
        assert scene.place("big") == "", "the kubelet has done it"

    run_virtually(main())


def test_a_node_may_want_no_evictions_for_it() -> None:
    async def main() -> None:
        plain = node("n1", cpu="4")
        policy = NodePodPreemptionPolicy(disable_resize_preemption=("autoscaler",))
        closed = msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, pod_preemption_policy=policy))
        scene = Scene(closed, low("a", "2"), growing("3"), gates=GATE, release=(1, 37))
        await scene.settle(5)
        assert scene.deleted == []
        scene.put(plain)
        await scene.settle(5)
        assert scene.deleted == ["a"]

    run_virtually(main())


def test_other_nodes_and_other_filters_do_not_matter() -> None:
    async def main() -> None:
        cordoned = node("n1", cpu="4", cordoned=True)
        scene = Scene(cordoned, node("n2", cpu="8"), low("a", "2"), growing("3"), gates=GATE, release=(1, 37))
        await scene.settle(5)
        assert scene.deleted == ["a"]
        assert scene.bound == {}

    run_virtually(main())


def test_a_pod_that_goes_leaves_the_queue() -> None:
    async def main() -> None:
        big = growing("3")
        scene = Scene(node("n1", cpu="2"), big, gates=GATE, release=(1, 37))
        await scene.settle()
        assert scene.place("big") == "unschedulable"
        scene.drop(big)
        await scene.settle()
        assert scene.place("big") == "" and scene.engine.intake.n_pending == 0

    run_virtually(main())


def test_on_a_node_with_as_many_pods_as_allowed_somebody_goes() -> None:
    async def main() -> None:
        scene = Scene(node("n1", cpu="9", pods=3), low("a"), low("b"), growing("2"), gates=GATE, release=(1, 37))
        await scene.settle(5)
        assert scene.deleted == ["b"], "the pod that grows is counted, and room for one more is sought"

    run_virtually(main())


def test_what_is_held_beyond_what_is_wanted_is_counted() -> None:
    async def main() -> None:
        holds = ContainerStatus(name="main", resources=ReportedResources(requests={"cpu": "1", "memory": "3Gi"}))
        plain = pod("big", on="n1", priority=10, requests={"cpu": "2", "memory": "1Gi"}, conditions=(DEFERRED,))
        status = msgspec.structs.replace(plain.status, container_statuses=(holds,))
        big = msgspec.structs.replace(plain, status=status)
        other = pod("a", on="n1", priority=1, requests={"memory": "2Gi"})
        scene = Scene(node("n1", cpu="4", memory="4Gi"), other, big, gates=GATE, release=(1, 37))
        await scene.settle(5)
        assert scene.deleted == ["a"], "more memory is held than there is beside the other pod"

    run_virtually(main())


def test_a_pod_that_has_room_is_tried_again_and_makes_room_when_others_came() -> None:
    async def main() -> None:
        scene = Scene(node("n1", cpu="4"), low("a"), growing("2"), gates=GATE, release=(1, 37))
        await scene.settle(2)
        assert scene.deleted == []
        scene.put(low("late", "2"))
        await scene.settle(12)
        assert len(scene.deleted) == 1
        assert not scene.events or all(name != "big" for name, _, _ in scene.events)

    run_virtually(main())


def test_who_goes_among_equals_depends_on_the_order_of_the_nodes_pods() -> None:
    async def main() -> None:
        scene = Scene(node("n1", cpu="4"), low("a"), growing("2", ()), low("b"), low("c"), gates=GATE, release=(1, 37))
        await scene.settle()
        scene.put(growing("2"))  # the last one takes its place: a, c, b
        await scene.settle(5)
        assert scene.deleted == ["b"]

    run_virtually(main())


def high(name: str, on: str, cpu: str = "2") -> Any:
    return pod(name, on=on, priority=20, requests={"cpu": cpu})


WAKES = {
    "a pod beside it goes": (high("a", "n1"), None, True),
    "a pod elsewhere goes": (high("b", "n2"), None, False),
    "a pod beside it asks for less": (None, high("a", "n1", "1500m"), True),
    "a pod elsewhere asks for less": (None, high("b", "n2", "1"), False),
    "a pod beside it asks for more": (None, high("a", "n1", "3"), True),
    "a pod elsewhere asks for more": (None, high("b", "n2", "3"), False),
    "it asks for more itself": (None, growing("3500m"), True),
    "its node offers more": (None, node("n1", cpu="4500m"), True),
    "another node offers more": (None, node("n2", cpu="8"), False),
    "another node comes": (None, node("n3", cpu="8"), True),
}


@pytest.mark.parametrize(("gone", "now", "looks"), WAKES.values(), ids=WAKES.keys())
def test_what_lets_a_pod_that_found_no_room_look_again(gone: Any, now: Any, looks: bool) -> None:
    async def main() -> None:
        nodes = [node("n1", cpu="4"), node("n2", cpu="4")]
        scene = Scene(*nodes, high("a", "n1"), high("b", "n2"), growing("3"), gates=GATE, release=(1, 37))
        await scene.settle(5)
        assert scene.place("big") == "unschedulable"
        before = scene.engine.queue.scheduling_cycle
        if gone is not None:
            scene.drop(gone)
        else:
            scene.put(now)
        await scene.settle(0.5)
        assert (scene.engine.queue.scheduling_cycle > before) is looks
        assert scene.deleted == []

    run_virtually(main())


def test_a_pod_whose_node_is_away_waits_for_nodes() -> None:
    async def main() -> None:
        scene = Scene(node("n2", cpu="4"), growing("3"), low("a", "2"), gates=GATE, release=(1, 37))
        await scene.settle(20)
        assert (scene.place("big"), scene.engine.queue.scheduling_cycle) == ("unschedulable", 1)
        scene.put(node("n1", cpu="4"))
        await scene.settle(5)
        assert scene.deleted == ["a"]

    run_virtually(main())


def test_a_node_that_changes_its_mind_does_not_cut_the_pause_short() -> None:
    async def main() -> None:
        plain = node("n1", cpu="4")
        policy = NodePodPreemptionPolicy(disable_resize_preemption=("autoscaler",))
        closed = msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, pod_preemption_policy=policy))
        scene = Scene(closed, low("a", "2"), growing("3"), gates=f"{GATE},SchedulerPopFromBackoffQ=false", release=(1, 37))
        await scene.settle(0.1)
        scene.put(plain)
        await scene.settle(0.1)
        assert (scene.place("big"), scene.deleted) == ("backoff", [])
        await scene.settle(5)
        assert scene.deleted == ["a"]

    run_virtually(main())
